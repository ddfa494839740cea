import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { readLines, Tail, type LineReader } from "./output.ts";
import { messageOf } from "../../../runtime/client.ts";
import { endDescendants } from "./descendants.ts";
import { beganAt, type ProcessRecord } from "./records.ts";

/** How long Pi may take to leave once its stdin is closed, and once it was asked by a signal; in milliseconds. */
const LEAVES_MS = 1_000;
const TERM_MS = 500;
/** Between two looks whether a process that is not our child is gone. */
const LOOK_MS = 20;

export interface Start {
  /** The Node that runs it, absolute. */
  node: string;
  args: readonly string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** What its environment has it known by, and that of everything that it starts. */
  token: string;
  /** Hears what it says on stdout. */
  reader: LineReader;
}

/**
 * One Pi process of a worker. Its stdin is its lifeline: when that closes, also because this program ended, it leaves in
 * order. It has a process group of its own, so that what it started goes with it and no Ctrl+C of a terminal reaches it.
 */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #stderr: Tail;
  /** Resolves with what ended it. */
  readonly ended: Promise<string>;
  #isOver = false;

  constructor({ node, args, cwd, env, token, reader }: Start) {
    this.#child = spawn(node, args, { cwd, env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
    // Broken once it is gone, which its end tells.
    this.#child.stdin?.on("error", () => undefined);
    this.ended = new Promise((resolve) => {
      const over = (what: string) => {
        this.#isOver = true;
        const tidied = tidyUp(this.pid, what === "code 0" ? undefined : token);
        resolve(
          tidied.then(
            () => what,
            (error: unknown) => `${what}; what it had started may still run: ${messageOf(error)}`,
          ),
        );
      };
      this.#child.once("error", (error) => over(existsSync(cwd) ? error.message : `there is no folder ${cwd}`));
      this.#child.once("exit", (code, signal) => over(signal === null ? `code ${code}` : signal));
    });
    // Without a descriptor left there is neither: its end tells.
    this.#stderr = new Tail(this.#child.stderr);
    if (this.#child.stdout) readLines(this.#child.stdout, reader);
  }

  /** Undefined when it could not even be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isAlive(): boolean {
    return !this.#isOver;
  }

  /** The last of what it said on stderr. */
  get stderr(): Tail {
    return this.#stderr;
  }

  /** Writes a line to its stdin. */
  say(message: object): void {
    if (this.isAlive) this.#child.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  /** Ends it, with everything that it started. Resolves when it is gone. @throws Error when it cannot be ended. */
  async end(): Promise<void> {
    const { pid } = this;
    if (this.isAlive) {
      this.#child.stdin?.end();
      await within(this.ended, LEAVES_MS);
      if (this.isAlive && pid !== undefined) {
        signalGroup(pid, "SIGTERM");
        await within(this.ended, TERM_MS);
      }
      if (this.isAlive && pid !== undefined) {
        signalGroup(pid, "SIGKILL");
        await within(this.ended, LEAVES_MS);
      }
      if (this.isAlive) throw new Error(`process ${pid} does not end, not even by SIGKILL`);
    }
    await this.ended;
  }
}

/**
 * Ends a worker's process that an earlier host left, and what that started: it may still be on its way out, because its
 * lifeline is cut.
 * @returns whether it is proven gone.
 */
export async function endLeftOver({ pid, began }: ProcessRecord, token: string): Promise<boolean> {
  if (!(await endOne(pid, began))) return false;
  await endDescendants(token);
  return true;
}

async function endOne(pid: number, began: string): Promise<boolean> {
  const isThere = async () => (await beganAt(pid)) === began;
  for (const [signal, patience] of [
    [undefined, LEAVES_MS],
    ["SIGTERM", TERM_MS],
    ["SIGKILL", LEAVES_MS],
  ] as const) {
    if (!(await isThere())) return true;
    if (signal !== undefined) signalGroup(pid, signal);
    for (const until = Date.now() + patience; Date.now() < until;) {
      if (!(await isThere())) return true;
      await pause(LOOK_MS);
    }
  }
  return !(await isThere());
}

/**
 * Ends what a process has left behind, which has nobody any more who would end it: its group, and, unless it left in order
 * and has ended its tools, what these have started.
 */
async function tidyUp(pid: number | undefined, token: string | undefined): Promise<void> {
  if (pid === undefined) return;
  signalGroup(pid, "SIGKILL");
  if (token !== undefined) await endDescendants(token);
}

/** Nothing happens when nobody is left in the group. */
function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // Some systems refuse it when all that is left of a group has ended and was not collected yet.
    if (!["ESRCH", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

async function within(work: Promise<unknown>, ms: number): Promise<void> {
  const over = new AbortController();
  await Promise.race([work, pause(ms, undefined, { signal: over.signal }).catch(() => undefined)]);
  over.abort();
}
