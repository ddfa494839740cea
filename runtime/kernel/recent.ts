/** Requests, outcomes, asks and deliveries: what later commands of the same assignment look at. */
const KINDS = new Set(["q", "u", "k", "d"]);
/** Rows whose text is longer than this are not kept as objects. */
const LONGEST = 16 * 1024;
const ENTRIES = 4_096;

/**
 * Records as they were written, so that what a command wrote is not parsed again by the next one. Records are never
 * changed in place: who wants another one writes another one.
 */
export class RecentRecords {
  readonly #records = new Map<string, unknown>();

  get(key: string): unknown {
    if (!KINDS.has(key[0] as string)) return undefined;
    return this.#records.get(key);
  }

  set(key: string, record: unknown, length: number): void {
    if (!KINDS.has(key[0] as string)) return;
    if (record === undefined || length > LONGEST) {
      this.#records.delete(key);
      return;
    }
    this.#records.set(key, record);
    if (this.#records.size <= ENTRIES) return;
    for (const oldest of this.#records.keys()) {
      this.#records.delete(oldest);
      break;
    }
  }

  delete(key: string): void {
    this.#records.delete(key);
  }

  clear(): void {
    this.#records.clear();
  }
}
