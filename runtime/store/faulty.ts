import type { Operation, Range, Row, Store } from "./store.ts";

/** What a planned failure rejects with. */
export class InjectedFault extends Error {
  override readonly name = "InjectedFault";
}

/** Which batch is meant, and on which side of the disk. */
export interface FaultPoint {
  /** How many batches, counted from now, pass untouched before; 0 unless set. */
  after?: number;
  /** True: the rows reach the inner store first, and only the acknowledgement fails or waits. */
  landed?: boolean;
}

/** A batch that stands still. */
export interface HeldBatch {
  /** Resolves when the batch has arrived (with `landed`: when its rows are in the inner store). */
  readonly reached: Promise<void>;
  /** Lets it go on; may be called before it arrives. */
  release(): void;
}

/** What shall go wrong in a store made by `faultyStore`, in the order in which batches come. */
export class FaultPlan {
  /** Batches the store was asked for so far, failed and held ones included. */
  batches = 0;
  #failing = new Map<number, { landed: boolean }>();
  #held = new Map<number, { landed: boolean; pass(): Promise<void> }>();
  #failingReopens = 0;

  /** Makes the next `count` batches fail, after `point.after` good ones. */
  failBatches(count: number, { after = 0, landed = false }: FaultPoint = {}): void {
    for (let n = 1; n <= count; n++) this.#failing.set(this.batches + after + n, { landed });
  }

  /** Makes the next `count` calls of `reopen` close the store and then fail. */
  failReopens(count: number): void {
    this.#failingReopens = count;
  }

  /** Stops the next batch (after `point.after` others) until `release` is called. */
  holdBatch({ after = 0, landed = false }: FaultPoint = {}): HeldBatch {
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const pass = (): Promise<void> => {
      reached.resolve();
      return released.promise;
    };
    this.#held.set(this.batches + after + 1, { landed, pass });
    return { reached: reached.promise, release: released.resolve };
  }

  /**
   * For the faulty store: what the batch that comes now shall suffer before and after its rows land.
   * @internal
   */
  nextBatch(): { before: () => Promise<void>; after: () => Promise<void> } {
    const n = ++this.batches;
    const side = (landed: boolean) => async (): Promise<void> => {
      const held = this.#held.get(n);
      if (held?.landed === landed) await held.pass();
      if (this.#failing.get(n)?.landed === landed) throw new InjectedFault(`batch ${n} was made to fail`);
    };
    return { before: side(false), after: side(true) };
  }

  /**
   * For the faulty store: whether the `reopen` that comes now shall fail.
   * @internal
   */
  nextReopenFails(): boolean {
    return this.#failingReopens > 0 && this.#failingReopens-- > 0;
  }
}

/**
 * Wraps a store so that a test decides which batches fail, wait, or land without being acknowledged.
 *
 * @example
 * const plan = new FaultPlan();
 * const store = faultyStore(memoryStore(), plan);
 * plan.failBatches(1, { after: 2, landed: true }); // the third batch lands, and nobody is told
 *
 * @param inner The store that keeps the rows.
 * @param plan What goes wrong; it may be changed while the store is in use.
 */
export function faultyStore(inner: Store, plan: FaultPlan): Store {
  return new FaultyStore(inner, plan);
}

class FaultyStore implements Store {
  readonly kind: string;
  readonly directory: string | undefined;
  readonly #inner: Store;
  readonly #plan: FaultPlan;
  #batchFailed = false;
  /** Grows with every open and close: a batch held before its rows landed must not reach a later opening. */
  #opening = 0;

  constructor(inner: Store, plan: FaultPlan) {
    this.kind = inner.kind;
    this.directory = inner.directory;
    this.#inner = inner;
    this.#plan = plan;
  }

  async open(): Promise<void> {
    await this.#inner.open();
    this.#beginOpening();
  }

  get(key: string): string | undefined {
    return this.#inner.get(key);
  }

  range(bounds: Range): Promise<Row[]> {
    return this.#inner.range(bounds);
  }

  async batch(operations: readonly Operation[], options: { sync: boolean }): Promise<void> {
    const faults = this.#plan.nextBatch();
    if (this.#batchFailed) throw new Error("a batch failed in the faulty store: reopen it first");
    const opening = this.#opening;
    try {
      await faults.before();
      if (opening !== this.#opening) throw new InjectedFault("the store was closed while the batch was held");
      await this.#inner.batch(operations, options);
      await faults.after();
    } catch (error) {
      if (opening === this.#opening) this.#batchFailed = true;
      throw error;
    }
  }

  async reopen(): Promise<void> {
    if (this.#plan.nextReopenFails()) {
      await this.close();
      throw new InjectedFault("reopen was made to fail");
    }
    this.#beginOpening();
    await this.#inner.reopen();
  }

  async close(): Promise<void> {
    this.#beginOpening();
    await this.#inner.close();
  }

  #beginOpening(): void {
    this.#opening++;
    this.#batchFailed = false;
  }
}
