import { Command } from "commander";
import { addAnswer } from "./commands/answer.ts";
import { addBackup } from "./commands/backup.ts";
import { addCancel } from "./commands/cancel.ts";
import { addClose } from "./commands/close.ts";
import { addCompletion, wordsFor } from "./commands/completion.ts";
import { addDemo } from "./commands/demo.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addDoor } from "./commands/door.ts";
import { addInbox } from "./commands/inbox.ts";
import { addList } from "./commands/list.ts";
import { addOwners } from "./commands/owners.ts";
import { addParked } from "./commands/parked.ts";
import { addReply } from "./commands/reply.ts";
import { addResult } from "./commands/result.ts";
import { addResume } from "./commands/resume.ts";
import { addServe } from "./commands/serve.ts";
import { addStatus } from "./commands/status.ts";
import { addStop } from "./commands/stop.ts";
import { addSteer } from "./commands/steer.ts";
import { addTake } from "./commands/take.ts";
import { addVerify } from "./commands/verify.ts";
import { addWatch } from "./commands/watch.ts";
import { EXIT, failureInJson, failureOf } from "./errors.ts";
import { calledAs } from "./invocation.ts";

/** In the order in which the help shows them. */
const COMMANDS = [
  addDemo,
  addList,
  addWatch,
  addReply,
  addSteer,
  addClose,
  addResult,
  addOwners,
  addParked,
  addResume,
  addCancel,
  addTake,
  addInbox,
  addAnswer,
  addDoor,
  addServe,
  addStatus,
  addStop,
  addBackup,
  addVerify,
  addDoctor,
];

/**
 * Runs the `herd` command with these arguments and leaves its exit code in `process.exitCode`, so that everything
 * that is being written still gets out. Never throws.
 */
export async function main(args: readonly string[], version: string): Promise<void> {
  // Whoever read our output has left. What could not be shown stays undelivered, and is shown the next time.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => process.exit(EXIT.refused));
  let directory: string | undefined;
  try {
    const program = herdCommand(version, await wordsFor(args));
    program.hook("preAction", (_, command) => {
      directory = command.opts<{ directory?: string }>().directory;
    });
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    const { message, exitCode } = failureOf(error, directory);
    if (exitCode !== EXIT.done && args.includes("--json"))
      console.log(JSON.stringify(failureInJson(error), undefined, 2));
    else if (message !== undefined) console.error(message);
    process.exitCode = exitCode;
  }
}

/** The command with all its sub-commands, one file each in `commands/`. */
function herdCommand(version: string, words: Parameters<typeof addCompletion>[1]): Command {
  const program = new Command("herd")
    .description("Runs a herd of agent workers: assign a task, answer its questions, get exactly one result.")
    .version(version)
    .exitOverride()
    .showHelpAfterError(`Next: run ${calledAs(process)} --help to see the commands and their options.`);
  for (const add of COMMANDS) add(program, version);
  addCompletion(program, words);
  return program;
}
