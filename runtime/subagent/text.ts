import { bounded } from "../text/bounds.ts";
import { fit, wrap } from "../text/columns.ts";
import { isFields, jsonOf, nameOf, valueOf, type Fields } from "../text/facts.ts";
import { printable, visible } from "../text/safe.ts";
import { listLines } from "./list-text.ts";

/** How the text of an answer is laid out. */
export interface ToolTextOptions {
  /** Columns that a line may take in a terminal; unlimited unless set. */
  width?: number;
}

/** What was done, for the answers that say no more than that. */
const DONE: Record<string, (worker: string) => string> = {
  assign: (worker) => `Assigned to ${worker}. Its result arrives on its own.`,
  steer: (worker) => `Sent to ${worker}.`,
  reply: (worker) => `Answered ${worker}.`,
  close: (worker) => `Closed ${worker}.`,
};

/**
 * The plain text of an answer of the `subagent` tool, for models and people: lists with children below their parents,
 * everything else one fact a line. Values come from outside, so control characters in them are shown as escapes. A list
 * longer than 2,000 lines or 50 KB is cut, with a notice.
 *
 * @param answer what `subagent` answered; any other value becomes its JSON.
 * @param options with a `width`, the lines of a list are cut to it and all others are wrapped.
 */
export function toolText(answer: unknown, options: ToolTextOptions = {}): string {
  const width = options.width === undefined ? Infinity : Math.max(1, Math.floor(options.width) || 1);
  const wrapped = (lines: readonly string[]) => lines.flatMap((line) => wrap(line, width)).join("\n");
  if (isFields(answer) && Array.isArray(answer["workers"])) {
    const list = listLines(answer);
    const head = bounded(list.map((line) => fit(line, width)).join("\n"));
    if (!head.truncated) return head.text;
    return `${head.text}\n\n${wrapped([truncation(answer, list.length)])}`;
  }
  if (isFields(answer) && (answer["ok"] === false || answer["error"] !== undefined)) {
    return wrapped(errorLines(answer["error"]));
  }
  return isFields(answer) && answer["ok"] === true ? wrapped(doneLines(answer)) : wrapped([jsonOf(answer)]);
}

/** Where the rest of a list is. */
function truncation({ full_output_path: path, full_output_error: error }: Fields, lines: number): string {
  if (typeof path === "string") return `[truncated: all ${lines} lines are in ${visible(path)}]`;
  const unsaved = typeof error === "string" ? `; they could not be saved as text: ${visible(error)}` : "";
  return `[truncated: the structured answer has all ${lines} lines${unsaved}]`;
}

function doneLines({ action, label, ...more }: Fields): string[] {
  const worker = label === undefined ? "the worker" : `worker ${nameOf(label)}`;
  const done = typeof action === "string" && Object.hasOwn(DONE, action) ? DONE[action] : undefined;
  return [done?.(worker) ?? `Done: ${worker}.`, ...factLines({ ...more, ok: undefined })];
}

function errorLines(error: unknown): string[] {
  if (!isFields(error)) return [valueOf(error) ?? "The call failed and says no more."];
  const { category, message, nextAction, operation, reason, rule, field, ids, details, primary, cleanup } = error;
  const next = valueOf(nextAction);
  const what = next === undefined ? message : withoutNext(message, nextAction);
  const headline = [valueOf(category), valueOf(what)].filter((part) => part !== undefined).join(": ");
  const { stage, parentLabel, classification, paneSnapshot } = isFields(details) ? details : {};
  return [
    ...(headline === "" ? [] : [headline]),
    ...factLines({ operation, reason, rule, field }),
    ...factLines(isFields(ids) ? ids : { ids }),
    ...factLines({
      parent: parentLabel,
      stage,
      "start answered": classification,
      "primary cause": causeOf(primary),
      "cleanup cause": causeOf(cleanup),
      "rollback occurred": error["rollbackOccurred"] === true ? "yes" : undefined,
      "retry attempted": error["retryAttempted"] === true ? "yes" : undefined,
      "retry after ms": error["retryAfterMs"],
    }),
    ...snapshotLines(paneSnapshot),
    ...(next === undefined ? [] : [`Next: ${next}`]),
  ];
}

/** What a start left on its screen, which has its own lines. */
function snapshotLines(snapshot: unknown): string[] {
  if (typeof snapshot !== "string") return [];
  const lines = printable(snapshot)
    .split("\n")
    .filter((line) => line.trim() !== "");
  return lines.length === 0 ? [] : ["diagnostic:", ...lines.map((line) => `  ${visible(line)}`)];
}

/** The message without the next action that `HerdError` puts at its end, and which has a line of its own. */
function withoutNext(message: unknown, nextAction: unknown): unknown {
  if (typeof message !== "string" || typeof nextAction !== "string") return message;
  const end = ` Next: ${nextAction.replace(/[.\s]*$/, "")}.`;
  return message.endsWith(end) ? message.slice(0, -end.length) : message;
}

function causeOf(cause: unknown): unknown {
  if (!isFields(cause)) return cause;
  const { category, message, operation } = cause;
  const where = [valueOf(category), valueOf(operation)].filter((part) => part !== undefined).join(" in ");
  return [where, valueOf(message) ?? ""].filter((part) => part !== "").join(": ");
}

/** `name: value`, one a line; what has no value has no line. */
function factLines(facts: Fields): string[] {
  return Object.entries(facts).flatMap(([name, value]) => {
    const text = valueOf(value);
    return text === undefined ? [] : [`${visible(name).toWellFormed()}: ${text}`];
  });
}
