import { setTimeout as pause } from "node:timers/promises";
import type { Outgoing } from "../outbox.ts";

/**
 * A session without a screen ends with its model's last word. While it has workers that are not through, it waits for what
 * they ask or bring, and goes on with that.
 */
export class PrintWait {
  readonly #unfinished: () => Promise<string[]>;
  readonly #until: number;
  readonly #arrived: Outgoing[] = [];
  #waiting: (() => void) | undefined;

  /**
   * @param waitMs how long it waits in all.
   * @param unfinished the workers that are not through.
   */
  constructor(waitMs: number, unfinished: () => Promise<string[]>) {
    this.#unfinished = unfinished;
    this.#until = Date.now() + waitMs;
  }

  /** Takes a message while it is waited for one. @returns false when nobody waits. */
  take(message: Outgoing): boolean {
    if (this.#waiting === undefined) return false;
    this.#arrived.push(message);
    this.#waiting();
    return true;
  }

  /** What comes next; nothing when no worker is left that could say something, or the time is over. */
  async next(): Promise<Outgoing[]> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting = resolve;
    try {
      // From here on nothing that arrives is missed.
      const unfinished = await this.#unfinished();
      if (this.#arrived.length === 0 && unfinished.length === 0) return [];
      const over = new AbortController();
      const late = pause(Math.max(0, this.#until - Date.now()), undefined, { signal: over.signal }).catch(
        () => undefined,
      );
      await Promise.race([promise, late]);
      over.abort();
      return this.#arrived.splice(0);
    } finally {
      this.#waiting = undefined;
    }
  }
}
