import { existsSync } from "node:fs";
import { basename, join, relative, sep } from "node:path";
import { quoted } from "../host/herd-command.ts";
import { hostDirectory } from "../host/place.ts";

/** The part of the process that says how it was started. */
export interface Started {
  argv: readonly string[];
  env: NodeJS.ProcessEnv;
  platform?: NodeJS.Platform;
}

/** How the command itself is called: by its name, unless it was run from its file or by npx. */
export function calledAs({ argv: [, script = "herd"], env, platform }: Started): string {
  if (basename(script) === "herd.js" && !isInstalled(script)) {
    return `node ${quoted(relative("", script), { windows: platform === "win32" })}`;
  }
  if (env["npm_command"] !== "exec") return "herd";
  // Elsewhere npx would take the name of the command for another package.
  return isInstalled(script) ? "npx herd" : "npx pi-herd";
}

/** Whether it was started out of the packages of this very folder. */
function isInstalled(script: string): boolean {
  return relative("", script).split(sep)[0] === "node_modules";
}

/** A command of ours for somebody to paste, with the folder of the herd unless that is the usual one. */
export function commandFor(directory: string, ...words: string[]): string {
  const where = directory === usualDirectory() ? [] : ["--directory", quoted(directory)];
  return [calledAs(process), ...words, ...where].join(" ");
}

/** The same for a command that means the herd of Pi unless it is told another folder. */
export function hostCommandFor(directory: string, ...words: string[]): string {
  const where = directory === hostDirectory() ? [] : ["--directory", quoted(directory)];
  return [calledAs(process), ...words, ...where].join(" ");
}

/** Where programs have their herd unless they are told another folder. */
export const DEFAULT_DIRECTORY = ".herd";

/** Where a command looks unless it is told another folder: the herd that is here, else that of this user's Pi. */
export function usualDirectory(): string {
  if (existsSync(DEFAULT_DIRECTORY)) return DEFAULT_DIRECTORY;
  const ofPi = hostDirectory();
  return existsSync(join(ofPi, "store")) ? ofPi : DEFAULT_DIRECTORY;
}
