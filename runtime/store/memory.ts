import { setImmediate as nextTurn } from "node:timers/promises";
import { StoreLockedError, type Operation, type Range, type Row, type Store, type StoreHolder } from "./store.ts";

/**
 * A store in memory, for tests and for herds whose work may be lost. The rows belong to the returned object: they
 * survive `close()` and `open()`, so that a test can let a herd crash and open the store again.
 *
 * It behaves as one on disk does: the same order of keys, the same refusals, and no batch or range without a turn of
 * the event loop (a store that answers at once lets busy callers starve every timer and socket).
 */
export function memoryStore(): Store {
  return new MemoryStore();
}

class MemoryStore implements Store {
  readonly kind = "memory";
  readonly directory = undefined;
  readonly #rows = new Map<string, string>();
  readonly #keys = new SortedKeys();
  #holder: StoreHolder | undefined;
  #batchFailed = false;
  #underWay: Promise<void> = Promise.resolve();

  async open(): Promise<void> {
    if (this.#holder) throw new StoreLockedError("memory", this.#holder);
    this.#holder = { pid: process.pid, command: "this process", since: new Date().toISOString() };
    this.#batchFailed = false;
    await this.#underWay;
  }

  get(key: string): string | undefined {
    this.#mustBeOpen();
    return this.#rows.get(key.toWellFormed());
  }

  async range({ gte, lt, limit = Infinity, reverse = false }: Range): Promise<Row[]> {
    this.#mustBeOpen();
    const keys = this.#keys.between(gte.toWellFormed(), lt.toWellFormed(), limit, reverse);
    const rows = keys.map((key): Row => [key, this.#rows.get(key) as string]);
    await nextTurn();
    return rows;
  }

  async batch(operations: readonly Operation[], _options: { sync: boolean }): Promise<void> {
    this.#mustBeOpen();
    if (this.#batchFailed) throw new Error("a batch failed in the store in memory: reopen it first");
    const committed = this.#commit(operations);
    this.#underWay = committed.catch(() => {});
    await committed;
  }

  async reopen(): Promise<void> {
    await this.close();
    await this.open();
  }

  async close(): Promise<void> {
    this.#holder = undefined;
    await this.#underWay;
  }

  async #commit(operations: readonly Operation[]): Promise<void> {
    await nextTurn();
    // All are checked before the first is applied: none, or all.
    for (const operation of operations) {
      if (typeof operation.key !== "string" || (operation.type === "put" && typeof operation.value !== "string")) {
        this.#batchFailed = true;
        throw new TypeError("keys and values in a batch must be strings");
      }
    }
    for (const operation of operations) {
      // As UTF-8 on a disk would: a lone surrogate reads back as U+FFFD.
      const key = operation.key.toWellFormed();
      if (operation.type === "put") {
        if (!this.#rows.has(key)) this.#keys.add(key);
        this.#rows.set(key, operation.value.toWellFormed());
      } else if (this.#rows.delete(key)) {
        this.#keys.remove(key);
      }
    }
  }

  #mustBeOpen(): void {
    if (!this.#holder) throw new Error("the store in memory is not open");
  }
}

/** At twice this many keys a chunk is split in two, so that an insertion moves few keys, however many there are. */
const CHUNK = 256;

/** A sorted set of keys, kept in sorted chunks. */
class SortedKeys {
  readonly #chunks: string[][] = [];

  /** Adds a key that is not in the set. */
  add(key: string): void {
    const at = this.#chunkFor(key);
    const chunk = this.#chunks[at];
    if (!chunk) {
      this.#chunks.push([key]);
      return;
    }
    chunk.splice(lowerBound(chunk, key), 0, key);
    if (chunk.length >= 2 * CHUNK) this.#chunks.splice(at + 1, 0, chunk.splice(CHUNK));
  }

  /** Removes a key that is in the set. */
  remove(key: string): void {
    const at = this.#chunkFor(key);
    const chunk = this.#chunks[at] as string[];
    chunk.splice(lowerBound(chunk, key), 1);
    if (chunk.length === 0) this.#chunks.splice(at, 1);
  }

  /** The first `limit` keys with `gte <= key < lt`, or the last ones, last first. */
  between(gte: string, lt: string, limit: number, reverse: boolean): string[] {
    if (compareBytes(gte, lt) >= 0) return [];
    const found: string[] = [];
    const step = reverse ? -1 : 1;
    let at = this.#chunkFor(reverse ? lt : gte);
    for (let chunk = this.#chunks[at]; chunk && found.length < limit; chunk = this.#chunks[(at += step)]) {
      const passed = reverse
        ? compareBytes(chunk.at(-1) as string, gte) < 0
        : compareBytes(chunk[0] as string, lt) >= 0;
      if (passed) break;
      const part = chunk.slice(lowerBound(chunk, gte), lowerBound(chunk, lt));
      if (reverse) part.reverse();
      for (const key of part.slice(0, limit - found.length)) found.push(key);
    }
    return found;
  }

  /** Index of the last chunk that begins at or before the key; 0 when there is none. */
  #chunkFor(key: string): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareBytes(this.#chunks[middle]?.[0] as string, key) <= 0) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}

/** Index of the first key that is not before the given one. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareBytes(keys[middle] as string, key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Compares two well-formed strings as their UTF-8 bytes compare. JavaScript's `<` compares UTF-16 units, in which the
 * surrogates of characters above U+FFFF stand before U+E000.
 */
function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const unitA = a.charCodeAt(at);
    const unitB = b.charCodeAt(at);
    if (unitA !== unitB) return rank(unitA) - rank(unitB);
  }
  return a.length - b.length;
}

function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
