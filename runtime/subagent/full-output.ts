import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { messageOf } from "../errors.ts";
import { newId } from "../ids.ts";
import { bounded } from "../text/bounds.ts";
import type { Fields } from "../text/facts.ts";
import { listLines } from "./list-text.ts";

/** So many full outputs are kept; the oldest go first. */
const KEPT = 16;

/** Where the whole text of a list is whose text is cut, or why it is not there. Neither where there is no disk. */
export interface FullOutput {
  full_output_path?: string;
  full_output_error?: string;
}

/**
 * Saves the text of a list that is longer than a model sees of it, in a file of its own below the store's folder, for
 * its user alone. What cannot be saved fails nothing: the answer says so.
 *
 * @param directory of the store; undefined for one that has none, or that may not be written.
 */
export async function saveFullOutput(directory: string | undefined, answer: Fields): Promise<FullOutput> {
  if (directory === undefined) return {};
  const text = listLines(answer).join("\n");
  if (!bounded(text).truncated) return {};
  const folder = join(resolve(directory), "outputs");
  try {
    // Not the folders above it: a store that was removed is not to appear again.
    await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    // The time stands first, so the names are in the order in which the files were written.
    const path = join(folder, `${new Date().toISOString().replaceAll(":", "-")}-${newId()}.txt`);
    await writeFile(path, text, { flag: "wx", mode: 0o600 });
    const old = (await readdir(folder)).toSorted().slice(0, -KEPT);
    await Promise.all(old.map((name) => rm(join(folder, name), { force: true })));
    return { full_output_path: path };
  } catch (error) {
    return { full_output_error: messageOf(error) };
  }
}
