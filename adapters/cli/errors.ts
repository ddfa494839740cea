import { CommanderError } from "commander";
import { HerdError } from "../../runtime/visitor.ts";
import { calledAs, commandFor } from "./invocation.ts";
import { whatRuns } from "./resting.ts";
import { visibleLines } from "./terminal/text.ts";

/** The exit codes of every command. Source: rules of the engine, chapter 8. */
export const EXIT = { done: 0, refused: 1, usage: 2, store: 3, unhealthy: 4, fenced: 5 } as const;

/** A command that cannot do what it was asked, through no fault of its own. `message` ends with what to do. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.refused) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A command that was called wrongly. `message` says how it is called. */
export class UsageError extends Refusal {
  constructor(message: string) {
    super(message, EXIT.usage);
  }
}

/**
 * What a command that threw says on stderr, if it has not said it yet, and its exit code.
 * @param directory the folder of the herd, for the commands that it names.
 */
export function failureOf(error: unknown, directory?: string): { message?: string; exitCode: number } {
  // Commander has printed its message, or the help that was asked for.
  if (error instanceof CommanderError) return { exitCode: error.exitCode === 0 ? EXIT.done : EXIT.usage };
  if (error instanceof Refusal) return error;
  if (error instanceof HerdError) return { message: messageOf(error, directory), exitCode: exitCodeOf(error) };
  // An answer of the operating system or of the database explains itself; anything else is a fault of ours.
  if (hasCode(error)) return { message: error.message, exitCode: codesOfStore[error.code] ?? EXIT.refused };
  return { message: error instanceof Error ? (error.stack ?? error.message) : String(error), exitCode: EXIT.refused };
}

const codesOfStore: Record<string, number> = { ENOENT: EXIT.store, LEVEL_CORRUPTION: EXIT.unhealthy };

/** What somebody at a shell can do is not what a program can. */
function messageOf(error: HerdError, directory: string | undefined): string {
  const { reason, rule = "", message } = error;
  const command: Named = (...words) =>
    directory === undefined ? [calledAs(process), ...words].join(" ") : commandFor(directory, ...words);
  const next = (NEXT[rule] ?? NEXT[reason])?.(command, error, directory);
  // It may quote what a worker said.
  const shown = visibleLines(message);
  return next === undefined ? shown : shown.replace(/ Next: .*$/s, () => ` Next: ${next}.`);
}

/** A command of ours with these words, as it is pasted. */
type Named = (...words: string[]) => string;
type Next = (command: Named, error: HerdError, directory?: string) => string;

const answers: Next = (command, { ids }) => `${command("answer", idIn(ids), '"…"')} answers it`;

/** By rule or reason. A refusal says at its end what to do, with a full stop: no command may be the last of it. */
const NEXT: Record<string, Next> = {
  asks_a_person: answers,
  user_ask_in_resume: answers,
  asks_its_caller: (command, { ids }) => `${command("resume", idIn(ids), '"…"')} answers it`,
  entry_gone: (command) => `${command("parked")} shows what is there now`,
  no_store: () => `name its folder with --directory; where there is none yet, ${calledAs(process)} demo makes one`,
  store_locked: () =>
    "end that process, or have its program open the herd without control: false; then run the command again",
  herd_closed: () => "wait until the program that has the herd open has ended, then run the command again",
  not_running: () => "start the program that has this herd, then run the command again",
  connection_lost: (command) => `look with ${command("list")} what was carried out, then run the command again`,
  fenced: () => "make the disk writable again, and start the program that had the herd open anew",
  unknown_agent: (_, { nextAction }) =>
    /createHerd/.test(nextAction)
      ? "name an agent of the program that has this herd, and run the command while it has the herd open"
      : nextAction,
  disabled_agent: (_, { nextAction }) =>
    /createHerd/.test(nextAction) ? "enable it in the program that has this herd, or name another agent" : nextAction,
  identity_unproven: (command, _, directory) =>
    `${whatRuns(directory)}, look with ${command("list")} until that is settled, and run the command again`,
  no_backend: () => "run the command while the program has the herd open that starts workers of this kind",
};

/** The id of an ask, whatever it is called where it was refused. */
function idIn({ askId, id }: Record<string, string> = {}): string {
  return askId ?? id ?? "ID";
}

function exitCodeOf({ reason }: HerdError): number {
  if (reason === "store_locked" || reason === "no_store" || reason === "not_running") return EXIT.store;
  if (reason === "store_damaged" || reason === "store_format") return EXIT.unhealthy;
  return reason === "fenced" ? EXIT.fenced : EXIT.refused;
}

function hasCode(error: unknown): error is Error & { code: string } {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === "string" && !code.startsWith("ERR_");
}

/** A failure for programs, as the tools spell one. */
export function failureInJson(error: unknown): object {
  if (error instanceof HerdError) return { ok: false, error: error.toJSON() };
  const { message, exitCode } = failureOf(error);
  const category = exitCode === EXIT.usage ? "invalid_request" : "refused";
  return { ok: false, error: { category, message: message ?? "The command was called wrongly." } };
}
