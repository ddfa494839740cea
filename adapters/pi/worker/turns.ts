import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { ToldOutcome } from "../../host/shapes.ts";
import { herdDetails, type Entry } from "../branch.ts";

/** What a worker's session says of its assignment: the file is what survives its process. */
export interface BranchState {
  /** Orders that stand in the session. */
  seen: ReadonlySet<string>;
  /** The assignment that it is at. */
  requestId?: string;
  /** The question that it waits for the answer of. */
  askId?: string;
  /** It has said its last word: nothing came after it that it would have to react to. */
  isOver: boolean;
}

/** Reads the active branch. */
export function branchState(ctx: ExtensionContext): BranchState {
  const seen = new Set<string>();
  let requestId: string | undefined;
  let askId: string | undefined;
  let isOver = false;
  for (const entry of ctx.sessionManager.getBranch()) {
    const said = herdDetails(entry);
    if (said) {
      if (said.orderId !== undefined) seen.add(said.orderId);
      if (said.kind === "task") requestId = said.requestId;
      if (said.kind === "task" || said.kind === "answer") askId = undefined;
      isOver = false;
    } else if (entry.type === "message") {
      const { message } = entry;
      if (message.role === "toolResult" && message.toolName === "ask_owner" && !message.isError) {
        askId = (message.details as { askId?: string } | undefined)?.askId;
      }
      isOver = message.role === "assistant" && message.stopReason === "stop" && !hasCalls(message.content);
    }
  }
  return { seen, isOver, ...(requestId !== undefined && { requestId }), ...(askId !== undefined && { askId }) };
}

/**
 * How the work since the last task ended: the text of the last message of the model, whole and once; or the error that its
 * last turn ended with.
 */
export function outcomeOf(ctx: ExtensionContext): ToldOutcome {
  const entries = ctx.sessionManager.getBranch();
  const from = entries.findLastIndex((entry) => herdDetails(entry)?.kind === "task");
  const messages = entries.slice(from + 1).flatMap(assistantOf);
  const last = messages.at(-1);
  const about = { usage: usageOf(messages), ...contextUsageOf(ctx) };
  if (last === undefined) return { status: "completed", text: "", ...about };
  const { stopReason, errorMessage, content } = last;
  if (stopReason === "error" || stopReason === "aborted") {
    const isModels = stopReason === "error";
    const message = errorMessage ?? (isModels ? "The model ended with an error." : "The turn was aborted.");
    return { status: "failed", error: { code: isModels ? "model_error" : "aborted", message }, ...about };
  }
  const text = content
    .flatMap((block) => (block.type === "text" ? [block.text] : []))
    .join("")
    .trim();
  if (stopReason !== "length") return { status: "completed", text, ...about };
  if (text === "") return { status: "failed", error: { code: "model_error", message: SAID_NOTHING }, ...about };
  // Whoever reads it must not take it for the whole.
  return { status: "completed", text: `${text}\n\n${CUT_OFF}`, ...about };
}

/** What a result ends with whose last message is not whole. */
const CUT_OFF =
  "[Cut off here: the model reached the limit of what it may say in one message. Ask for the rest in a further task.]";

const SAID_NOTHING = "The model reached the limit of what it may say in one message before it had said anything.";

type Assistant = Extract<Extract<Entry, { type: "message" }>["message"], { role: "assistant" }>;

function assistantOf(entry: Entry): Assistant[] {
  return entry.type === "message" && entry.message.role === "assistant" ? [entry.message] : [];
}

function hasCalls(content: Assistant["content"]): boolean {
  return content.some((block) => block.type === "toolCall");
}

function usageOf(messages: readonly Assistant[]): NonNullable<ToldOutcome["usage"]> {
  // A provider that an extension brings may say anything, or nothing.
  const sum = (value: (message: Assistant) => number | undefined) =>
    messages.reduce((total, message) => total + (Number(value(message)) || 0), 0);
  return {
    inputTokens: sum(({ usage }) => (usage?.input ?? 0) + (usage?.cacheRead ?? 0) + (usage?.cacheWrite ?? 0)),
    outputTokens: sum(({ usage }) => usage?.output),
    costUsd: sum(({ usage }) => usage?.cost?.total),
  };
}

function contextUsageOf(ctx: ExtensionContext): Pick<ToldOutcome, "contextUsage"> {
  const usage = ctx.getContextUsage();
  if (usage === undefined || usage.tokens === null) return {};
  const { tokens, contextWindow, percent } = usage;
  return { contextUsage: { tokens, contextWindow, percent } };
}
