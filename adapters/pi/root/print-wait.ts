import { setTimeout as pause } from "node:timers/promises";
import type { Outgoing } from "../outbox.ts";

/** How often is looked whether somebody is left to wait for, in milliseconds. */
const LOOK_MS = 2_000;

/**
 * A session without a screen ends with its model's last word. What its workers ask or bring is kept until then, and while
 * one can still say something it waits for that, and goes on with it.
 */
export class PrintWait {
  readonly #waitMs: number;
  readonly #isAwaited: () => Promise<boolean>;
  readonly #arrived: Outgoing[] = [];
  #waiting: (() => void) | undefined;

  /**
   * @param waitMs how long it waits for the next one.
   * @param isAwaited whether a worker is left that can still say something.
   */
  constructor(waitMs: number, isAwaited: () => Promise<boolean>) {
    this.#waitMs = waitMs;
    this.#isAwaited = isAwaited;
  }

  take(message: Outgoing): void {
    this.#arrived.push(message);
    this.#waiting?.();
  }

  /** What comes next; nothing when no worker is left that could say something, or the time is over. */
  async next(): Promise<Outgoing[]> {
    const { promise: arrives, resolve } = Promise.withResolvers<void>();
    this.#waiting = resolve;
    try {
      if (this.#arrived.length === 0 && (await this.#isAwaited()) && this.#arrived.length === 0) {
        const over = new AbortController();
        const until = Date.now() + this.#waitMs;
        do {
          const wait = Math.min(LOOK_MS, until - Date.now());
          await Promise.race([arrives, pause(wait, undefined, { signal: over.signal }).catch(() => undefined)]);
          // A worker may be gone without a word: closed from a shell, for example.
        } while (this.#arrived.length === 0 && Date.now() < until && (await this.#isAwaited().catch(() => true)));
        over.abort();
      }
      return this.#arrived.splice(0);
    } finally {
      this.#waiting = undefined;
    }
  }
}
