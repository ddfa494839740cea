import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** Version control's own folder: no part of what a person made, at any depth. */
const NEVER = ".git";

/** One folder with its regular files, or one that cannot be read. Paths are absolute. */
export type Visit = { folder: string; files: string[] } | { folder: string; unreadable: true };

export interface WalkOptions {
  /** Absolute paths of folders that are not entered. */
  leaveOut: ReadonlySet<string>;
  signal: AbortSignal;
}

/**
 * Every folder at and below `root`. Symbolic links are not followed and are no files, so a link to a parent is no
 * loop; sockets, pipes and devices are no files either. A folder that goes away meanwhile is passed over.
 */
export async function* walk(root: string, { leaveOut, signal }: WalkOptions): AsyncGenerator<Visit> {
  const open = [root];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    signal.throwIfAborted();
    const visit: Visit = { folder, files: [] };
    try {
      for (const entry of await readdir(folder, { withFileTypes: true })) {
        const path = join(folder, entry.name);
        if (entry.isFile()) visit.files.push(path);
        else if (entry.isDirectory() && entry.name !== NEVER && !leaveOut.has(path)) open.push(path);
      }
    } catch (error) {
      if (isGone(error)) continue;
      yield { folder, unreadable: true };
      continue;
    }
    yield visit;
  }
}

/** The names of the folders directly in `root`, those that no census enters included. */
export async function foldersIn(root: string): Promise<string[]> {
  const entries = await readdir(root, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

/** Whether what failed did so because the file or folder is not there any more. */
export function isGone(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Does something with each item, so many at once that disks are busy and descriptors do not run out. */
export async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const atOnce = 16;
  for (let start = 0; start < items.length; start += atOnce) {
    await Promise.all(items.slice(start, start + atOnce).map((item) => work(item)));
  }
}
