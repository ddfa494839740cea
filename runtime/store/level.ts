import { access, constants, mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Level } from "level";
import { holderFile, readHolder } from "./holder.ts";
import { StoreLockedError, type Operation, type Range, type Row, type Store, type StoreHolder } from "./store.ts";

const MiB = 1024 * 1024;

/**
 * How LevelDB is opened, tuned for many small batches with fsync. The raw benchmark uses the same.
 *
 * - `writeBufferSize`: a write buffer of 16 MiB absorbs rows that are rewritten often before they reach a table, and
 *   keeps the replay after a crash (at most two buffers) in tenths of a second.
 * - `maxFileSize`: one buffer becomes a few tables, not many, so fewer files are open and fewer compactions run.
 * - `cacheSize`: blocks that the synchronous `get` should find in memory.
 * - `maxOpenFiles`: below the usual limit of 1,024 descriptors, which sockets and session files share.
 * - `compression`: rows are JSON, which Snappy halves at little cost in a thread of its own.
 */
export const LEVEL_OPTIONS = {
  writeBufferSize: 16 * MiB,
  maxFileSize: 8 * MiB,
  cacheSize: 32 * MiB,
  maxOpenFiles: 512,
  compression: true,
} as const;

/** A range is fetched in slices: few trips for 65,536 small rows, none that holds the event loop for long. */
const SLICE_ROWS = 2_048;
const SLICE_BYTES = 256 * 1024;

/**
 * Stores open in this process, by device and inode. LevelDB's own check must never see a second open from the same
 * process: it closes a descriptor of the lock file, and with that POSIX drops the lock the first store holds. Kept on
 * `globalThis`, because two copies of this package in one process share that fate.
 */
const REGISTRY = Symbol.for("pi-herd.store.open");
const shared = globalThis as { [REGISTRY]?: Map<string, StoreHolder> };
const openHere = (shared[REGISTRY] ??= new Map());

/**
 * A store in LevelDB: the rows in `<directory>/store/`, and while it is open who holds it in `<directory>/holder.json`.
 *
 * Nothing is touched before `open()`, which rejects with `StoreLockedError` when the store is in use, and otherwise
 * with an Error that names the folder and carries the `code` (`EROFS`, `ENOTDIR`, `LEVEL_CORRUPTION` …) and the `cause`.
 *
 * @param directory Where the store lives; created (0700) by `open()`.
 * @param options `create: false` makes `open()` reject with code `ENOENT` when there is no store yet, and create nothing.
 */
export function levelStore(directory: string, options: { create?: boolean } = {}): Store {
  return new LevelStore(resolve(directory), options.create ?? true);
}

class LevelStore implements Store {
  readonly kind = "level";
  readonly directory: string;
  readonly #files: string;
  readonly #holderFile: string;
  readonly #create: boolean;
  #open: { db: Level<string, string>; identity: string; holder: StoreHolder } | undefined;
  #batchFailed = false;
  /** `open`, `reopen` and `close` run one after another. */
  #lifecycle: Promise<void> = Promise.resolve();

  constructor(directory: string, create: boolean) {
    this.directory = directory;
    this.#files = join(directory, "store");
    this.#holderFile = holderFile(directory);
    this.#create = create;
  }

  open(): Promise<void> {
    return this.#inTurn(() => this.#openNow());
  }

  close(): Promise<void> {
    return this.#inTurn(() => this.#closeNow());
  }

  reopen(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#closeNow();
      await this.#openNow();
    });
  }

  get(key: string): string | undefined {
    // As a buffer: for a string with non-ASCII characters classic-level 3.0 may look up a shortened key.
    return this.#database().getSync<Buffer, string>(Buffer.from(key), { keyEncoding: "buffer" });
  }

  async range(bounds: Range): Promise<Row[]> {
    const db = this.#database();
    const iterator = db.iterator({ ...bounds, highWaterMarkBytes: SLICE_BYTES });
    const rows: Row[] = [];
    try {
      for (;;) {
        const slice = await iterator.nextv(SLICE_ROWS);
        if (slice.length === 0) return rows;
        for (const row of slice) rows.push(row);
      }
    } catch (error) {
      throw this.#open?.db === db ? error : this.#notOpen(error);
    } finally {
      await iterator.close();
    }
  }

  async batch(operations: readonly Operation[], { sync }: { sync: boolean }): Promise<void> {
    const db = this.#database();
    if (this.#batchFailed) throw new Error(`a batch failed in the store at ${this.directory}: reopen it first`);
    // LevelDB never hears of an empty batch, which would give the event loop no turn.
    if (operations.length === 0) return nextTurn();
    try {
      await db.batch(operations as Operation[], { sync });
    } catch (error) {
      if (this.#open?.db === db) this.#batchFailed = true;
      throw error;
    }
  }

  async copyTo(directory: string): Promise<number> {
    // An iterator shows the rows as they were when it was made, whatever is written meanwhile.
    const iterator = this.#database().iterator({ highWaterMarkBytes: SLICE_BYTES });
    try {
      const files = join(directory, "store");
      await makeFolder(files);
      const copy = new Level<string, string>(files, { ...LEVEL_OPTIONS, errorIfExists: true });
      await copy.open();
      try {
        for (let rows = 0; ;) {
          const slice = await iterator.nextv(SLICE_ROWS);
          const operations = slice.map(([key, value]) => ({ type: "put" as const, key, value }));
          await copy.batch(operations, { sync: slice.length < SLICE_ROWS });
          rows += slice.length;
          if (slice.length === 0) return rows;
        }
      } finally {
        await copy.close();
      }
    } finally {
      await iterator.close();
    }
  }

  async #openNow(): Promise<void> {
    if (this.#open) throw new StoreLockedError(this.directory, this.#open.holder);
    const identity = await this.#prepareFolder();
    const other = openHere.get(identity);
    if (other) throw new StoreLockedError(this.directory, other);

    const holder = { pid: process.pid, command: shortCommand(process.argv), since: new Date().toISOString() };
    openHere.set(identity, holder);
    const db = new Level<string, string>(this.#files, { ...LEVEL_OPTIONS, createIfMissing: this.#create });
    try {
      await db.open();
    } catch (error) {
      openHere.delete(identity);
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      if (codeOf(cause) === "LEVEL_LOCKED") {
        throw new StoreLockedError(this.directory, await this.#readHolder(), { cause: error });
      }
      throw this.#cannotOpen(cause, error);
    }
    this.#batchFailed = false;
    this.#open = { db, identity, holder };
    // Whoever only looks has it for a moment, and is no reason for others to look again.
    if (this.#create) await this.#writeHolder(holder);
  }

  async #closeNow(): Promise<void> {
    if (!this.#open) return;
    const { db, identity } = this.#open;
    this.#open = undefined;
    // Before the lock is free: afterwards the file may be the next holder's.
    if (this.#create) await removeQuietly(this.#holderFile);
    try {
      await db.close();
    } finally {
      openHere.delete(identity);
    }
  }

  /** Makes sure that the folder is there and can be written; returns what identifies it however it is reached. */
  async #prepareFolder(): Promise<string> {
    try {
      if (this.#create) await makeFolder(this.#files);
      await this.#assertWhole();
      // With the dot a regular file of that name is ENOTDIR.
      await access(`${this.#files}/.`, constants.R_OK | constants.W_OK | constants.X_OK);
      const { dev, ino } = await stat(this.#files, { bigint: true });
      return `${dev}:${ino}`;
    } catch (error) {
      if (this.#create || codeOf(error) !== "ENOENT") throw this.#cannotOpen(error);
      throw withCode(new Error(`there is no store at ${this.directory} yet`, { cause: error }), "ENOENT");
    }
  }

  /** LevelDB would take a folder without this file for an empty one, and delete what is there. */
  async #assertWhole(): Promise<void> {
    const names = await readdir(this.#files);
    if (names.includes("CURRENT")) return;
    const left = names.find((name) => name.startsWith("MANIFEST-") || /\.(ldb|sst|log)$/.test(name));
    if (left !== undefined) {
      throw withCode(new Error(`its file CURRENT is missing, though there is ${left}`), "LEVEL_CORRUPTION");
    }
    if (!this.#create) throw withCode(new Error("there is no database"), "ENOENT");
  }

  /** The holder file is a courtesy to whoever is refused: that it cannot be written (disk full) stops nothing. */
  async #writeHolder(holder: StoreHolder): Promise<void> {
    try {
      await writeFile(this.#holderFile, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
    } catch {
      await removeQuietly(this.#holderFile);
    }
  }

  /** Whom the holder file names, unless it was left behind: by a process that ended, or whose pid is ours now. */
  async #readHolder(): Promise<StoreHolder | undefined> {
    const found = await readHolder(this.directory);
    return found?.pid === process.pid ? undefined : found;
  }

  #database(): Level<string, string> {
    if (!this.#open) throw this.#notOpen();
    return this.#open.db;
  }

  #notOpen(cause?: unknown): Error {
    return new Error(`the store at ${this.directory} is not open`, { cause });
  }

  #cannotOpen(reason: unknown, cause: unknown = reason): Error {
    const text = reason instanceof Error ? reason.message : String(reason);
    return withCode(new Error(`cannot open the store at ${this.directory}: ${text}`, { cause }), codeOf(reason));
  }

  #inTurn(action: () => Promise<void>): Promise<void> {
    const done = this.#lifecycle.then(action);
    this.#lifecycle = done.catch(() => {});
    return done;
  }
}

/** Creates a folder and its parents, for their owner alone. (Node's `recursive` says ENOENT where EROFS is the reason.) */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) === "EEXIST") return;
    if (codeOf(error) !== "ENOENT") throw error;
    await makeFolder(dirname(path));
    await mkdir(path, { mode: 0o700 });
  }
}

/** Program, script and sub-command. Whatever follows may hold a secret or a task's text, so it is left out. */
function shortCommand([program = "node", script, first]: readonly string[]): string {
  const words = [basename(program)];
  if (script) words.push(join(basename(dirname(script)), basename(script)));
  if (first && /^[a-z][a-z-]{0,15}$/.test(first)) words.push(first);
  return words.join(" ");
}

async function removeQuietly(file: string): Promise<void> {
  await rm(file, { force: true }).catch(() => {});
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return typeof code === "string" ? code : undefined;
}

function withCode(error: Error, code: string | undefined): Error {
  return code === undefined ? error : Object.assign(error, { code });
}
