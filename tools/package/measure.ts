/**
 * What importing the package costs: how many modules it loads, which is the same on every machine, and how long that takes,
 * in starts of an empty program. Both are started in turns, so that what slows the machine down slows both down.
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { shellEnv } from "./npm.ts";

/** Imports the package and says how many files and bytes that has loaded. */
const COUNTING = `
  import { readFileSync } from "node:fs";
  import { registerHooks } from "node:module";
  let modules = 0;
  let bytes = 0;
  registerHooks({
    load(url, context, next) {
      if (url.startsWith("file:")) {
        modules++;
        bytes += readFileSync(new URL(url)).length;
      }
      return next(url, context);
    },
  });
  await import("pi-herd");
  console.log(JSON.stringify({ modules, bytes }));
`;

export interface ImportSize {
  /** Files of code that are loaded. */
  modules: number;
  /** All of them together. */
  bytes: number;
}

/** What an import of the package loads, in a folder that has it installed. */
export function importSize(folder: string): ImportSize {
  const program = join(folder, "count.mjs");
  writeFileSync(program, COUNTING);
  const { status, stdout, stderr } = spawnSync(process.execPath, [program], { env: shellEnv, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ended with exit code ${status}:\n${stderr}`);
  return JSON.parse(stdout) as ImportSize;
}

export interface ImportTime {
  /** Milliseconds from the start of Node to the end of an empty program. */
  empty: number;
  /** The same of a program that imports the package. */
  imported: number;
  /** `imported` in starts of an empty program: the median over the rounds. */
  ratio: number;
}

/** Starts both programs so many times, in a folder that has the package installed. */
export function measureImport(folder: string, rounds: number): ImportTime {
  writeFileSync(join(folder, "empty.mjs"), "");
  writeFileSync(join(folder, "import.mjs"), 'import "pi-herd";\n');
  // What the first start reads from disk the others find in memory.
  startOf("import.mjs", folder);
  const pairs = Array.from({ length: rounds }, () => ({
    empty: startOf("empty.mjs", folder),
    imported: startOf("import.mjs", folder),
  }));
  return {
    empty: median(pairs.map(({ empty }) => empty)),
    imported: median(pairs.map(({ imported }) => imported)),
    ratio: median(pairs.map(({ empty, imported }) => imported / empty)),
  };
}

function startOf(program: string, cwd: string): number {
  const begun = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [program], { cwd, env: shellEnv, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ended with exit code ${status}:\n${stderr}`);
  return performance.now() - begun;
}

/** The one in the middle; of an even number the upper one. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error("there is no median of nothing");
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}
