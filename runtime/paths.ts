import { realpath } from "node:fs/promises";
import { homedir } from "node:os";
import * as native from "node:path";

/** Where a path is read: the home folder, and how this system joins and separates names. */
export interface Place {
  home: string;
  paths: Pick<native.PlatformPath, "join" | "sep">;
}

/**
 * A path with the home folder in the place of a leading `~`, which ends at a slash everywhere, and on Windows at a
 * backslash too. `~name` is not another user's home but a file of that name.
 */
export function expandHome(path: string, { home, paths }: Place = { home: homedir(), paths: native }): string {
  if (!path.startsWith("~")) return path;
  const rest = path.slice(1);
  const ends = rest === "" || rest.startsWith("/") || rest.startsWith(paths.sep);
  return ends ? paths.join(home, rest) : path;
}

/** The canonical path of a folder, which need not be there. */
export async function canonicalFolder(path: string): Promise<string> {
  return (await canonical(path)) ?? native.resolve(path);
}

/** The canonical path of a folder; undefined when it does not exist. Other trouble shows when it is read. */
export async function canonical(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? undefined : native.resolve(path);
  }
}
