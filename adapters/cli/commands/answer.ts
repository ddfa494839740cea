import type { Command } from "commander";
import type { HostStatus } from "../../host/shapes.ts";
import { hostDirectory } from "../../host/place.ts";
import { quoted } from "../../host/herd-command.ts";
import { findHost } from "../../host/start.ts";
import { answeredText, answerIn } from "../asks.ts";
import { Refusal } from "../errors.ts";
import { commandFor } from "../invocation.ts";
import { listAll } from "../listing.ts";
import { show, snakeCase, withCommonOptions, type CommonOptions } from "../output.ts";
import { withHerd, type Reached } from "../reach.ts";
import { visible } from "../terminal/text.ts";

const NOTES = `
The answer to a question of the inbox is JSON, of the kind that herd inbox shows beside it. Where text is asked for, any
words do: a JSON string is what it says, and everything else, also a number, is the text as it stands.

A worker's label answers the dialog that an extension opened in that worker of a Pi session; herd status shows them. Its
answer is yes or no, one of the choices, or a text; no also closes a choice without taking one.

What a worker asks its owner, a Pi session for example, is neither: herd list shows it, and herd reply answers it.

Examples:
  herd answer v3Bq….0001 "12 EUR"         answer with a text
  herd answer v3Bq….0001 true             answer what asks for true or false
  herd answer scout yes                   confirm what an extension asks in the worker "scout"`;

interface AnswerOptions extends CommonOptions {
  id?: string;
}

/** `herd answer`: a person's answer to what is asked of people, by a run or by an extension in a worker. */
export function addAnswer(program: Command, version: string): void {
  withCommonOptions(
    program
      .command("answer")
      .description("answer what a person is asked")
      .argument("<which>", "the question's id, as herd inbox shows it; or a worker's label, or its dialog's id")
      .argument("<answer>", "the answer: JSON for a question; yes, no, a choice or a text for a dialog"),
  )
    .option("--id <id>", "an id of yours: the same answer given again under it changes nothing")
    .addHelpText("after", NOTES)
    .action(async (which: string, word: string, options: AnswerOptions, command: Command) => {
      // Dialogs are always those of a host: its folder counts unless another one is named.
      const isNamed = command.getOptionValueSource("directory") !== "default";
      const place = isNamed ? options.directory : hostDirectory();
      if (isQuestion(which) || !(await answerDialog(which, word, place, options, version))) {
        await answerQuestion(which, word, options);
      }
    });
}

/** The id of a question has a dot, which no label and no dialog's id has. */
function isQuestion(which: string): boolean {
  return which.includes(".");
}

/** @returns false where no host runs, or one of which nobody is asked anything by that name. */
async function answerDialog(
  which: string,
  word: string,
  directory: string,
  options: AnswerOptions,
  version: string,
): Promise<boolean> {
  const connection = await findHost({ directory, bearer: { role: "person" }, version });
  if (connection === undefined) return false;
  try {
    const { dialogs } = await connection.request<HostStatus>("host/status", {});
    const isOpen = dialogs.some(({ id, label }) => id === which || label === which);
    // Elsewhere is a herd of its own, with questions of its own.
    if (!isOpen && options.directory !== directory) return false;
    const answered = await connection.request<{ label: string; dialog: string }>("dialog/answer", {
      dialog: which,
      answer: word,
    });
    await show(options, { answered: true, ...answered }, () => `Answered: "${visible(answered.label)}" goes on.`);
    return true;
  } finally {
    await connection.close(1_000);
  }
}

async function answerQuestion(askId: string, word: string, options: AnswerOptions): Promise<void> {
  await withHerd(options.directory, { reads: false }, async (reached) => {
    const ask = (await reached.herd.inbox.list()).find((each) => each.askId === askId);
    if (ask === undefined) await refuseOwnersQuestion(askId, word, reached, options);
    // One that is not there is refused by the herd, which knows what became of it.
    const answer = answerIn(word, ask ?? {}, commandFor(options.directory, "answer", askId));
    const given = { askId, answer, ...(options.id !== undefined && { id: options.id }) };
    const receipt = await reached.herd.inbox.answer(given);
    const value = { ...snakeCase({ ...receipt }), ...(ask && { label: ask.label }), running: reached.isRunning };
    await show(options, value, () => answeredText(ask ? `"${visible(ask.label)}"` : "its worker", reached));
  });
}

/** A label may be meant that asks its owner. @throws Refusal that names the command for that. */
async function refuseOwnersQuestion(which: string, word: string, { herd }: Reached, options: AnswerOptions) {
  if (isQuestion(which)) return;
  const workers = (await listAll(herd)).flatMap((listing) => listing.workers);
  if (!workers.some(({ label, question }) => label === which && question !== undefined)) return;
  const reply = commandFor(options.directory, "reply", quoted(which), quoted(word, { always: true }));
  throw new Refusal(`"${visible(which)}" asks its owner, not a person. Next: answer it with: ${reply}`);
}
