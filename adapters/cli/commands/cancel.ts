import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { HerdError, outcomeJson } from "../../../runtime/visitor.ts";
import type { Herd, Subject } from "../../../runtime/index.ts";
import { findEntries, subjectIn, type FoundEntry } from "../entries.ts";
import { failureOf, Refusal } from "../errors.ts";
import { show, withCommonOptions, withSubjectOption } from "../output.ts";
import { withHerd } from "../reach.ts";
import { visible } from "../terminal/text.ts";
import type { VisitingOptions } from "../visiting.ts";

/** `herd cancel`: tears down the runs of entries, with every run that waits for them; an outcome is dropped. */
export function addCancel(program: Command): void {
  withSubjectOption(
    withCommonOptions(
      program
        .command("cancel")
        .description("end runs that wait, with every run that waits for them, and drop outcomes: all named, or none")
        .argument("<ids...>", "the entries' ids, as herd parked shows them"),
    ),
  ).action(async (ids: string[], options: VisitingOptions) => {
    const subject = subjectIn(options.subject);
    const visits = randomUUID();
    let found: FoundEntry[] | undefined;
    await withHerd(options.directory, { reads: false }, async ({ herd }) => {
      // Found once: made again after its program closed the herd, what was cancelled is not there any more.
      found ??= await findEntries(herd, ids, { ...options, subject });
      const cancelled = await cancelAll(herd, found, visits, options.directory);
      const value = outcomeJson({ action: "none", kind: "none", cancelled });
      await show(options, value, () => (found as FoundEntry[]).map(textOf).join("\n"));
    });
  });
}

/** One visit for each subject. @returns what was cancelled. */
async function cancelAll(
  herd: Herd,
  found: readonly FoundEntry[],
  visits: string,
  directory: string,
): Promise<string[]> {
  const bySubject = new Map<Subject, string[]>();
  for (const { subject, entry } of found) bySubject.set(subject, [...(bySubject.get(subject) ?? []), entry.id]);
  const cancelled: string[] = [];
  for (const [number, [subject, cancel]] of [...bySubject].entries()) {
    try {
      cancelled.push(...(await herd.visit({ subject, cancel, id: `${visits}:${number}` })).cancelled);
    } catch (error) {
      // A herd that was closed meanwhile is visited again, with the same ids.
      if (cancelled.length === 0 || (error instanceof HerdError && error.reason === "herd_closed")) throw error;
      const { message = "" } = failureOf(error, directory);
      throw new Refusal(`Cancelled: ${cancelled.map(visible).join(", ")}. The others are left alone: ${message}`);
    }
  }
  return cancelled;
}

function textOf({ entry: { label, status } }: FoundEntry): string {
  const who = `"${visible(label)}"`;
  return status === "asking" || status === "running"
    ? `Cancelled: ${who}, and every run that waits for it.`
    : `Dropped: the outcome of ${who}.`;
}
