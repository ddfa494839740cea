import type { Command } from "commander";
import { calledAs } from "../invocation.ts";
import { show, withCommonOptions, type CommonOptions } from "../output.ts";
import { withHerd } from "../reach.ts";
import { table, visible } from "../terminal/text.ts";

/** `herd owners`: who has something open. */
export function addOwners(program: Command): void {
  withCommonOptions(program.command("owners").description("show who has workers, questions or results waiting")).action(
    async (options: CommonOptions) => {
      await withHerd(options.directory, { reads: true }, async ({ herd, directory }) => {
        const owners = await herd.owners();
        const rows = owners.map(({ id, workers, asking, results }) =>
          [visible(id), workers, asking, results].map(String),
        );
        await show(options, owners, () =>
          owners.length === 0
            ? `No owner has anything open in ${directory}. Next: run a program that assigns something, or try ${calledAs(process)} demo first.`
            : table([["owner", "workers", "asking", "results"], ...rows], new Set([1, 2, 3])).join("\n"),
        );
      });
    },
  );
}
