import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { onPath } from "./node.ts";
import { hostDirectory } from "./place.ts";

/** The program of the `herd` command: in a checkout beside the sources, in the published package beside the compiled files. */
export function herdProgram(): string {
  const [source, published] = ["../cli/herd.js", "../../../adapters/cli/herd.js"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  ) as [string, string];
  return existsSync(source) ? source : published;
}

/**
 * A command of ours for a person to paste into a shell. What installs an extension puts no command on the PATH, so that it
 * may have to be run from its file; and another program may have its name.
 */
export function herdCommand(words: readonly string[], env: NodeJS.ProcessEnv = process.env): string {
  const found = onPath("herd", env);
  const isOurs = found !== undefined && realpathSync(found).endsWith(join("adapters", "cli", "herd.js"));
  return [...(isOurs ? ["herd"] : ["node", fileForShell(herdProgram())]), ...words.map((word) => quoted(word))].join(
    " ",
  );
}

/**
 * The same for the host of a folder. The folder is left out only where a shell finds it without a setting of its own: the
 * program that says it may have been started with another one.
 */
export function hostCommand(directory: string, words: readonly string[], env?: NodeJS.ProcessEnv): string {
  return herdCommand(directory === hostDirectory({}) ? words : [...words, "--directory", directory], env);
}

/** A path as short as a shell understands it. */
function fileForShell(path: string): string {
  const home = homedir();
  if (process.platform === "win32" || !path.startsWith(home + sep)) return quoted(path);
  return `~/${quoted(path.slice(home.length + 1))}`;
}

/** A word as shells take it: as it is when it is harmless, else in quotes that let nothing in it mean anything. */
export function quoted(text: string, { always = false, windows = process.platform === "win32" } = {}): string {
  if (!always && /^[\w@%+=:,./-]+$/.test(text)) return text;
  if (windows) return `"${text.replace(/"/g, '\\"')}"`;
  return /["$`\\!\n]/.test(text) ? `'${text.replaceAll("'", "'\\''")}'` : `"${text}"`;
}
