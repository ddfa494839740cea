import type { Question, Result } from "../../../runtime/index.ts";
import { visible, visibleLines } from "../terminal/text.ts";
import { bytesOf } from "../words.ts";

/** A question with its evidence, as a person reads it. */
export function shownQuestion({ question, files }: Question): string {
  const evidence = files.map(({ path, bytes }) => `${visible(path)} (${bytesOf(bytes)})`);
  return [visibleLines(question), ...(evidence.length > 0 ? [`Evidence: ${evidence.join(", ")}.`] : [])].join("\n");
}

/** Who asks what, for somebody who did not see it being asked. */
export function shownAsking(question: Question): string {
  return `The worker "${question.label}" asks:\n\n${shownQuestion(question).replace(/^(?=.)/gm, "  ")}`;
}

/** What to do about a question that stays open. */
export function shownWaiting({ requestId }: Question, command: string): string {
  return [
    `The question waits in the store, without a process (assignment ${requestId}). The command that answers it:`,
    "",
    `  ${command}`,
  ].join("\n");
}

/** How an assignment goes on or begins, in one line. */
export function shownBeginning(folder: string, requestId: string, how: "begins" | "goes on"): string {
  return `The census of ${visible(folder)} ${how} (assignment ${requestId}).`;
}

/** A result as a person reads it, and the stream for it. */
export function shownResult(result: Result): { text: string; to: "stdout" | "stderr" } {
  if (result.status === "completed") return { text: tableOf(result), to: "stdout" };
  const why = result.error ? `${result.error.code}: ${visibleLines(result.error.message)}` : "no reason was given";
  const what = result.status === "closed" ? "was closed by its owner" : "failed";
  return { text: `The census ${what}: ${why}\nNext: run the command again for a new one.`, to: "stderr" };
}

/** Writes a line or several; resolves when they are out. */
export function print(text: string, to: "stdout" | "stderr" = "stdout"): Promise<void> {
  return new Promise((resolve, reject) => {
    process[to].write(`${text}\n`, (error) => (error ? reject(error) : resolve()));
  });
}

function tableOf({ data, text }: Result): string {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return text;
  return typeof data["table"] === "string" ? data["table"] : text;
}
