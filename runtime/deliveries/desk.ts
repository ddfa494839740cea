import type { Question } from "../asks/question.ts";
import { HerdError } from "../errors.ts";
import type { DeliveryRecord } from "../kernel/records.ts";
import type { Result } from "./result.ts";

/** A live receiver of an owner's questions and results. What a handler returns is ignored. */
export interface Receiver {
  /**
   * Called at least once per question while it is open; resolving acknowledges the delivery, not the question: one that
   * only shows it, and resolves, is not called again for it, also not after a restart.
   */
  onQuestion?: (question: Question) => unknown;
  /** Called at least once per result; resolving acknowledges it, throwing has it tried again. */
  onResult?: (result: Result) => unknown;
}

/** Handlers of one owner that run at once. */
const AT_ONCE = 16;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

interface Open {
  delivery: DeliveryRecord;
  attempts: number;
  /** UTC milliseconds of the next attempt; 0 is at once. */
  dueAt: number;
  running: boolean;
  lastError?: unknown;
}

export interface DeskOptions {
  now(): number;
  /** Reads what is open from the rows, and adds it. */
  load(): Promise<void>;
  /** Hands a delivery to a handler, or resolves to false when there is nothing to hand out any more. */
  hand(receiver: Receiver, delivery: DeliveryRecord, attempt: number): Promise<boolean>;
  failed(delivery: DeliveryRecord, attempt: number, error: unknown, retryAt: number): void;
  loadFailed(error: unknown): void;
  /** Called whenever the desk may have become quiet. */
  quiet(): void;
}

/** Where one owner's deliveries wait for its receiver: started in commit order, at most 16 handlers at once. */
export class Desk {
  /** The owner's own receiver. */
  own: Receiver | undefined;
  /** Tells that one that another has taken over. */
  replaced: (() => void) | undefined;
  /** Who receives for the owner's scope while it has none of its own. */
  scoped: Receiver | undefined;
  readonly #options: DeskOptions;
  readonly #open = new Map<string, Open>();
  /** Attempts so far of what is not acknowledged, kept when another receiver takes over. */
  readonly #attempts = new Map<string, number>();
  #running = 0;
  #loading = false;
  #loaded = false;

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  get receiver(): Receiver | undefined {
    return this.own ?? this.scoped;
  }

  /** Whether a handler has this delivery now. */
  isRunning(deliveryId: string): boolean {
    return this.#open.get(deliveryId)?.running === true;
  }

  /** Handlers under way, and looking for what is open. */
  get running(): number {
    return this.#running + (this.#loading ? 1 : 0);
  }

  /** Nobody has it as an own one, and nothing is open: the next delivery may as well find another one. */
  get isSpare(): boolean {
    return this.own === undefined && this.running === 0 && this.#open.size === 0 && this.#attempts.size === 0;
  }

  /** The last failure of a delivery of this run, for the list. */
  errorOf(runId: string): unknown {
    for (const open of this.#open.values()) {
      if (open.delivery.runId === runId && open.lastError !== undefined) return open.lastError;
    }
    return undefined;
  }

  /** Takes a delivery in; one that is already here stays as it is. */
  add(delivery: DeliveryRecord): void {
    if (!this.#handles(delivery) || this.#open.has(delivery.deliveryId)) return;
    const attempts = this.#attempts.get(delivery.deliveryId) ?? 0;
    this.#open.set(delivery.deliveryId, { delivery, attempts, dueAt: 0, running: false });
    this.#start();
  }

  /** The delivery is acknowledged, answered or closed. */
  remove(deliveryId: string): void {
    this.#attempts.delete(deliveryId);
    if (this.#open.get(deliveryId)?.running !== true) this.#open.delete(deliveryId);
  }

  /** Starts what has become due, and reads the rows again if that failed. */
  tick(): void {
    this.load();
    this.#start();
  }

  /** Reads what is open, once for a receiver; a failure is tried again at the next tick. */
  load(): void {
    if (this.#loaded || this.#loading || this.receiver === undefined) return;
    this.#loading = true;
    void this.#options
      .load()
      .then(() => (this.#loaded = true))
      .catch((error: unknown) => this.#options.loadFailed(error))
      .finally(() => {
        this.#loading = false;
        this.#options.quiet();
      });
  }

  /** Forgets everything but handlers under way, and the owner's own receiver; the rows stay. */
  clear(): void {
    this.#loaded = false;
    this.own = undefined;
    this.replaced = undefined;
    for (const [id, open] of this.#open) if (!open.running) this.#open.delete(id);
  }

  #handles(delivery: DeliveryRecord): boolean {
    return delivery.kind === "question"
      ? this.receiver?.onQuestion !== undefined
      : this.receiver?.onResult !== undefined;
  }

  #start(): void {
    const now = this.#options.now();
    for (const open of this.#open.values()) {
      if (this.#running >= AT_ONCE || this.receiver === undefined) return;
      // Another receiver may have taken over that does not hear these.
      if (open.running || open.dueAt > now || !this.#handles(open.delivery)) continue;
      void this.#run(open, this.receiver);
    }
  }

  async #run(open: Open, receiver: Receiver): Promise<void> {
    open.running = true;
    open.attempts++;
    this.#attempts.set(open.delivery.deliveryId, open.attempts);
    this.#running++;
    try {
      await this.#options.hand(receiver, open.delivery, open.attempts);
      this.#open.delete(open.delivery.deliveryId);
      this.#attempts.delete(open.delivery.deliveryId);
    } catch (error) {
      const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (open.attempts - 1));
      open.lastError = error;
      open.dueAt = this.#options.now() + pause;
      this.#options.failed(open.delivery, open.attempts, error, open.dueAt);
    } finally {
      open.running = false;
      this.#running--;
      if (this.receiver === undefined) this.#open.delete(open.delivery.deliveryId);
      this.#start();
      this.#options.quiet();
    }
  }
}

/** An owner, and a scope, has one receiver. @param how the second one may take over. */
export function receiverExists(who: string, how: string): HerdError {
  return new HerdError({
    category: "invalid_request",
    reason: "receiver_exists",
    message: `The ${who} already has a receiver, here or in a process that is connected`,
    nextAction: `detach it first, or take over with ${how}`,
    operation: "receive",
  });
}
