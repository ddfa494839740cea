import type { Command } from "commander";
import { parkedJson } from "../../../runtime/visitor.ts";
import { entryOf, exampleFor } from "../asks.ts";
import { entryTable } from "../entry-table.ts";
import { commandFor } from "../invocation.ts";
import { show, withCommonOptions, type CommonOptions } from "../output.ts";
import { withHerd } from "../reach.ts";

/** `herd inbox`: what people are asked, by any worker. What is asked of programs is never here. */
export function addInbox(program: Command): void {
  withCommonOptions(program.command("inbox").description("show what people are asked, by any worker")).action(
    async (options: CommonOptions) => {
      await withHerd(options.directory, { reads: true }, async ({ herd, directory }) => {
        const asks = await herd.inbox.list();
        const value = asks.map((ask) => ({ ...parkedJson(entryOf(ask)), agent: ask.agent, owner: ask.owner }));
        await show(options, value, () => {
          const entries = asks.map(entryOf);
          const [first] = entries;
          if (first === undefined) return `Nobody is asked anything in ${directory}.`;
          const next = commandFor(options.directory, "answer", first.id, exampleFor(first));
          return [...entryTable(entries, { status: false }), "", `Next: ${next}`].join("\n");
        });
      });
    },
  );
}
