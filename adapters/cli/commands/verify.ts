import type { Command } from "commander";
import { EXIT } from "../errors.ts";
import { stoppable } from "../interruption.ts";
import { show, withCommonOptions, type CommonOptions } from "../output.ts";
import { visible } from "../terminal/text.ts";
import { countOf } from "../words.ts";

/** `herd verify`: whether everything that is stored can be believed. */
export function addVerify(program: Command): void {
  withCommonOptions(
    program
      .command("verify")
      .description("check everything that is stored, on a copy; also while a program has it open"),
  ).action(async (options: CommonOptions) => {
    const { verifyStore } = await import("../../../runtime/index.ts");
    const found = await stoppable((signal) => verifyStore(options.directory, { signal }));
    if (found === undefined) return;
    const { directory, rows, owners, workers, problems } = found;
    const counted = `${countOf(rows, "row")}, ${countOf(owners, "owner")}, ${countOf(workers, "worker")}`;
    await show(options, found, () => {
      if (problems.length === 0) return `${directory} is whole: ${counted}.`;
      const lines = problems.map(
        ({ key, message }) => `  ${key === undefined ? "" : `${visible(key)}: `}${visible(message)}`,
      );
      return [
        `${countOf(problems.length, "problem")} in ${directory} (${counted}):`,
        ...lines,
        "Next: stop the programs that use it, keep a copy of the folder, and go on with your last backup.",
      ].join("\n");
    });
    if (problems.length > 0) process.exitCode = EXIT.unhealthy;
  });
}
