import { HerdError, messageOf } from "../errors.ts";
import { passFailpoint } from "./failpoint.ts";
import { landed, sequenceOperation } from "./sequence.ts";
import type { Operation, Store } from "./store.ts";

/** An operation on its way to disk, and whose it is once it is queued. */
export type Write = Operation & { unit?: Unit };

/** One command's whole effect: it is on disk as a whole or not at all. */
export interface Unit {
  operations: readonly Write[];
  /** Which trees it touched; a unit that cannot be written takes later units of these along. */
  groups: readonly string[];
  /** Acknowledgements need not hurry: they ride with the next batch, or go alone a little later. */
  lazy?: boolean;
  /** On disk. */
  landed(): void;
  /** Never written; memory must be brought back to what is on disk. */
  undone(error: HerdError): void;
}

export interface CommitterOptions {
  sync: boolean;
  /** Units not yet on disk beyond which new ones are refused. */
  maxInFlight: number;
  maxInFlightBytes: number;
  lazyMs: number;
  /** Writes of one batch before it is given up, and the pause between them in milliseconds. */
  attempts: number;
  pauseMs: number;
  pause(ms: number): Promise<void>;
  /** Called once when the store can no longer be written at all. */
  fenced(error: HerdError): void;
}

interface Queued extends Unit {
  bytes: number;
  /** On disk or undone. */
  done: boolean;
}

/**
 * The one way to disk: a first-in-first-out group commit. One batch is written at a time; what queued up
 * meanwhile becomes the next, in two cohorts, so that commands run while others wait for the disk.
 *
 * Reads go through it too: what is queued but not yet on disk lies over the store, so that two commands never
 * win the same label or id.
 */
export class Committer {
  readonly #store: Store;
  readonly #options: CommitterOptions;
  readonly #overlay = new Map<string, Write>();
  #queue: Queued[] = [];
  #writing: Queued[] = [];
  #eager = 0;
  #bytes = 0;
  #sequence: number;
  #pumping = false;
  #lazyTimer: NodeJS.Timeout | undefined;
  #fence: HerdError | undefined;
  #abandoned = false;
  #recovery: Promise<void> | undefined;
  #barriers: { unit: Queued; release: () => void }[] = [];

  constructor(store: Store, sequence: number, options: CommitterOptions) {
    this.#store = store;
    this.#sequence = sequence;
    this.#options = options;
  }

  /** The error every command meets once the store could not be written, or undefined. */
  get fence(): HerdError | undefined {
    return this.#fence;
  }

  /** The value that a command sees: queued writes first, then what is on disk. */
  get(key: string): string | undefined {
    if (this.#fence) throw this.#fence;
    const over = this.#overlay.get(key);
    if (over === undefined) return this.#store.get(key);
    return over.type === "put" ? over.value : undefined;
  }

  /** Whether a write to this key is not on disk yet. */
  queues(key: string): boolean {
    return this.#overlay.has(key);
  }

  /** @throws HerdError `overloaded` or `fenced`, before anything changes. */
  admit(operation: string, refusable = false): void {
    if (this.#fence) throw this.#fence;
    if (!refusable) return;
    if (this.#eager < this.#options.maxInFlight && this.#bytes < this.#options.maxInFlightBytes) return;
    throw new HerdError({
      category: "worker_busy",
      reason: "overloaded",
      message: `${this.#eager} commands (${this.#bytes} bytes) are waiting for the disk`,
      nextAction: "send it again a little later",
      operation,
      retryAfterMs: 100,
    });
  }

  /** Queues one unit. Its callbacks come in the order of the calls. */
  submit(unit: Unit): void {
    let bytes = 0;
    for (const operation of unit.operations) {
      bytes += operation.key.length + (operation.type === "put" ? operation.value.length : 0);
    }
    const queued: Queued = Object.assign(unit, { bytes, done: false });
    for (const write of unit.operations) {
      write.unit = queued;
      this.#overlay.set(write.key, write);
    }
    this.#queue.push(queued);
    this.#bytes += bytes;
    if (!unit.lazy) this.#eager++;
    if (this.#fence) {
      this.#giveUp(this.#queue.splice(0), this.#fence);
    } else if (!unit.lazy) {
      this.#pump();
    } else {
      this.#lazyTimer ??= setTimeout(() => this.#pump(), this.#options.lazyMs);
    }
  }

  /** Resolves when everything that was queued before the call is on disk or undone. */
  settled(): Promise<void> {
    const last = this.#queue.at(-1) ?? this.#writing.findLast((unit) => !unit.done);
    if (!last) return Promise.resolve();
    return new Promise((release) => {
      this.#barriers.push({ unit: last, release });
      this.#pump();
    });
  }

  /** While a failed batch is being recovered the store may be closed: reads and commands wait for this. */
  get recovery(): Promise<void> | undefined {
    return this.#recovery;
  }

  /** True while nothing waits for the disk. */
  get idle(): boolean {
    return this.#queue.length === 0 && this.#writing.length === 0;
  }

  /** Forgets everything that is not on disk, as the end of the process would. */
  abandon(): void {
    this.#abandoned = true;
    this.#queue = [];
    this.end();
  }

  /** Takes nothing any more: what comes after the store was closed must never open it again. */
  end(): void {
    clearTimeout(this.#lazyTimer);
    this.#overlay.clear();
    this.#fence ??= new HerdError({
      category: "internal_failure",
      reason: "herd_closed",
      message: "The herd is closed",
      nextAction: "open it again with createHerd",
    });
  }

  #pump(): void {
    if (this.#pumping || this.#fence) return;
    this.#pumping = true;
    clearTimeout(this.#lazyTimer);
    this.#lazyTimer = undefined;
    // Commands of the same turn of the event loop share the first batch.
    queueMicrotask(() => void this.#run());
  }

  async #run(): Promise<void> {
    for (let units = this.#take(); units.length > 0; units = this.#take()) {
      let writing = this.#write(units);
      for (;;) {
        const error = await writing;
        if (this.#abandoned) return;
        if (error) {
          this.#recovery = this.#recover(units, error).finally(() => (this.#recovery = undefined));
          await this.#recovery;
          break;
        }
        // The disk works on the next batch while the commands of this one go on.
        const next = this.#take();
        const nextWriting = next.length > 0 ? this.#write(next) : undefined;
        this.#release(units);
        if (nextWriting === undefined) break;
        units = next;
        writing = nextWriting;
      }
    }
    this.#writing = [];
    this.#pumping = false;
  }

  /** The next cohort: at most half of what is in flight, but not less than 32 commands. */
  #take(): Queued[] {
    if (this.#fence) return [];
    this.#writing = this.#queue.splice(0, Math.max(32, Math.ceil(this.#eager / 2)));
    return this.#writing;
  }

  /** @returns what went wrong, or undefined when the batch is on disk. */
  async #write(units: readonly Queued[]): Promise<Error | undefined> {
    if (units.some((unit) => unit.lazy)) passFailpoint("ack.before-flush");
    passFailpoint("step.before-commit");
    const operations: Operation[] = [];
    for (const unit of units) for (const operation of unit.operations) operations.push(operation);
    operations.push(sequenceOperation(this.#sequence + 1));
    try {
      await this.#store.batch(operations, { sync: this.#options.sync });
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
    this.#sequence++;
    passFailpoint("step.after-commit");
    return undefined;
  }

  #release(units: readonly Queued[]): void {
    for (const unit of units) this.#forget(unit);
    for (const unit of units) {
      unit.landed();
      this.#lift(unit);
    }
  }

  #giveUp(units: readonly Queued[], error: HerdError): void {
    for (const unit of units) this.#forget(unit);
    for (const unit of units) {
      unit.undone(error);
      this.#lift(unit);
    }
  }

  #forget(unit: Queued): void {
    unit.done = true;
    this.#bytes -= unit.bytes;
    if (!unit.lazy) this.#eager--;
    for (const { key } of unit.operations) {
      if (this.#overlay.get(key)?.unit === unit) this.#overlay.delete(key);
    }
  }

  #lift(unit: Queued): void {
    if (this.#barriers.length === 0) return;
    const lifted = this.#barriers.filter((barrier) => barrier.unit === unit);
    if (lifted.length === 0) return;
    this.#barriers = this.#barriers.filter((barrier) => barrier.unit !== unit);
    for (const barrier of lifted) barrier.release();
  }

  /**
   * After a failed batch nothing more is written on that database handle: LevelDB would acknowledge batches
   * that the next opening does not find. So the store is reopened, asked whether the batch landed, and the
   * batch written again; when it alone cannot be written, its commands are tried one by one.
   */
  async #recover(units: Queued[], failure: Error): Promise<void> {
    let last = failure;
    for (let attempt = 1; attempt <= this.#options.attempts; attempt++) {
      await this.#options.pause(this.#options.pauseMs);
      const outcome = await this.#again(units);
      if (outcome === undefined) return this.#release(units);
      last = outcome;
    }
    if ((await this.#again([])) === undefined) await this.#oneByOne(units);
    else this.#close(units, last);
  }

  /** Reopens and writes once more, unless the failed batch turns out to have landed. */
  async #again(units: readonly Queued[]): Promise<Error | undefined> {
    try {
      await this.#store.reopen();
    } catch (error) {
      return error as Error;
    }
    if (landed(this.#store, this.#sequence + 1)) {
      this.#sequence++;
      return undefined;
    }
    return this.#write(units);
  }

  async #oneByOne(units: Queued[]): Promise<void> {
    const broken = new Map<string, HerdError>();
    for (const [index, unit] of units.entries()) {
      const before = unit.groups.map((group) => broken.get(group)).find((error) => error !== undefined);
      if (before) {
        for (const group of unit.groups) broken.set(group, before);
        this.#giveUp([unit], before);
        continue;
      }
      const error = await this.#write([unit]);
      if (!error) {
        this.#release([unit]);
        continue;
      }
      const undone = undoneByStore(error);
      for (const group of unit.groups) broken.set(group, undone);
      this.#giveUp([unit], undone);
      if ((await this.#again([])) !== undefined) return this.#close(units.slice(index + 1), error);
    }
    // What queued up behind a broken command was computed from it.
    const left: Queued[] = [];
    for (const unit of this.#queue.splice(0)) {
      const before = unit.groups.map((group) => broken.get(group)).find((error) => error !== undefined);
      if (before === undefined) {
        left.push(unit);
        continue;
      }
      for (const group of unit.groups) broken.set(group, before);
      this.#giveUp([unit], before);
    }
    this.#queue = [...left, ...this.#queue];
  }

  #close(units: readonly Queued[], cause: Error): void {
    this.#fence = new HerdError({
      category: "internal_failure",
      reason: "fenced",
      message: `The store cannot be written any more (${messageOf(cause)}); the outcome of commands under way is unknown`,
      nextAction: "make the disk writable again and reopen the herd",
      cause,
    });
    this.#options.fenced(this.#fence);
    this.#giveUp([...units, ...this.#queue.splice(0)], this.#fence);
  }
}

function undoneByStore(cause: Error): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "undone",
    message: `The command could not be stored and was undone: ${messageOf(cause)}`,
    nextAction: "make sure that the disk takes writes, then try again",
    rollbackOccurred: true,
    retryAttempted: true,
    cause,
  });
}
