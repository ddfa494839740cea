import type { Command } from "commander";
import { answerIn } from "../asks.ts";
import { commandFor } from "../invocation.ts";
import { withCommonOptions, withSubjectOption } from "../output.ts";
import { visitEntry, type VisitingOptions } from "../visiting.ts";

const NOTES = `
The answer is JSON, of the kind that herd parked shows beside the question. Where text is asked for, any words do: a
JSON string is what it says, and everything else, also a number, is the text as it stands.

It waits for what the run comes to next and prints that: its result, or what it asks now. Stopped earlier, or without a
program that has the herd open, it leaves that on the subject, for herd parked and herd take.

Examples:
  herd resume v3Bq….0001 "12 EUR"         answer with a text
  herd resume v3Bq….0001 true             answer what asks for true or false
  herd resume v3Bq….0001 '"M"'            answer with one of the choices
  herd resume v3Bq…                       take the outcome that waits, as herd take does`;

/** `herd resume`: answers what a run asks of its caller, and prints what the run comes to next. */
export function addResume(program: Command): void {
  withSubjectOption(
    withCommonOptions(
      program
        .command("resume")
        .description("answer what is asked of a program, and print what the run comes to next")
        .argument("<id>", "the entry's id, as herd parked shows it")
        .argument("[json]", "the answer; without one the outcome that waits is taken"),
    ),
  )
    .addHelpText("after", NOTES)
    .action((id: string, word: string | undefined, options: VisitingOptions) =>
      visitEntry(id, options, (entry) => {
        if (word === undefined) return { take: id };
        return { resume: [{ id, payload: answerIn(word, entry, commandFor(options.directory, "resume", id)) }] };
      }),
    );
}
