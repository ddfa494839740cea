import type { Command } from "commander";
import { parkedJson } from "../../../runtime/visitor.ts";
import { entriesOf, subjectIn } from "../entries.ts";
import { entryTable } from "../entry-table.ts";
import { show, withCommonOptions, withSubjectOption } from "../output.ts";
import { withHerd } from "../reach.ts";
import type { VisitingOptions } from "../visiting.ts";

/** `herd parked`: what waits on a subject, or anywhere. */
export function addParked(program: Command): void {
  withSubjectOption(
    withCommonOptions(program.command("parked").description("show the questions and outcomes that wait on a subject")),
  ).action(async (options: VisitingOptions) => {
    const subject = subjectIn(options.subject);
    await withHerd(options.directory, { reads: true }, async ({ herd, directory }) => {
      const entries = (await entriesOf(herd, subject)).map(({ entry }) => entry);
      await show(options, entries.map(parkedJson), () =>
        entries.length === 0
          ? `Nothing is parked${subject ? " on this subject" : ` in ${directory}`}.`
          : entryTable(entries, { status: true }).join("\n"),
      );
    });
  });
}
