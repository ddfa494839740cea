import type { Silence } from "../host/shapes.ts";
import { HOW_TO_GO_ON } from "./branch.ts";
import type { Outgoing } from "./outbox.ts";

/** That a worker is silent, as its owner's model reads it. It is advice: nothing was changed. */
export function silenceMessage(silence: Silence, toolName: string): Outgoing {
  const { runId, requestId, label, agent, lastActivityAt } = silence;
  const call = (request: object) => `${toolName}: ${JSON.stringify(request)}`;
  const how =
    `Look at it with ${call({ action: "list" })}; ask it with ${call({ action: "steer", label, message: "…" })}; ` +
    `give it up with ${call({ action: "close", label })}.`;
  return {
    text: `${silenceText(silence)}${HOW_TO_GO_ON}${how}`,
    as: "steer",
    details: { kind: "silence", runId, requestId, label, agent, lastActivityAt },
  };
}

/** The same for a person. */
export function silenceText({ label, inactiveMs }: Silence): string {
  const minutes = Math.floor(inactiveMs / 60_000);
  return `"${label}" is at work and has given no sign of life for ${minutes} minutes. It may be busy with something long.`;
}
