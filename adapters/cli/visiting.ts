import { randomUUID } from "node:crypto";
import { outcomeJson } from "../../runtime/visitor.ts";
import type { Json, ParkedEntry, VisitOutcome, VisitRequest } from "../../runtime/index.ts";
import { answeredText, askedBy, entryOf, exampleFor } from "./asks.ts";
import { findEntries, subjectIn, type FoundEntry } from "./entries.ts";
import { commandFor } from "./invocation.ts";
import { show, type CommonOptions } from "./output.ts";
import { withHerd, type Reached } from "./reach.ts";
import { visible } from "./terminal/text.ts";

/** What the commands that visit a subject can be given. */
export interface VisitingOptions extends CommonOptions {
  subject?: string;
}

/**
 * Visits the subject of one entry, and prints what its run comes to next. Without a program nobody would go on with the
 * run, so that nothing is waited for then.
 * @param act what is done about the entry.
 */
export async function visitEntry(
  id: string,
  options: VisitingOptions,
  act: (entry: ParkedEntry) => Pick<VisitRequest, "resume" | "take">,
): Promise<void> {
  const subject = subjectIn(options.subject);
  // Made again after its program closed the herd, it is the same visit, and the entry need not be there any more.
  const visitId = randomUUID();
  let found: FoundEntry | undefined;
  await withHerd(options.directory, { reads: false }, async (reached) => {
    found ??= (await findEntries(reached.herd, [id], { ...options, subject }))[0] as FoundEntry;
    const request = { subject: found.subject, id: visitId, ...act(found.entry) };
    const outcome = await reached.herd.visit({ ...request, waits: reached.isRunning });
    const text = await textOf(outcome, found.entry, reached, options);
    await show(options, { ...outcomeJson(outcome), running: reached.isRunning }, () => text);
  });
}

/** What a visit to an entry came to, for people. */
async function textOf(
  outcome: VisitOutcome,
  { label }: ParkedEntry,
  reached: Reached,
  options: CommonOptions,
): Promise<string> {
  if (outcome.kind === "none") return answeredText(`"${visible(label)}"`, reached);
  return outcomeText(outcome, reached, options);
}

/** What any visit came to, for people. */
export async function outcomeText(
  { action, cancelled, kind, result, asks = [], suspended }: VisitOutcome,
  reached: Reached,
  { directory }: CommonOptions,
): Promise<string> {
  if (kind === "result") return resultText(result);
  if (kind === "none") {
    const what = action === "none" ? "Nothing was resumed, taken or started" : `Stored: the run is ${action}`;
    return cancelled.length === 0 ? `${what}.` : `${what}, ${cancelled.length} cancelled.`;
  }
  const ids = new Set(suspended?.interactionIds);
  const people = (await reached.herd.inbox.list()).filter(({ askId }) => ids.has(askId)).map(entryOf);
  return [...asks, ...people].map((entry) => nextOf(entry, directory)).join("\n");
}

function resultText(result: Json | undefined): string {
  return typeof result === "string" ? result : JSON.stringify(result, undefined, 2);
}

/** An ask, and the command that answers it. */
function nextOf(entry: ParkedEntry, directory: string): string {
  const command = entry.to === "user" ? "answer" : "resume";
  const next = commandFor(directory, command, entry.id, exampleFor(entry));
  return `"${visible(entry.label)}" asks: ${askedBy(entry)}\nNext: ${next}`;
}
