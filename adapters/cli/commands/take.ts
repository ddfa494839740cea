import type { Command } from "commander";
import { entriesOf, subjectIn } from "../entries.ts";
import { EXIT, Refusal } from "../errors.ts";
import { show, snakeCase, withCommonOptions, withSubjectOption, type CommonOptions } from "../output.ts";
import { withHerd } from "../reach.ts";
import { visible, visibleLines } from "../terminal/text.ts";

/** `herd take`: an outcome that waits, acknowledged by this. A failed one fails the command, after it is taken. */
export function addTake(program: Command): void {
  withSubjectOption(
    withCommonOptions(
      program
        .command("take")
        .description("print an outcome that waits and acknowledge it: nobody else gets it any more")
        .argument("<id>", "the entry's id, as herd parked shows it"),
    ),
  ).action(async (id: string, options: CommonOptions & { subject?: string }) => {
    const subject = subjectIn(options.subject);
    const result = await withHerd(options.directory, { reads: false }, async ({ herd }) => {
      const found = (await entriesOf(herd, subject)).find(({ entry }) => entry.id === id);
      if (found === undefined) {
        throw new Refusal(`Nothing is parked under ${visible(id)} (any more). Next: herd parked shows what is.`);
      }
      return herd.take(found.subject, id);
    });
    if (result === undefined) throw new Refusal(`${visible(id)} was taken by somebody else. Next: nothing.`);
    if (options.json || result.status === "completed") await show(options, snakeCase({ ...result }), () => result.text);
    if (result.status === "completed") return;
    process.exitCode = EXIT.refused;
    if (options.json) return;
    const { code = "", message = "" } = result.error ?? {};
    throw new Refusal(`"${visible(result.label)}" failed: ${code}: ${visibleLines(message)}`);
  });
}
