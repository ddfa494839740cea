import type { Command } from "commander";
import { show, withCommonOptions, type CommonOptions } from "../output.ts";
import { withHerd } from "../reach.ts";

/** `herd backup`: a copy of the store, also while a program has it open. */
export function addBackup(program: Command): void {
  withCommonOptions(
    program
      .command("backup")
      .description("copy the herd, as it is at one moment, into a new folder")
      .argument("<folder>", "a folder that does not exist yet or is empty"),
  ).action(async (folder: string, options: CommonOptions) => {
    await withHerd(options.directory, { reads: true }, async ({ herd }) => {
      const receipt = await herd.backup(folder);
      const { directory, rows, files } = receipt;
      await show(options, receipt, () => `Copied ${rows} rows and ${files} files to ${directory}.`);
    });
  });
}
