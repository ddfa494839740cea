import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Question, Result } from "../../../runtime/index.ts";
import type { ClosedWorker } from "../../host/shapes.ts";
import { HOW_TO_ANSWER, herdSaid } from "../branch.ts";
import type { Outgoing } from "../outbox.ts";

/** A question as it stands in the session. */
export function questionMessage(
  question: Pick<Question, "askId" | "label" | "envelope"> &
    Partial<Pick<Question, "requestId" | "agent" | "deliveryId">>,
  toolName: string,
): Outgoing {
  const { askId, requestId, label, agent, deliveryId, envelope } = question;
  const how = `${toolName}: ${JSON.stringify({ action: "reply", label, message: "…" })}. The worker waits until then.`;
  return {
    text: `${envelope}${HOW_TO_ANSWER}${how}`,
    as: "followUp",
    details: {
      kind: "question",
      askId,
      label,
      ...(deliveryId !== undefined && { deliveryId }),
      ...(requestId !== undefined && { requestId }),
      ...(agent !== undefined && { agent }),
    },
  };
}

/** A result as it stands in the session. */
export function resultMessage({ deliveryId, requestId, label, agent, status, envelope, details }: Result): Outgoing {
  return {
    text: envelope,
    as: "steer",
    details: { kind: "result", deliveryId, requestId, label, agent, status, result: details },
  };
}

/** That somebody else than the session's model has closed a worker. */
export function closedMessage({ requestId, label, agent }: ClosedWorker): Outgoing {
  return {
    text:
      `"${label}" was closed from outside of this session. Its task ends without a result, ` +
      "and a question that it asked needs no answer any more.",
    as: "steer",
    details: { kind: "closed", requestId, label, agent },
  };
}

/** The question that a reply by this label means: the last one of it on the active branch. */
export function questionMeant(ctx: ExtensionContext, label: unknown): string | undefined {
  return herdSaid(ctx).findLast((said) => said.kind === "question" && said.label === label)?.askId;
}
