import type { Command } from "commander";
import { answeredText, answerIn } from "../asks.ts";
import { commandFor } from "../invocation.ts";
import { show, snakeCase, withCommonOptions, type CommonOptions } from "../output.ts";
import { withHerd } from "../reach.ts";
import { visible } from "../terminal/text.ts";

const NOTES = `
The answer is JSON, of the kind that herd inbox shows beside the question. Where text is asked for, any words do: a JSON
string is what it says, and everything else, also a number, is the text as it stands.

Examples:
  herd answer v3Bq….0001 "12 EUR"         answer with a text
  herd answer v3Bq….0001 true             answer what asks for true or false`;

/** `herd answer`: a person's answer to what is asked of people. */
export function addAnswer(program: Command): void {
  withCommonOptions(
    program
      .command("answer")
      .description("answer what a person is asked")
      .argument("<id>", "the question's id, as herd inbox shows it")
      .argument("<json>", "the answer"),
  )
    .option("--id <id>", "an id of yours: the same answer given again under it changes nothing")
    .addHelpText("after", NOTES)
    .action(async (askId: string, word: string, options: CommonOptions & { id?: string }) => {
      await withHerd(options.directory, { reads: false }, async (reached) => {
        const ask = (await reached.herd.inbox.list()).find((each) => each.askId === askId);
        // One that is not there is refused by the herd, which knows what became of it.
        const answer = answerIn(word, ask ?? {}, commandFor(options.directory, "answer", askId));
        const given = { askId, answer, ...(options.id !== undefined && { id: options.id }) };
        const receipt = await reached.herd.inbox.answer(given);
        const value = { ...snakeCase({ ...receipt }), ...(ask && { label: ask.label }), running: reached.isRunning };
        await show(options, value, () => answeredText(ask ? `"${visible(ask.label)}"` : "its worker", reached));
      });
    });
}
