import { basename, relative } from "node:path";

/** What a census was asked with, as it was typed. */
export interface Asked {
  folder: string;
  directory: string;
}

/** The part of the process that says how it was started. */
export interface Started {
  argv: readonly string[];
  env: NodeJS.ProcessEnv;
  platform?: NodeJS.Platform;
}

const DEFAULT_DIRECTORY = ".herd";

/** The very command that goes on with a census, in the way that this one was started; with an answer or without. */
export function commandLine(asked: Asked, answer: string | undefined, { argv, env, platform }: Started): string {
  const quote = (text: string, always = false) => quoted(text, always, platform === "win32");
  const options = answer === undefined ? [] : ["--answer", quote(answer, true)];
  if (env["npm_lifecycle_event"] === "start") {
    if (asked.directory !== DEFAULT_DIRECTORY) options.unshift("--directory", quote(asked.directory));
    return ["npm start", ...(options.length > 0 ? ["--", ...options] : [])].join(" ");
  }
  const folder = asked.folder.startsWith("-") ? `./${asked.folder}` : asked.folder;
  return [herd(argv, env, quote), "demo", quote(folder), "--directory", quote(asked.directory), ...options].join(" ");
}

/** How the command itself is called: by its name, unless it was run from its file or by npx. */
function herd([, script = "herd"]: readonly string[], env: NodeJS.ProcessEnv, quote: (text: string) => string): string {
  if (basename(script) === "herd.js") return `node ${quote(relative("", script))}`;
  return env["npm_command"] === "exec" ? "npx pi-herd" : "herd";
}

/** A word as shells take it: as it is when it is harmless, else in quotes that let nothing in it mean anything. */
function quoted(text: string, always: boolean, windows: boolean): string {
  if (!always && /^[\w@%+=:,./-]+$/.test(text)) return text;
  if (windows) return `"${text.replace(/"/g, '\\"')}"`;
  return /["$`\\!\n]/.test(text) ? `'${text.replaceAll("'", "'\\''")}'` : `"${text}"`;
}
