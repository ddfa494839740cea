import type { OutcomeRecord, RequestRecord } from "../kernel/records.ts";
import { bounded } from "../text/bounds.ts";
import { printable, quotedUnlessPlain, visible } from "../text/safe.ts";
import type { SavedText } from "./result-files.ts";

/** What the same owner still waits for besides this result: direct workers at work, and results on their way. */
export interface Delegation {
  active: number;
  pending: number;
}

/** What a model reads of a result. */
export interface Envelope {
  text: string;
  /** The body is only the head of the result or of the error. */
  truncated: boolean;
}

/**
 * The message a model reads: one header line, what else is under way, where the whole text is, an empty line, and the
 * text as far as the bounds allow. Names are quoted unless plain and only what stands above the first empty line is
 * header, so that no text can forge one.
 */
export function resultEnvelope(
  { label, agent, requestId }: Pick<RequestRecord, "label" | "agent" | "requestId">,
  outcome: OutcomeRecord["outcome"],
  { saved, delegation }: { saved: SavedText; delegation: Delegation },
): Envelope {
  const header = [
    `label: ${label} | agent: ${quotedUnlessPlain(agent)} | request: ${requestId} | status: ${outcome.status}`,
  ];
  if (delegation.active + delegation.pending > 0) header.push(`delegation: ${delegationStatus(delegation)}`);
  if (outcome.status !== "completed") {
    const { code, message } = outcome.error;
    const cause = bounded(printable(`${code}: ${message}`));
    const rest = cause.truncated ? "\n\n[truncated: the whole error is in the details]" : "";
    return { text: `${header.join("\n")}\n\n${cause.text}${rest}`, truncated: cause.truncated };
  }
  const place = saved.path === undefined ? "the result" : pathOnALine(saved.path);
  if (saved.path !== undefined) header.push(`saved: ${place}`);
  if (saved.error !== undefined) header.push(`not saved: the whole text could not be saved: ${visible(saved.error)}`);
  const body = bounded(printable(outcome.text));
  const notice = `\n\n[truncated: the whole text, ${Buffer.byteLength(outcome.text)} bytes, is in ${place}]`;
  return { text: `${header.join("\n")}\n\n${body.text}${body.truncated ? notice : ""}`, truncated: body.truncated };
}

/** How much is unresolved, and what that means for whoever reads it. */
export function delegationStatus({ active, pending }: Delegation): string {
  const counts = `${active} active direct, ${pending} pending direct results, ${active + pending} unresolved.`;
  if (active + pending === 0) return counts;
  return `${counts} Partial results may inform decisions; do not conclude while work is unresolved.`;
}

/** A path as it is; in quotes when characters in it would end the line. */
function pathOnALine(path: string): string {
  return visible(path) === path ? path : visible(JSON.stringify(path));
}
