import { setTimeout as pause } from "node:timers/promises";
import type { Outgoing } from "../outbox.ts";

/** How often is looked whether somebody is left to wait for, in milliseconds. */
const LOOK_MS = 2_000;
/** How long nothing may be known of the workers until nobody waits for them any more, in milliseconds. */
const SILENT_MS = 30_000;
/** What asks a session without a screen to leave. Pi would let it wait to the end first. */
const LEAVE = ["SIGTERM", "SIGHUP"] as const;

export interface PrintWaitOptions {
  /** How long it waits for the next word of a worker, in milliseconds. */
  waitMs: number;
  /** Whether a worker is left that can still say something. It may fail, and it may not answer. */
  isAwaited(): Promise<boolean>;
}

/**
 * A session without a screen ends with its model's last word. What its workers ask or bring is kept until then, and while
 * one can still say something it waits for that, and goes on with it.
 */
export class PrintWait {
  readonly #options: PrintWaitOptions;
  readonly #arrived: Outgoing[] = [];
  #waiting: (() => void) | undefined;

  constructor(options: PrintWaitOptions) {
    this.#options = options;
  }

  take(message: Outgoing): void {
    this.#arrived.push(message);
    this.#waiting?.();
  }

  /**
   * What comes next; nothing when no worker is left that could say something, when the time is over, when nobody says any
   * more what became of the workers, or when this process is asked to leave.
   */
  async next(): Promise<Outgoing[]> {
    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    let isLeaving = false;
    const leave = () => {
      isLeaving = true;
      wake();
    };
    this.#waiting = wake;
    for (const signal of LEAVE) process.on(signal, leave);
    try {
      if (this.#arrived.length === 0) await this.#wait(woken);
      // What it does not take any more is given to the next one that has the session.
      return isLeaving ? [] : this.#arrived.splice(0);
    } finally {
      for (const signal of LEAVE) process.off(signal, leave);
      this.#waiting = undefined;
    }
  }

  async #wait(woken: Promise<void>): Promise<void> {
    const { waitMs, isAwaited } = this.#options;
    let isWoken = false;
    void woken.then(() => (isWoken = true));
    let knownAt = performance.now();
    for (const until = knownAt + waitMs; ;) {
      const patience = Math.min(SILENT_MS, Math.max(LOOK_MS, until - performance.now()));
      // A worker may be gone without a word: closed from a shell, for example.
      const isLeft = await inTime(
        isAwaited().catch(() => undefined),
        patience,
        woken,
      );
      const now = performance.now();
      if (isLeft !== undefined) knownAt = now;
      if (isWoken || isLeft === false || now >= until || now - knownAt >= SILENT_MS) return;
      await inTime(woken, Math.min(LOOK_MS, until - now));
      if (isWoken || performance.now() >= until) return;
    }
  }
}

/** What work comes to; undefined when it takes longer, or something else ends it. */
export async function inTime<T>(work: Promise<T>, ms: number, end?: Promise<void>): Promise<T | undefined> {
  const over = new AbortController();
  try {
    const late = pause(ms, undefined, { signal: over.signal }).catch(() => undefined);
    return await Promise.race([work, late, ...(end ? [end.then(() => undefined)] : [])]);
  } finally {
    over.abort();
  }
}
