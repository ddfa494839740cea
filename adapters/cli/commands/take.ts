import type { Command } from "commander";
import { withCommonOptions, withSubjectOption } from "../output.ts";
import { visitEntry, type VisitingOptions } from "../visiting.ts";

/** `herd take`: an outcome that waits, acknowledged by this. A failed one fails the command, after it is taken. */
export function addTake(program: Command): void {
  withSubjectOption(
    withCommonOptions(
      program
        .command("take")
        .description("print an outcome that waits and acknowledge it: nobody else gets it any more")
        .argument("<id>", "the entry's id, as herd parked shows it"),
    ),
  ).action((id: string, options: VisitingOptions) => visitEntry(id, options, () => ({ take: id })));
}
