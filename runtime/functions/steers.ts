import type { SteerRecord } from "../kernel/records.ts";

/** What the owner said to a run, in order, and how much of it the function has read. */
export class Steers {
  readonly #records: SteerRecord[] = [];
  #read = 0;

  get unread(): number {
    return this.#records.length - this.#read;
  }

  /** Takes one in; the same one again changes nothing. */
  add(record: SteerRecord): void {
    if (this.#records.some(({ steerId }) => steerId === record.steerId)) return;
    this.#records.push(record);
    // One that was just accepted may arrive before older ones were read from their rows.
    this.#records.sort((a, b) => (a.number < b.number ? -1 : 1));
  }

  /** What came since the last call. */
  take(): SteerRecord[] {
    const fresh = this.#records.slice(this.#read);
    this.#read = this.#records.length;
    return fresh;
  }
}
