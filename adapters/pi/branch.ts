import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

/** The custom type of every message that comes from the herd. */
export const HERD = "herd";

/** The custom entry that shows a list of workers to a person, and to no model. */
export const LIST_ENTRY = "herd-list";

/** What the last paragraph of a question begins with, which tells a model how to answer it. */
export const HOW_TO_ANSWER = "\n\nAnswer with ";

/** What the last paragraph of an advice begins with, which tells a model what it can do. */
export const HOW_TO_GO_ON = "\n\nNothing was changed. ";

/** What is kept with such a message in the session, beside the text that the model reads. */
export interface HerdDetails {
  /** What it is: something that a worker is told, or something that an owner is told. */
  kind: "task" | "answer" | "resume" | "steer" | "question" | "result" | "silence" | "closed";
  /** In a worker: the order that it is. */
  orderId?: string;
  /** At an owner: the delivery that it is. */
  deliveryId?: string;
  requestId?: string;
  askId?: string;
  label?: string;
  agent?: string;
  /** Of a silence: whose it is, and since when (ISO 8601). */
  runId?: string;
  lastActivityAt?: string;
  /** Of a result. */
  status?: string;
  /** What the result says of itself. */
  result?: Record<string, unknown>;
}

type Branch = ReturnType<ExtensionContext["sessionManager"]["getBranch"]>;
export type Entry = Branch[number];

/** What the herd said, of an entry; undefined for everything else. */
export function herdDetails(entry: Entry): HerdDetails | undefined {
  if (entry.type !== "custom_message" || entry.customType !== HERD) return undefined;
  return entry.details as HerdDetails | undefined;
}

/** Everything that the herd said on the active branch, oldest first. */
export function herdSaid(ctx: ExtensionContext): HerdDetails[] {
  return ctx.sessionManager.getBranch().flatMap((entry) => herdDetails(entry) ?? []);
}

/** Whether the session has to do with an assignment: its model has made it, or was asked about it. */
export function knowsOf(ctx: ExtensionContext, requestId: string): boolean {
  return ctx.sessionManager.getBranch().some((entry) => {
    if (herdDetails(entry)?.requestId === requestId) return true;
    if (entry.type !== "message" || entry.message.role !== "toolResult") return false;
    return (entry.message.details as { request_id?: unknown } | undefined)?.request_id === requestId;
  });
}

/** What tells a call of a tool from every other one: some models number the calls of each of their messages anew. */
export function callKey(ctx: ExtensionContext, callId: string): string {
  const isModels = (entry: Entry) => entry.type === "message" && entry.message.role === "assistant";
  const message = ctx.sessionManager.getBranch().findLast(isModels);
  return `${ctx.sessionManager.getSessionId()}/${message?.id ?? ""}/${callId}`;
}

/** What tells one from another. A question is the same however often it is handed out, a silence until it is broken. */
export function keyOf({ kind, askId, deliveryId, orderId, runId, requestId, lastActivityAt }: HerdDetails): string {
  if (kind === "closed") return `closed ${requestId}`;
  if (kind === "silence") return `silence ${runId} ${requestId} ${lastActivityAt}`;
  return kind === "question" && askId !== undefined ? `ask ${askId}` : `${kind} ${deliveryId ?? orderId ?? ""}`;
}
