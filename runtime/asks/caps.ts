import { HerdError } from "../errors.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Step } from "../kernel/step.ts";
import { keys, prefixed } from "../store/keys.ts";

/** What is bounded: asks and outcomes that programs have to deal with, and asks to people. */
export type CapKind = "caller" | "user";

interface Counted {
  /** UTC milliseconds; an ask past it does not count any more, though nobody has dealt with it yet. */
  expiresAt?: number;
}

/**
 * How many parked entries of a kind there may be. What counts stands in the store; it is read when it is first asked for,
 * so that opening a store with many costs nothing, and kept in memory from then on.
 * Source: rules of the engine, "Parked asks"; `INTERACTIONS_MAX_CONCURRENT_CALLER` and `INTERACTIONS_MAX_CONCURRENT`.
 */
export class Cap {
  readonly #kernel: Kernel;
  readonly #kind: CapKind;
  readonly #limit: number | null;
  readonly #counted = new Map<string, Counted>();
  /** What is not on disk yet. */
  readonly #adding = new Map<string, { isUndone: boolean }>();
  /** What changed while the store is read: applied again afterwards, in this order. */
  #changes: (() => void)[] | undefined = [];
  #read: Promise<void> | undefined;

  /** @param limit null: unlimited. */
  constructor(kernel: Kernel, kind: CapKind, limit: number | null) {
    this.#kernel = kernel;
    this.#kind = kind;
    this.#limit = limit;
  }

  /** Reads what counts, once. Awaited before the step that asks `checkRoom`. */
  async ready(): Promise<void> {
    if (this.#limit === null) return;
    await (this.#read ??= this.#load().catch((error: unknown) => {
      this.#read = undefined;
      throw error;
    }));
  }

  /** @throws HerdError `limit` when one more ask of this kind is too many; nothing is written then. */
  checkRoom(now: number, operation: string): void {
    if (this.#limit === null || this.#counted.size < this.#limit) return;
    let live = 0;
    for (const { expiresAt = Infinity } of this.#counted.values()) if (expiresAt > now) live++;
    if (live < this.#limit) return;
    const [option, setting, what] =
      this.#kind === "caller"
        ? ["maxConcurrentCaller", "INTERACTIONS_MAX_CONCURRENT_CALLER", "open asks and untaken outcomes of subjects"]
        : ["maxConcurrent", "INTERACTIONS_MAX_CONCURRENT", "open asks to people"];
    throw new HerdError({
      category: "worker_busy",
      reason: "limit",
      message: `There are ${live} ${what}, the limit ${option} (${setting}, max_concurrent_${this.#kind}) is ${this.#limit}`,
      nextAction: "answer, take or cancel some of them, or raise the limit, then ask again",
      operation,
      rule: this.#kind === "caller" ? "max_concurrent_caller" : "max_concurrent",
      details: { [option as string]: this.#limit },
    });
  }

  /** In the batch that parks it. */
  add(step: Step, id: string, counted: Counted = {}): void {
    step.put(keys.counted(this.#kind, id), counted);
    this.#change(() => this.#counted.set(id, counted));
    const adding = { isUndone: false };
    this.#adding.set(id, adding);
    const over = () => void (this.#adding.get(id) === adding && this.#adding.delete(id));
    step.after(over);
    step.ifUndone(() => {
      adding.isUndone = true;
      over();
      this.#change(() => this.#counted.delete(id));
    });
  }

  /** In the batch that ends its waiting. What does not count is left alone. */
  remove(step: Step, id: string): void {
    const key = keys.counted(this.#kind, id);
    const counted = step.read<Counted>(key);
    if (counted === undefined) return;
    step.del(key);
    this.#change(() => this.#counted.delete(id));
    const adding = this.#adding.get(id);
    step.ifUndone(() => {
      // What was undone before it was never there.
      if (!adding?.isUndone) this.#change(() => this.#counted.set(id, counted));
    });
  }

  #change(change: () => void): void {
    if (this.#limit === null) return;
    this.#changes?.push(change);
    if (this.#changes === undefined) change();
  }

  async #load(): Promise<void> {
    // From here on every change is kept; what came before it is on disk once the range is read.
    this.#changes = [];
    const prefix = keys.counted(this.#kind, "");
    for (const [key, text] of await this.#kernel.range(prefixed(prefix))) {
      this.#counted.set(key.slice(prefix.length), JSON.parse(text) as Counted);
    }
    for (const change of this.#changes) change();
    this.#changes = undefined;
  }
}
