/**
 * Which compiled files a user can reach: the code that the entry points and the command load, what that starts by its
 * path, and the declarations that a compiler reads for the entry points. Types alone compile to empty modules, and
 * nobody imports the command.
 */
import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { references } from "../references.ts";
import { scan, type Source } from "../source.ts";

/** What `package.json` says about the ways into the package. */
export interface Manifest {
  exports: Record<string, string | { types: string; default: string }>;
  files: string[];
}

/** Where files start that are reached, from the folder of the compiled files. */
export interface Entries {
  code: string[];
  declarations: string[];
}

/** What the `herd` command and the extension for Pi load when they run from the published package. */
const LOADED = ["adapters/cli/main.js", "adapters/pi/index.js"];

/** The ways into the compiled files of a package. */
export function entriesOf({ exports }: Manifest): Entries {
  const compiled = Object.values(exports).filter((target) => typeof target !== "string");
  const inDist = (path: string) => path.replace(/^\.\/dist\//, "");
  return {
    code: [...compiled.map((target) => inDist(target.default)), ...LOADED],
    declarations: compiled.map(({ types }) => inDist(types)),
  };
}

/** Whether a file below the folder of compiled files is one that the compiler wrote. */
export function isCompiled(path: string): boolean {
  return /^(machines|runtime|adapters)\/.+(\.js|\.d\.ts)$/.test(path);
}

/** The files below a folder of compiled files that the entries reach, with forward slashes. */
export function neededFiles(folder: string, { code, declarations }: Entries): Set<string> {
  // Declarations name the file that they were made from.
  const declared = (path: string) => path.replace(/\.[jt]s$/, ".d.ts");
  return new Set([...reach(folder, code, (path) => path), ...reach(folder, declarations, declared)]);
}

function reach(folder: string, from: readonly string[], fileOf: (target: string) => string): Set<string> {
  const reached = new Set(from);
  // A set gives out what is added while it is walked through.
  for (const path of reached) {
    const text = readFileSync(join(folder, path), "utf8");
    const source = scan(text);
    for (const { target } of references(path, text, source)) if (target !== undefined) reached.add(fileOf(target));
    for (const target of started(path, source)) reached.add(target);
  }
  return reached;
}

/**
 * The files of code that a file names by `new URL("./…", import.meta.url)`, because threads and processes are started
 * by a path. The ending may be that of the file itself: `${extname(import.meta.url)}`.
 */
function started(path: string, { code, literals }: Source): string[] {
  return [...code.matchAll(/\bnew\s+URL\(\s*(?=["'`])/g)].flatMap(({ index, 0: { length } }) => {
    const named = literals.get(index + length)?.raw.replace("${extname(import.meta.url)}", posix.extname(path));
    return named?.startsWith(".") && named.endsWith(".js") ? [posix.join(posix.dirname(path), named)] : [];
  });
}
