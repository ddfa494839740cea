import { Command } from "commander";
import { addDemo } from "./commands/demo.ts";
import { EXIT, failureOf } from "./errors.ts";

/**
 * Runs the `herd` command with these arguments and leaves its exit code in `process.exitCode`, so that everything
 * that is being written still gets out. Never throws.
 */
export async function main(args: readonly string[], version: string): Promise<void> {
  // Whoever read our output has left. What could not be shown stays undelivered, and is shown the next time.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => process.exit(EXIT.refused));
  try {
    await herdCommand(version).parseAsync(args, { from: "user" });
  } catch (error) {
    const { message, exitCode } = failureOf(error);
    if (message !== undefined) console.error(message);
    process.exitCode = exitCode;
  }
}

/** The command with all its sub-commands, one file each in `commands/`. */
function herdCommand(version: string): Command {
  const program = new Command("herd")
    .description("Runs a herd of agent workers: assign a task, answer its questions, get exactly one result.")
    .version(version)
    .exitOverride()
    .showHelpAfterError("Next: run herd --help to see the commands and their options.");
  addDemo(program);
  return program;
}
