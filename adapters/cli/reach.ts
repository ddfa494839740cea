import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { connectHerd, HerdError } from "../../runtime/visitor.ts";
import { hanging } from "../host/hanging.ts";
import type { Herd } from "../../runtime/index.ts";

/** How long a command waits for a store that others have for a moment, in milliseconds. */
const PATIENCE_MS = 5_000;
/** How long for one that its program is closing: a program gives its workers ten seconds for that. */
const CLOSING_MS = 12_000;
/** Between two looks, on average: commands that wait together do not look together. */
const LOOK_EVERY_MS = 50;

/** A herd that a command can use. */
export interface Reached {
  herd: Herd;
  /** The folder, absolute. */
  directory: string;
  /** Whether a program has it open, so that its workers go on. Otherwise only this command has. */
  isRunning: boolean;
  /** Resolves when that program is gone, or its herd is. */
  ended: Promise<void>;
}

/**
 * Reaches the herd in a folder: through its socket when a program has it open, else by opening it. A command that only
 * reads changes nothing, and no worker goes on in one that writes.
 * @throws HerdError `no_store`, `store_locked`, `not_answering`, and whatever speaks against opening it.
 */
export async function reach(directory: string, { reads }: { reads: boolean }): Promise<Reached> {
  const folder = resolve(directory);
  const began = Date.now();
  for (;;) {
    const { promise: ended, resolve: onDisconnect } = Promise.withResolvers<void>();
    const connecting = connectHerd({ directory: folder, onDisconnect: () => onDisconnect() });
    const herd = await unless("not_running", connecting, (error) => hanging(error, folder));
    if (herd) return { herd, directory: folder, isRunning: true, ended };
    // A socket that is there belongs to a program that is closing, or to one that was killed.
    const patience = existsSync(join(folder, "control")) ? CLOSING_MS : PATIENCE_MS;
    const isLast = Date.now() >= began + patience;
    const opened = await unless("store_locked", open(folder, reads), (error) => (isLast ? error : undefined));
    if (opened) return { herd: opened, directory: folder, isRunning: false, ended };
    await pause(LOOK_EVERY_MS * (0.5 + Math.random()));
  }
}

/**
 * The same for the time of some work, whatever becomes of it. A herd that its program closes meanwhile has carried
 * nothing out of what it refuses, so that is done again on the next.
 */
export async function withHerd<T>(
  directory: string,
  options: { reads: boolean },
  work: (reached: Reached) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const reached = await reach(directory, options);
    try {
      return await work(reached);
    } catch (error) {
      const again = error instanceof HerdError && (options.reads ? PASSING : REFUSED).has(error.reason);
      if (!again || attempt === ATTEMPTS) throw error;
    } finally {
      await reached.herd.close({ graceMs: 1_000 });
    }
  }
}

/** What may be over at the next look. */
export const PASSING: ReadonlySet<string> = new Set(["store_locked", "connection_lost", "herd_closed"]);
const REFUSED: ReadonlySet<string> = new Set(["herd_closed"]);
const ATTEMPTS = 3;

async function open(directory: string, reads: boolean): Promise<Herd> {
  // A herd that is opened for writing would be made where there is none.
  const passive = reads || !existsSync(join(directory, "store", "CURRENT"));
  // The engine takes longer to load than a program that has it open takes to answer.
  const { createHerd } = await import("../../runtime/index.ts");
  return createHerd({ directory, passive, runWorkers: false, control: false, tickMs: 0, waitForLockMs: 0 });
}

/** What a call gives, or undefined when it is refused for this reason, unless there is something to be thrown for that. */
async function unless<T>(
  reason: string,
  call: Promise<T>,
  thrown: (error: HerdError) => HerdError | undefined,
): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof HerdError) || error.reason !== reason) throw error;
    const instead = thrown(error);
    if (instead) throw instead;
    return undefined;
  }
}
