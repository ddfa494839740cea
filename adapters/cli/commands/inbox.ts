import type { Command } from "commander";
import { parkedJson } from "../../../runtime/visitor.ts";
import { entryOf, exampleFor } from "../asks.ts";
import { entryTable } from "../entry-table.ts";
import { commandFor } from "../invocation.ts";
import { show, withCommonOptions, type CommonOptions } from "../output.ts";
import { withHerd } from "../reach.ts";

const NOTES = `
People are asked here by functions of a program; herd answer answers them. What a worker asks its owner, a Pi session for
example, is in herd list and answered by herd reply; what extensions ask in workers of Pi sessions is in herd status.`;

/** `herd inbox`: what people are asked, by any worker. What is asked of programs is never here. */
export function addInbox(program: Command): void {
  withCommonOptions(program.command("inbox").description("show what people are asked, by any worker"))
    .addHelpText("after", NOTES)
    .action(async (options: CommonOptions) => {
      await withHerd(options.directory, { reads: true }, async ({ herd, directory }) => {
        const asks = await herd.inbox.list();
        const isOwnerAsked = asks.length === 0 && (await herd.owners()).some(({ asking }) => asking > 0);
        const value = asks.map((ask) => ({ ...parkedJson(entryOf(ask)), agent: ask.agent, owner: ask.owner }));
        await show(options, value, () => {
          const entries = asks.map(entryOf);
          const [first] = entries;
          if (first === undefined) return nobodyIsAsked(directory, options, isOwnerAsked);
          const next = commandFor(options.directory, "answer", first.id, exampleFor(first));
          return [...entryTable(entries, { status: false }), "", `Next: ${next}`].join("\n");
        });
      });
    });
}

function nobodyIsAsked(directory: string, options: CommonOptions, isOwnerAsked: boolean): string {
  const nobody = `No person is asked anything in ${directory}.`;
  if (!isOwnerAsked) return nobody;
  return `${nobody} Workers ask their owners.\nNext: ${commandFor(options.directory, "list")}`;
}
