/** Requests, outcomes, asks, deliveries and labels: what later commands of the same assignment look at. */
const KINDS = new Set(["q", "u", "k", "d", "l"]);
/** Rows whose text is longer than this are not kept as objects. */
const LONGEST = 16 * 1024;
const GENERATION = 2_048;

/**
 * Records as they were written, so that what a command wrote is not parsed again by the next one. Records are never
 * changed in place: who wants another one writes another one. Two generations: when the younger is full, the older goes.
 */
export class RecentRecords {
  #young = new Map<string, unknown>();
  #old = new Map<string, unknown>();

  get(key: string): unknown {
    if (!KINDS.has(key[0] as string)) return undefined;
    return this.#young.get(key) ?? this.#old.get(key);
  }

  /** @param length of the record's text; a deleted row has no record. */
  set(key: string, record: unknown, length: number): void {
    if (!KINDS.has(key[0] as string)) return;
    if (record === undefined || length > LONGEST) return this.delete(key);
    this.#young.set(key, record);
    if (this.#young.size < GENERATION) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
