/**
 * Running what `package.json` brings: the binary of an installed package, under this very Node.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The repository's root folder. */
export const root = resolve(import.meta.dirname, "..");

/**
 * The script behind an installed package's command, for example `binary("typescript", "tsc")`. It is read from the
 * package and not from `node_modules/.bin`, where Windows keeps shell scripts that Node cannot run.
 */
export function binary(name: string, command: string): string {
  const folder = join(root, "node_modules", name);
  const { bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  const script = typeof bin === "string" ? bin : bin?.[command];
  if (script === undefined) throw new Error(`package ${name} has no command ${command}; run npm ci`);
  return join(folder, script);
}

interface Manifest {
  bin?: string | Record<string, string>;
}

/** Runs a script with this Node in the repository's root, its output going where ours goes; gives the exit code. */
export function runNode(script: string, args: readonly string[]): number {
  const { status, signal, error } = spawnSync(process.execPath, [script, ...args], { cwd: root, stdio: "inherit" });
  if (error) throw error;
  if (signal) console.error(`${script} was ended by ${signal}`);
  return status ?? 1;
}
