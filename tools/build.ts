/**
 * `npm run build`: compiles what is published into a fresh `dist/`, drops what no user can reach, puts the bundled
 * agent definitions beside it, and ends with the compiler's exit code. `node tools/build.ts FOLDER` builds into another
 * folder.
 */
import { cpSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { filesIn } from "./package/files.ts";
import { entriesOf, isCompiled, neededFiles, type Manifest } from "./package/needed.ts";
import { binary, root, runNode } from "./run.ts";

const [given] = process.argv.slice(2);
const target = resolve(root, given ?? "dist");
const definitions = join("runtime", "definitions", "bundled");

// Only the folder that belongs to the build is emptied: what else stands in a given one is not ours.
if (given === undefined) rmSync(target, { recursive: true, force: true });
process.exitCode = runNode(binary("typescript", "tsc"), ["-p", "tsconfig.build.json", "--outDir", target]);
if (process.exitCode === 0) dropUnreached();
cpSync(join(root, definitions), join(target, definitions), { recursive: true });

function dropUnreached(): void {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
  const needed = neededFiles(target, entriesOf(manifest));
  for (const file of filesIn(target)) {
    if (isCompiled(file) && !needed.has(file)) rmSync(join(target, file));
  }
}
