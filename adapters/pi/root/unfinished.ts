import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Listing } from "../../../runtime/index.ts";
import { quoted } from "../../host/herd-command.ts";
import { herdSaid } from "../branch.ts";

/** A worker that is not through. */
export interface Unfinished {
  label: string;
  /** This session has assigned it, not another worker. */
  isOwn: boolean;
  /** It waits for the answer to a question that its owner has. */
  isHeard: boolean;
}

/** The workers of a list that are not through. */
export function unfinishedOf({ workers }: Listing, ctx: ExtensionContext): Unfinished[] {
  const asked = new Set(herdSaid(ctx).flatMap(({ kind, askId }) => (kind === "question" ? (askId ?? []) : [])));
  return workers
    .filter(({ state }) => ["working", "blocked", "settling"].includes(state))
    .map(({ label, question, parentLabel }) => ({
      label,
      isOwn: parentLabel === undefined,
      isHeard: question !== undefined && (parentLabel !== undefined || asked.has(question.askId)),
    }));
}

/** What a session says of them that ends without a screen; nothing of none. @param file the session's. */
export function lastWordOf(left: readonly Unfinished[], file: string | undefined): string | undefined {
  if (left.length === 0) return undefined;
  const labels = (heard: boolean) => left.filter(({ isHeard }) => isHeard === heard).map(({ label }) => label);
  const said = [
    ...(labels(false).length > 0 ? [`${labels(false).join(", ")} still at work.`] : []),
    ...(labels(true).length > 0 ? [`${labels(true).join(", ")} still waiting for an answer.`] : []),
  ];
  const how = file === undefined ? "" : ` Next: pi --session ${quoted(file, { always: true })} goes on with them.`;
  return `${said.join(" ")}${how}`;
}
