import { cp, mkdir, mkdtemp, readdir, realpath, rename, rm, rmdir } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import type { BackupReceipt } from "../api.ts";
import { HerdError, invalidRequest, messageOf } from "../errors.ts";
import type { Kernel } from "../kernel/kernel.ts";

/** What lies beside the rows and is worth keeping. What is missing of it is made again from the rows. */
const BESIDE = ["sessions", "results"];

/**
 * Copies a herd's folder, as it is at one moment, into a new or empty one. It is written beside the target and moved
 * there when it is whole, so a backup that was interrupted never looks like one.
 * @throws HerdError `no_disk`, `bad_backup` before anything is written, `backup_failed`.
 */
export async function backup(kernel: Kernel, target: string): Promise<BackupReceipt> {
  const { store } = kernel;
  if (store.directory === undefined || store.copyTo === undefined) throw noDisk(store.kind);
  const from = await realPathOf(store.directory);
  const directory = await realPathOf(target);
  await checkTarget(from, directory);
  let draft = "";
  try {
    await mkdir(dirname(directory), { recursive: true });
    draft = await mkdtemp(join(dirname(directory), `.${basename(directory)}.partial-`));
    let files = 0;
    // Before the rows: what they say later is made again, what they do not say yet would be a riddle.
    for (const name of BESIDE) files += await copyFolder(join(from, name), join(draft, name));
    await kernel.settled();
    const rows = await store.copyTo(draft);
    await rmdir(directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
    await rename(draft, directory);
    return { directory, rows, files };
  } catch (error) {
    if (draft !== "") await rm(draft, { recursive: true, force: true }).catch(() => undefined);
    throw error instanceof HerdError ? error : failed(directory, error);
  }
}

/** @throws HerdError `bad_backup` unless the target is new or empty, and outside of what is copied. */
async function checkTarget(from: string, directory: string): Promise<void> {
  if (isInside(directory, from)) throw refused(directory, "it is the herd's own folder, or inside of it");
  if (isInside(from, directory)) throw refused(directory, "the herd's folder is inside of it");
  let found: string[];
  try {
    found = await readdir(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return;
    throw refused(directory, code === "ENOTDIR" ? "it is a file" : messageOf(error));
  }
  if (found.length > 0) throw refused(directory, "it is not empty");
}

async function copyFolder(from: string, to: string): Promise<number> {
  let names: string[];
  try {
    names = await readdir(from);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
  await mkdir(to, { mode: 0o700 });
  let copied = 0;
  for (const name of names) {
    try {
      await cp(join(from, name), join(to, name), { errorOnExist: true, force: false });
      copied++;
    } catch (error) {
      // Pruned, or written anew under the same name, while we copied: it can be made again.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  return copied;
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || !(way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way));
}

/** The real path that something has or would have, links on the way resolved. */
async function realPathOf(path: string): Promise<string> {
  const absolute = resolve(path);
  try {
    return await realpath(absolute);
  } catch {
    const parent = dirname(absolute);
    return parent === absolute ? absolute : join(await realPathOf(parent), basename(absolute));
  }
}

function noDisk(kind: string): HerdError {
  return invalidRequest(
    "backup",
    "no_disk",
    `A store of kind ${JSON.stringify(kind)} has no folder to copy`,
    "keep the herd in a directory, or copy what the store keeps in its own way",
  );
}

function refused(directory: string, why: string): HerdError {
  return invalidRequest(
    "backup",
    "bad_backup",
    `The backup cannot be written to ${directory}: ${why}`,
    "name a folder that does not exist yet or is empty",
    { field: "directory", details: { directory } },
  );
}

function failed(directory: string, cause: unknown): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "backup_failed",
    message: `The backup to ${directory} failed and what was written of it was removed: ${messageOf(cause)}`,
    nextAction: "look at the cause, make room or name another folder, and try again",
    operation: "backup",
    rollbackOccurred: true,
    cause,
  });
}
