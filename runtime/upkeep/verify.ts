import { copyFile, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { HerdError, messageOf } from "../errors.ts";
import { noStore } from "../opening.ts";
import { levelStore } from "../store/level.ts";
import { Inspection, type Problem } from "./inspection.ts";

/** What a verification found. Without problems, everything that the store says fits together. */
export interface Verification {
  /** Absolute. */
  directory: string;
  rows: number;
  owners: number;
  workers: number;
  problems: Problem[];
}

/** How often a copy is made again because the database changed under it, or because it shows something wrong. */
const ATTEMPTS = 3;

/**
 * Verifies everything in the store of a herd's folder: that no batch is missing, that each row can be read, and that
 * what they say of each other fits. It looks at a copy, because opening a database changes its files; so it may run while
 * another process has the store. The copy needs as much room as the store, in the temporary folder.
 * @param options.signal stops it, and removes the copy.
 * @throws HerdError `no_store`, `store_format`; the signal's reason; Error of the file system when no copy can be made.
 */
export async function verifyStore(directory: string, options: { signal?: AbortSignal } = {}): Promise<Verification> {
  const folder = resolve(directory);
  for (let attempt = 1; ; attempt++) {
    const found = await verifyCopy(folder, options.signal);
    // A copy taken while the database was written may be torn; what is really wrong is so in the next one too.
    if (found.problems.length === 0 || attempt === ATTEMPTS) return found;
    await pause(100);
  }
}

async function verifyCopy(directory: string, signal: AbortSignal | undefined): Promise<Verification> {
  const copy = await mkdtemp(join(tmpdir(), "pi-herd-verify-"));
  try {
    await copyDatabase(directory, join(copy, "store"), signal);
    return { directory, ...(await inspect(copy, signal)) };
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

async function inspect(copy: string, signal: AbortSignal | undefined): Promise<Omit<Verification, "directory">> {
  const store = levelStore(copy, { create: false });
  try {
    await store.open();
  } catch (error) {
    return { rows: 0, owners: 0, workers: 0, problems: [{ message: messageOf(error).replaceAll(copy, "the store") }] };
  }
  try {
    const inspection = new Inspection(store, signal);
    await inspection.run();
    const { rows, owners, workers, problems } = inspection;
    return { rows, owners, workers, problems };
  } finally {
    await store.close();
  }
}

/**
 * Copies the files of a database that may be in use, so that the copy is one that a crash could have left: first what
 * names the tables, then the logs, the newest first, so that none ends before the next one begins, then the tables.
 * A file that a compaction removes meanwhile means to begin again.
 */
async function copyDatabase(directory: string, to: string, signal: AbortSignal | undefined): Promise<void> {
  const from = join(directory, "store");
  for (let attempt = 1; ; attempt++) {
    await rm(to, { recursive: true, force: true });
    await mkdir(to, { mode: 0o700 });
    const names = await readdir(from).catch((error: NodeJS.ErrnoException) => {
      throw error.code === "ENOENT" || error.code === "ENOTDIR" ? noStore(directory) : error;
    });
    if (names.length === 0) throw noStore(directory);
    try {
      for (const name of inOrder(names)) {
        signal?.throwIfAborted();
        await copyFile(join(from, name), join(to, name));
      }
      return;
    } catch (error) {
      if (error instanceof HerdError || (error as NodeJS.ErrnoException).code !== "ENOENT" || attempt === 10)
        throw error;
    }
  }
}

function inOrder(names: readonly string[]): string[] {
  const numbered = (name: string) => Number.parseInt(name, 10);
  const logs = names.filter((name) => name.endsWith(".log")).toSorted((a, b) => numbered(b) - numbered(a));
  const tables = names.filter((name) => /\.(ldb|sst)$/.test(name));
  const first = names.filter((name) => name === "CURRENT" || name.startsWith("MANIFEST-"));
  return [...first, ...logs, ...tables];
}
