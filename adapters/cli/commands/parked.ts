import type { Command } from "commander";
import type { ParkedEntry } from "../../../runtime/index.ts";
import { entriesOf, subjectIn } from "../entries.ts";
import {
  columnsOfOutput,
  show,
  snakeCase,
  withCommonOptions,
  withSubjectOption,
  type CommonOptions,
} from "../output.ts";
import { withHerd } from "../reach.ts";
import { fit, table, visible } from "../terminal/text.ts";

/** `herd parked`: what waits on a subject, or anywhere. */
export function addParked(program: Command): void {
  withSubjectOption(
    withCommonOptions(program.command("parked").description("show the questions and outcomes that wait on a subject")),
  ).action(async (options: CommonOptions & { subject?: string }) => {
    const subject = subjectIn(options.subject);
    await withHerd(options.directory, { reads: true }, async ({ herd, directory }) => {
      const entries = (await entriesOf(herd, subject)).map(({ entry }) => entry);
      await show(options, entries.map(inJson), () =>
        entries.length === 0
          ? `Nothing is parked${subject ? " on this subject" : ` in ${directory}`}.`
          : textOf(entries),
      );
    });
  });
}

/** With the names that programs outside read. */
function inJson(entry: ParkedEntry): Record<string, unknown> {
  return snakeCase({ ...entry });
}

function textOf(entries: readonly ParkedEntry[]): string {
  const rows = entries.map((entry) => [entry.id, entry.status, visible(entry.label), visible(saysOf(entry))]);
  return table([["id", "status", "label", ""], ...rows], new Set())
    .map((line) => fit(line, columnsOfOutput() - 1))
    .join("\n");
}

function saysOf({ question, result, error }: ParkedEntry): string {
  if (question !== undefined) return question.split("\n")[0] as string;
  const what = result ?? (error as { message?: string } | undefined)?.message ?? error ?? "";
  return (typeof what === "string" ? what : JSON.stringify(what)).split("\n")[0] as string;
}
