import { lstatSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { messageOf } from "../errors.ts";

/** Results known to be saved; of more than this the oldest are looked up again. */
const REMEMBERED = 1_024;

/** Where the whole text of a result is, or why it is not saved. Neither where there is no disk. */
export interface SavedText {
  path?: string;
  error?: string;
}

/**
 * The whole text of every completed result in a file of its own, `results/<requestId>.txt`, written when somebody
 * is about to learn its path. The rows are what counts: a file that is missing or was cut short is made again, so nothing
 * here waits for the disk.
 */
export class ResultFiles {
  readonly #folder: string | undefined;
  readonly #passive: boolean;
  readonly #saved = new Set<string>();

  /** @param directory of the store. @param passive looks for files, and writes none. */
  constructor(directory: string | undefined, passive: boolean) {
    this.#folder = directory === undefined ? undefined : join(resolve(directory), "results");
    this.#passive = passive;
  }

  /** Whether there is a disk to save anything on. */
  get available(): boolean {
    return this.#folder !== undefined;
  }

  /** Sees to it that the text is in its file. Synchronous, so that nobody is told a path before it is true. */
  save(requestId: string, text: string): SavedText {
    if (this.#folder === undefined) return {};
    const path = join(this.#folder, `${requestId}.txt`);
    if (this.#saved.has(requestId)) return { path };
    try {
      if (!this.#passive) this.#write(path, text);
      else if (!isWhole(path, text)) return { error: "the store is open for reading only" };
    } catch (error) {
      return { error: messageOf(error) };
    }
    this.#saved.add(requestId);
    if (this.#saved.size > REMEMBERED) this.#saved.delete(this.#saved.values().next().value as string);
    return { path };
  }

  /** The assignment is pruned. A file that cannot be removed must not keep its rows, which would come due for ever. */
  async remove(requestId: string): Promise<void> {
    if (this.#folder === undefined) return;
    this.#saved.delete(requestId);
    try {
      await rm(join(this.#folder, `${requestId}.txt`), { force: true });
    } catch (error) {
      process.emitWarning(`a result file was not removed: ${messageOf(error)}`, { type: "HerdResultFileWarning" });
    }
  }

  #write(path: string, text: string): void {
    // Hardly ever is there a file already, so looking for one first would cost every result a call.
    try {
      return createFile(path, text);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Not the folders above it: a store that was removed is not to appear again.
      if (code === "ENOENT") mkdirSync(this.#folder as string, { mode: 0o700 });
      else if (code !== "EEXIST") throw error;
      else if (isWhole(path, text)) return;
      // Removed rather than overwritten, for its mode and in case it is a link.
      else rmSync(path);
    }
    createFile(path, text);
  }
}

function createFile(path: string, text: string): void {
  writeFileSync(path, text, { flag: "wx", mode: 0o600 });
}

function isWhole(path: string, text: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found?.isFile() === true && found.size === Buffer.byteLength(text);
}
