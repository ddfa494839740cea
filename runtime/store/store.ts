/**
 * The store port: everything the engine asks of a place that keeps rows. LevelDB on disk and the memory
 * store implement it; the contract suite in `contract.ts` says what any other implementation must keep.
 *
 * Keys and values are well-formed strings; keys order by their UTF-8 bytes. The engine serialises its own batches:
 * it never has two `batch` calls under way at once, and after a failed one it calls `reopen` before anything else.
 */
export interface Store {
  /** Names the implementation in messages, for example `level`. */
  readonly kind: string;
  /** Folder for what lives beside the rows (session files, results), or undefined when there is no disk. */
  readonly directory: string | undefined;
  /**
   * Opens the store and takes its lock.
   * @throws StoreLockedError when another process (or another store of this process) holds it, or this one is open.
   */
  open(): Promise<void>;
  /**
   * The committed value under a key. Synchronous, because claims are decided inside one synchronous step.
   * @throws Error when the store is not open.
   */
  get(key: string): string | undefined;
  /**
   * Committed rows with `gte <= key < lt` in key order, or the reverse; `limit` bounds how many.
   * Shows the rows as they were at the call, whatever is written while it is read. Rejects when the store is not open.
   */
  range(bounds: Range): Promise<Row[]>;
  /**
   * Writes all operations or none; of several for one key the last counts. Resolves when they would survive what
   * `sync` promises: the end of the machine (true) or of the process (false). Every call lets timers and sockets have
   * a turn. The caller leaves the array alone until then.
   *
   * A rejection leaves open whether the batch landed; until `reopen` every further batch is refused, because a log
   * whose tail is damaged may lose what is appended to it.
   */
  batch(operations: readonly Operation[], options: { sync: boolean }): Promise<void>;
  /**
   * Closes and opens the database again, so that reads show only what is really on disk. When it rejects, the store is
   * closed, and `reopen` may be called again.
   */
  reopen(): Promise<void>;
  /**
   * Writes every committed row, as all of them are at the call, into a store of the same kind in another folder, which
   * has none yet. Absent where there is no folder.
   * @returns how many rows were written.
   */
  copyTo?(directory: string): Promise<number>;
  /** Releases the lock, after a batch that is under way. Resolves at once when the store is not open. */
  close(): Promise<void>;
}

/** Which rows are read, and in which order. */
export interface Range {
  /** The first key, if it is there. */
  gte: string;
  /** The key before which the range ends. */
  lt: string;
  /** How many rows at most; all unless set. */
  limit?: number;
  /** From the last key to the first. */
  reverse?: boolean;
}

/** A committed row. */
export type Row = readonly [key: string, value: string];

/** What a batch does to one key. */
export type Operation = { type: "put"; key: string; value: string } | { type: "del"; key: string };

/** Who holds a locked store, as far as its holder file tells. */
export interface StoreHolder {
  pid: number;
  /** A short form of the command line, without its options. */
  command: string;
  /** When it opened the store, ISO 8601. */
  since: string;
}

/** Another process, or another herd of this one, has the store open. */
export class StoreLockedError extends Error {
  override readonly name = "StoreLockedError";
  readonly location: string;
  readonly holder: StoreHolder | undefined;

  constructor(location: string, holder: StoreHolder | undefined, options?: ErrorOptions) {
    super(`the store at ${location} is in use`, options);
    this.location = location;
    this.holder = holder;
  }
}
