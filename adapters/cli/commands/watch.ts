import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Command } from "commander";
import { HerdError } from "../../../runtime/visitor.ts";
import { exitCodeAfter, Interruption } from "../interruption.ts";
import { listAll, listInJson } from "../listing.ts";
import { withCommonOptions, withOwnerOption, write, type CommonOptions } from "../output.ts";
import { PASSING, reach, type Reached } from "../reach.ts";
import { atRest, nobodyRuns } from "../resting.ts";
import { firstLines, herdLines } from "../terminal/herd-lines.ts";
import { LiveView, type Drawing } from "../terminal/live.ts";
import { follow } from "../terminal/log.ts";
import { Screen } from "../terminal/screen.ts";

interface WatchOptions extends CommonOptions {
  owner?: string;
}

/** How often is looked whether something has become of the herd, in milliseconds. */
const LOOK_EVERY_MS = 100;

const ABOUT = `
In a terminal it shows the workers live; anywhere else it writes a line for whatever happens, or with --json an object.
While no program has the herd open it shows what is stored, and goes on when one does. Ctrl-C ends it.`;

/** `herd watch`: what happens in a herd, while it happens. */
export function addWatch(program: Command): void {
  withOwnerOption(withCommonOptions(program.command("watch").description("follow what the workers do")))
    .addHelpText("after", ABOUT)
    .action(async (options: WatchOptions) => {
      const interruption = new Interruption();
      try {
        process.exitCode = exitCodeAfter(await watch(options, interruption.signal));
      } finally {
        interruption.stop();
      }
    });
}

/** Follows one program after another that has the herd open, until it is interrupted. */
async function watch<Signal>(options: WatchOptions, interrupted: Promise<Signal>): Promise<Signal> {
  const view = isLive(options) ? new Live(options) : new Plain(options);
  const over = new AbortController();
  try {
    for (;;) {
      // Taken first: what happens from here on is a reason to look again.
      const before = await tracesOf(options.directory);
      const reason = await Promise.race([look(options, view, before, over.signal), interrupted]);
      if (reason !== undefined) return reason;
    }
  } finally {
    over.abort();
    view.stop();
  }
}

/** Shows the herd as long as it stays in one hand. What is about to pass is waited for, the rest ends the command. */
async function look(options: WatchOptions, view: View, before: string, over: AbortSignal): Promise<undefined> {
  let isRunning = false;
  try {
    const reached = await reach(options.directory, { reads: true });
    isRunning = reached.isRunning;
    const leave = () => void reached.herd.close({ graceMs: 0 });
    over.addEventListener("abort", leave);
    try {
      await (isRunning ? view.follow(reached) : view.rest(reached));
    } finally {
      over.removeEventListener("abort", leave);
      view.stop();
      await reached.herd.close({ graceMs: 0 });
    }
  } catch (error) {
    const passes = error instanceof HerdError && (PASSING.has(error.reason) || error.reason === "not_answering");
    if (!passes) throw error;
    await view.waits(error.message);
  }
  if (!isRunning) await changed(options.directory, before, over);
  return undefined;
}

/**
 * Resolves when somebody else has opened or closed the store. Until then it is left alone: whoever looks into it has it
 * for that time, and nobody else.
 */
async function changed(directory: string, before: string, over: AbortSignal): Promise<void> {
  do await pause(LOOK_EVERY_MS, undefined, { signal: over }).catch(() => undefined);
  while (!over.aborted && (await tracesOf(directory)) === before);
}

/** What a program leaves behind that opens or closes a herd. Whoever only looks into it leaves nothing. */
async function tracesOf(directory: string): Promise<string> {
  const files = [join(directory, "control"), join(directory, "holder.json")];
  const found = await Promise.all(files.map((file) => stat(file).catch(() => undefined)));
  return found.map((traces) => traces?.mtimeMs ?? "none").join(" ");
}

interface View {
  /** Shows what happens, until the program that has the herd open ends. */
  follow(reached: Reached): Promise<undefined>;
  /** Shows what is stored while no program has the herd open. */
  rest(reached: Reached): Promise<undefined>;
  /** Says once why nothing can be shown. */
  waits(why: string): Promise<void>;
  stop(): void;
}

function isLive({ json }: WatchOptions): boolean {
  return !json && process.stdout.isTTY && process.env["TERM"] !== "dumb";
}

/** The workers as a tree that is drawn again in place. */
class Live implements View {
  readonly #options: WatchOptions;
  readonly #screen = new Screen(process.stdout);
  #view: LiveView | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  async follow({ herd, ended }: Reached): Promise<undefined> {
    this.#screen.clear();
    const lines: Drawing = async (given) => {
      const shown = herdLines(await listAll(herd, this.#options.owner), given);
      return firstLines(shown.length === 0 ? ["Nothing is open."] : shown, given.rows - 1);
    };
    this.#view = new LiveView(herd, lines, process.stdout);
    await ended;
    return undefined;
  }

  async rest(reached: Reached): Promise<undefined> {
    const { columns, rows } = this.#screen.size;
    const listings = atRest(await listAll(reached.herd, this.#options.owner), reached.directory);
    const shown = herdLines(listings, { columns, notes: new Map() });
    const nobody = nobodyRuns(reached.directory).split("\n");
    const room = rows - 2 - nobody.length;
    this.#screen.draw([...firstLines(shown, room), ...(shown.length > 0 ? [""] : []), ...nobody]);
    return undefined;
  }

  async waits(why: string): Promise<void> {
    this.#screen.draw([why]);
  }

  stop(): void {
    this.#view?.close();
    this.#view = undefined;
  }
}

/** A line for whatever happens. */
class Plain implements View {
  readonly #options: WatchOptions;
  #stop: (() => void) | undefined;
  /** What was said last of a herd that nothing happens in. */
  #said: string | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  async follow({ herd, ended }: Reached): Promise<undefined> {
    this.#said = undefined;
    this.#stop = await follow(herd, this.#options);
    await ended;
    return undefined;
  }

  async rest(reached: Reached): Promise<undefined> {
    const listings = atRest(await listAll(reached.herd, this.#options.owner), reached.directory);
    const shown = herdLines(listings, { columns: Number.POSITIVE_INFINITY, notes: new Map() });
    await this.#say([...shown, nobodyRuns(reached.directory)].join("\n"), {
      at: new Date().toISOString(),
      event: "not_running",
      owners: await listInJson(reached.herd, this.#options.owner),
    });
    return undefined;
  }

  async waits(why: string): Promise<void> {
    await this.#say(why, { at: new Date().toISOString(), event: "waits", why });
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  async #say(text: string, value: object): Promise<void> {
    if (this.#said === text) return;
    this.#said = text;
    await write(this.#options.json ? JSON.stringify(value) : text);
  }
}
