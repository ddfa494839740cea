import { access, constants, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { Option, type Command } from "commander";
import type { Question, Result } from "../../../runtime/index.ts";
import { censusAgents } from "../demo/agents.ts";
import { answerFor, NONE } from "../demo/answer.ts";
import type { Audience } from "../demo/audience.ts";
import { commandLine } from "../demo/command-line.ts";
import { calledAs, DEFAULT_DIRECTORY } from "../invocation.ts";
import { conduct } from "../demo/conduct.ts";
import { Person } from "../demo/person.ts";
import { Pipe } from "../demo/pipe.ts";
import { print } from "../demo/showing.ts";
import { generatedFolders } from "../demo/survey.ts";
import { EXIT, Refusal } from "../errors.ts";
import { exitCodeAfter, Interruption } from "../interruption.ts";
import { visible } from "../terminal/text.ts";

interface DemoOptions {
  folder: string;
  directory: string;
  answer?: string;
}

/** How long to wait for a store that another command looks into, in milliseconds. */
const PATIENCE_MS = 500;
/** How long counting may take to stop, in milliseconds; what it has not finished happens again. */
const GRACE_MS = 2_000;

const EXAMPLES = `
In a terminal it shows the workers and asks you. Anywhere else it leaves the question waiting and says which command
answers it. End it at any time, even with kill -9: run it again, and the same census goes on.

Examples:
  herd demo                        take a census of this folder
  herd demo . --answer "dist"      answer its question, now or when it comes
  herd demo . --answer none        leave nothing out`;

export function addDemo(program: Command): void {
  program
    .command("demo")
    .description("have workers take a census of a folder: files, lines and bytes by language")
    .argument("[folder]", "the folder to count", ".")
    .addOption(
      new Option("-d, --directory <directory>", "where the herd keeps its store")
        .default(DEFAULT_DIRECTORY)
        .env("HERD_DIRECTORY"),
    )
    .option("-a, --answer <text>", `folders to leave out, or "${NONE}": the answer to its question`)
    .addHelpText("after", EXAMPLES)
    .action(async (folder: string, options: Omit<DemoOptions, "folder">) => {
      process.exitCode = await demo({ folder, ...options });
    });
}

/** Takes a census, or goes on with the one that is under way. @returns the exit code. */
async function demo(options: DemoOptions): Promise<number> {
  const store = await realPathOf(options.directory);
  const folder = await countable(options.folder, store);
  const suggest = async () => answerFor(await generatedFolders(folder, store));
  const interruption = new Interruption();
  const { createHerd } = await import("../../../runtime/index.ts");
  const herd = await createHerd({
    directory: options.directory,
    agents: censusAgents(store),
    waitForLockMs: PATIENCE_MS,
  });
  const audience = isTerminal() ? new Person(suggest) : new Pipe();
  let end: Ending;
  try {
    const reached = await Promise.race([conduct(herd, folder, audience, answerIn(options)), interruption.signal]);
    end = await endingOf(reached, options, { suggest, audience });
  } finally {
    audience.close();
    await herd.close({ graceMs: GRACE_MS });
    interruption.stop();
  }
  // Only now the store is free for the command that is named.
  if (end.text !== undefined) await print(end.text, end.to);
  return end.exitCode;
}

/** What the command says last, and its exit code. */
interface Ending {
  exitCode: number;
  text?: string;
  to?: "stdout" | "stderr";
}

async function endingOf(
  reached: Question | Result | "SIGINT" | "SIGTERM",
  options: DemoOptions,
  { suggest, audience }: { suggest: () => Promise<string>; audience: Audience },
): Promise<Ending> {
  if (typeof reached === "string") {
    const text = `Stopped by ${reached}; nothing is lost. To go on: ${commandLine(options, undefined, process)}`;
    return { exitCode: exitCodeAfter(reached), text, to: "stderr" };
  }
  if ("status" in reached) return { exitCode: reached.status === "completed" ? EXIT.done : EXIT.refused };
  const command = commandLine(options, await suggest(), process);
  return { exitCode: EXIT.done, text: audience.waiting(reached, command) };
}

function isTerminal(): boolean {
  return process.stdin.isTTY && process.stdout.isTTY && process.env["TERM"] !== "dumb";
}

/** An owner's answer is never blank; whoever gives a blank one has nothing to leave out. */
function answerIn({ answer }: DemoOptions): string | undefined {
  return answer?.trim() === "" ? NONE : answer;
}

/** The real path of the folder. @throws Refusal when it cannot be counted; nothing was created then. */
async function countable(given: string, store: string): Promise<string> {
  let folder: string;
  try {
    folder = await realpath(given);
    if (!(await stat(folder)).isDirectory()) throw refused(given, "is not a folder");
    await access(folder, constants.R_OK | constants.X_OK);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT") throw refused(given, "does not exist");
    if (code === "EACCES" || code === "EPERM") throw refused(given, "cannot be read by this user");
    throw error;
  }
  const path = relative(store, folder);
  const isOutside = path === ".." || path.startsWith(`..${sep}`) || isAbsolute(path);
  if (!isOutside) throw refused(given, "belongs to the herd's own store");
  return folder;
}

function refused(folder: string, why: string): Refusal {
  return new Refusal(
    `${visible(folder)} ${why}, so it cannot be counted. Next: name a folder, as in: ${calledAs(process)} demo src`,
  );
}

/** The real path that something has or would have, links on the way resolved. */
async function realPathOf(path: string): Promise<string> {
  const absolute = resolve(path);
  try {
    return await realpath(absolute);
  } catch {
    const parent = dirname(absolute);
    return parent === absolute ? absolute : join(await realPathOf(parent), basename(absolute));
  }
}
