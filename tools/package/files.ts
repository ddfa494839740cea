/**
 * The rule about what is published, and how the files of a folder are listed.
 */
import { readdirSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import { isCompiled } from "./needed.ts";

/** What users need besides the compiled files. */
const ALLOWED = [
  /^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/,
  /^adapters\/(cli\/herd|pi\/extension)\.js$/,
  /^dist\/runtime\/definitions\/bundled\/[\w-]+\.md$/,
];
const DIST = "dist/";
const TEST = /\.(test|type-test)\.(js|d\.ts)$/;

/** The files of a published package that break the rule, one line each. `needed` is what can be reached in `dist`. */
export function surplus(files: readonly string[], needed: ReadonlySet<string>): string[] {
  return files.flatMap((file) => {
    if (ALLOWED.some((pattern) => pattern.test(file))) return [];
    const compiled = file.startsWith(DIST) && file.slice(DIST.length);
    if (!compiled || !isCompiled(compiled))
      return [`${file} is not meant for users; take it out of "files" in package.json`];
    if (TEST.test(file)) return [`${file} is a test; exclude it in tsconfig.build.json`];
    if (!needed.has(compiled)) return [`${file} is reached by nothing; tools/build.ts should drop it`];
    return [];
  });
}

/** Every file below a folder, from there on, with forward slashes. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(folder, sep).length).replaceAll(sep, "/"))
    .toSorted();
}

/** The bytes of all files below a folder. */
export function bytesIn(folder: string): number {
  return filesIn(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
}
