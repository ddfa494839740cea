import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { HERD, keyOf, type HerdDetails } from "./branch.ts";

/** How often is looked whether a compaction is over, in milliseconds. */
const LOOK_MS = 50;

export interface Outgoing {
  text: string;
  details: HerdDetails;
  /** `steer`: before the next call of the model; `followUp`: when the run is over. Either wakes an idle one. */
  as: "steer" | "followUp";
}

/**
 * Puts messages into a session, one after another. While a compaction runs Pi would take a message at the wrong place, so
 * they wait. What Pi drops on the way, because a person stopped the run, goes out again.
 */
export class Outbox {
  readonly #pi: ExtensionAPI;
  readonly #ctx: ExtensionContext;
  readonly #waiting: Outgoing[] = [];
  /** Handed to Pi, and not in the session yet. */
  readonly #sent = new Map<string, Outgoing>();
  #isRunning = false;
  #isReady = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(pi: ExtensionAPI, ctx: ExtensionContext) {
    this.#pi = pi;
    this.#ctx = ctx;
  }

  /** The session has started: nothing goes out before. */
  ready(): void {
    this.#isReady = true;
    this.flush();
  }

  /** A run of the model begins. */
  began(): void {
    this.#isRunning = true;
  }

  /** A run of the model is over. */
  settled(): void {
    this.#isRunning = false;
    if (!this.#ctx.hasPendingMessages()) {
      this.#waiting.unshift(...this.#sent.values());
      this.#sent.clear();
    }
    setImmediate(() => this.flush());
  }

  /** A message stands in the session. */
  arrived(details: HerdDetails): void {
    this.#sent.delete(keyOf(details));
  }

  put(message: Outgoing): void {
    this.#waiting.push(message);
    this.flush();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
    this.#sent.clear();
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#isReady && !this.#isClosed && this.#waiting.length > 0) {
      // Not idle without a run: a compaction, or a run that is just beginning.
      if (!this.#isRunning && !this.#ctx.isIdle()) {
        this.#timer = setTimeout(() => this.flush(), LOOK_MS).unref();
        return;
      }
      const message = this.#waiting.shift() as Outgoing;
      const { text: content, details, as: deliverAs } = message;
      this.#sent.set(keyOf(details), message);
      this.#pi.sendMessage({ customType: HERD, content, display: true, details }, { triggerTurn: true, deliverAs });
    }
  }
}
