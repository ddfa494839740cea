import { HerdError } from "../errors.ts";
import { keys, prefixed } from "./keys.ts";
import type { Operation, Store } from "./store.ts";

/**
 * Every batch carries its number in a ring of keys. LevelDB can lose batches in the middle of its log without
 * an error; the ring shows such a gap at the next opening.
 */
const RING = 65_536;

/** The operation that marks a batch as the n-th of this store. */
export function sequenceOperation(sequence: number): Operation {
  return { type: "put", key: keys.sequence(sequence % RING), value: String(sequence) };
}

/** Whether the batch with this number is in the store: a batch that failed may have landed all the same. */
export function landed(store: Store, sequence: number): boolean {
  return store.get(keys.sequence(sequence % RING)) === String(sequence);
}

/**
 * Reads the ring.
 * @returns the number of the last batch, 0 for a new store.
 * @throws HerdError `store_damaged` when a batch that must be there is missing.
 */
export async function readSequence(store: Store): Promise<number> {
  const rows = await store.range(prefixed("s!"));
  const slots = new Float64Array(RING);
  let last = 0;
  for (const [key, value] of rows) {
    const sequence = Number(value);
    slots[Number(key.slice(2))] = sequence;
    if (sequence > last) last = sequence;
  }
  for (let sequence = Math.max(1, last - RING + 1); sequence <= last; sequence++) {
    if (slots[sequence % RING] !== sequence) throw damaged(store, sequence, last);
  }
  return last;
}

function damaged(store: Store, missing: number, last: number): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "store_damaged",
    message: `The store${store.directory ? ` at ${store.directory}` : ""} is damaged: batch ${missing} of ${last} is missing`,
    nextAction: "copy the folder, restore your last backup, and keep the copy to find out what is missing",
    operation: "open",
    details: { missing, last },
  });
}
