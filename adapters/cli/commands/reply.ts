import type { Command } from "commander";
import { HerdError } from "../../../runtime/visitor.ts";
import type { Owner, ReplyReceipt } from "../../../runtime/index.ts";
import { answeredText } from "../asks.ts";
import { Refusal, UsageError } from "../errors.ts";
import { calledAs, commandFor } from "../invocation.ts";
import { asOwner, findByLabel, listAll } from "../listing.ts";
import { show, snakeCase, withCommonOptions, withLabelOptions, type CommonOptions } from "../output.ts";
import { withHerd, type Reached } from "../reach.ts";
import { visible } from "../terminal/text.ts";

interface ReplyOptions extends CommonOptions {
  owner?: string;
  workspace?: string;
  ask?: string;
  file?: string[];
  id?: string;
}

const NOTES = `
It answers what a worker asks its owner, as herd list shows it. What people are asked is in herd inbox, what extensions
ask in workers of Pi sessions in herd status; herd answer answers both.

Examples:
  herd reply census "dist, coverage"      answer whatever the worker "census" asks now
  herd reply --ask v3Bq….0001 "dist"      answer exactly that question
  herd reply census "see there" -f a.md   send a file along`;

/** `herd reply`: answers a question, once. */
export function addReply(program: Command): void {
  withLabelOptions(
    withCommonOptions(
      program
        .command("reply")
        .description("answer what a worker asks its owner")
        .argument("<label>", "the worker that asks; left out with --ask")
        .argument("[text]", "the answer"),
    ),
  )
    .option("-a, --ask <id>", "exactly this question, as herd list --json names it")
    .option("-f, --file <path...>", "files that go with the answer")
    .option("--id <id>", "an id of yours: the same reply given again under it changes nothing")
    .addHelpText("after", NOTES)
    .action(async (first: string, second: string | undefined, options: ReplyOptions) => {
      const { label, text } = wordsOf(first, second, options);
      await withHerd(options.directory, { reads: false }, (reached) => reply(reached, label, text, options));
    });
}

/** @throws UsageError unless there is an answer, and either a label or a question's id. */
function wordsOf(first: string, second: string | undefined, { ask }: ReplyOptions) {
  if (ask === undefined && second === undefined)
    throw new UsageError(`name the worker and the answer: ${calledAs(process)} reply LABEL "TEXT"`);
  if (ask !== undefined && second !== undefined)
    throw new UsageError(`with --ask there is no label: ${calledAs(process)} reply --ask ID "TEXT"`);
  return ask === undefined ? { label: first, text: second as string } : { label: undefined, text: first };
}

async function reply(reached: Reached, label: string | undefined, text: string, options: ReplyOptions): Promise<void> {
  const { ask = "", file, id } = options;
  const message = { message: text, ...(file && { files: file }), ...(id !== undefined && { id }) };
  const answered =
    label === undefined
      ? await replyToAsk(reached, { askId: ask, ...message }, options)
      : {
          label,
          receipt: await (await findByLabel(reached.herd, label, options)).owner.reply({ label, ...message }),
        };
  // Nothing is asked of the herd any more: it may be closing, and the reply is on disk.
  const { receipt } = answered;
  const value = {
    ...snakeCase({ ...receipt }),
    ...(answered.label && { label: answered.label }),
    running: reached.isRunning,
  };
  const who = answered.label === undefined ? "its worker" : `"${visible(answered.label)}"`;
  await show(options, value, () => answeredText(who, reached));
}

/** A reply that was taken, and by whom, unless that is not in the list any more. */
interface Answered {
  receipt: ReplyReceipt;
  label?: string;
}

/** Finds who may answer a question. One that is answered already is nobody's in the list, so each owner is tried. */
async function replyToAsk(
  { herd }: Reached,
  request: { askId: string; message: string },
  { directory, owner: only }: ReplyOptions,
): Promise<Answered> {
  const listings = await listAll(herd, only);
  const owners: Owner<string>[] = [];
  for (const { owner, workers } of listings) {
    const asking = workers.find(({ question }) => question?.askId === request.askId);
    if (asking?.parentLabel !== undefined) {
      throw new Refusal(
        `"${visible(asking.label)}" asks its parent "${visible(asking.parentLabel)}", which answers it. ` +
          "Next: steer the parent if it should know something.",
      );
    }
    const acting = asOwner(herd, owner, asking?.workspaceId ?? owner.id);
    if (asking) return { receipt: await acting.reply(request), label: asking.label };
    owners.push(acting);
  }
  for (const owner of owners) {
    const receipt = await owner.reply(request).catch((error: unknown) => {
      if (error instanceof HerdError && error.reason === "target_not_found") return undefined;
      throw error;
    });
    if (receipt) return { receipt };
  }
  throw new Refusal(
    `No question ${visible(request.askId)} is open. Next: ${commandFor(directory, "list")} shows those that are.`,
  );
}
