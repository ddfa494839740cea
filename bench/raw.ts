import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Level } from "level";
import { LEVEL_OPTIONS } from "../runtime/store/level.ts";

/** What one assignment with one question costs at least: four commits that wait for each other. */
export const WRITES_PER_CYCLE = 4;
/** What an answer to a parked ask costs at least, until the next ask is parked. */
export const WRITES_PER_RESUME = 2;
export const VALUE_BYTES = 1_000;
/** Far more values than fit one compressed block, so that their repetition cannot be compressed away. */
const POOL_SIZE = 4_096;

/**
 * Measures how many cycles a second this machine's disk allows when nothing but LevelDB is in the way.
 *
 * A cycle is some writes one after another, each awaited; a write puts 1,000 incompressible bytes under a fresh key.
 * Writes go through a first-in-first-out pump without a cap: while one batch is being written with fsync, everything
 * queued meanwhile becomes the next. LevelDB (classic-level, what `level` is under Node) has the product's options.
 *
 * @param options.concurrency How many cycles run at once.
 * @param options.seconds For how long new cycles are begun; there is no warm-up, so give it some seconds.
 * @param options.directory Folder on the disk to measure; the database lies in `raw/` below it and is removed again.
 * @returns Finished cycles divided by the seconds until the last had finished.
 * @throws Error when the folder cannot be written, or a batch fails.
 */
export async function rawCycles(options: {
  concurrency: number;
  seconds: number;
  directory: string;
  /** How many writes one after another are a cycle; four unless set. */
  writes?: number;
}): Promise<{ cyclesPerSecond: number }> {
  const { writes = WRITES_PER_CYCLE } = options;
  const location = join(options.directory, "raw");
  const db = new Level<string, Buffer>(location, { ...LEVEL_OPTIONS, valueEncoding: "buffer", errorIfExists: true });
  const values = Array.from({ length: POOL_SIZE }, () => randomBytes(VALUE_BYTES));
  await db.open();
  try {
    const write = pump(db, values);
    const began = performance.now();
    const end = began + options.seconds * 1_000;
    let cycles = 0;
    const caller = async (): Promise<void> => {
      while (performance.now() < end) {
        for (let n = 0; n < writes; n++) await write();
        cycles++;
      }
    };
    await Promise.all(Array.from({ length: options.concurrency }, caller));
    return { cyclesPerSecond: cycles / ((performance.now() - began) / 1_000) };
  } finally {
    await db.close();
    await rm(location, { recursive: true, force: true });
  }
}

interface Put {
  type: "put";
  key: string;
  value: Buffer;
}

/** Returns `write()`: it puts the next value under the next key and resolves when its batch is on disk. */
function pump(db: Level<string, Buffer>, values: readonly Buffer[]): () => Promise<void> {
  let written = 0;
  let queued: { put: Put; done: PromiseWithResolvers<void> }[] = [];
  let pumping = false;

  const run = async (): Promise<void> => {
    pumping = true;
    while (queued.length > 0) {
      const batch = queued;
      queued = [];
      try {
        await db.batch(
          batch.map(({ put }) => put),
          { sync: true },
        );
        for (const { done } of batch) done.resolve();
      } catch (error) {
        for (const { done } of batch) done.reject(error);
      }
    }
    pumping = false;
  };

  return () => {
    const n = written++;
    const key = `raw!${String(n).padStart(12, "0")}`;
    const done = Promise.withResolvers<void>();
    queued.push({ put: { type: "put", key, value: values[n % values.length] as Buffer }, done });
    if (!pumping) void run();
    return done.promise;
  };
}
