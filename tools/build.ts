/**
 * `npm run build`: compiles what is published into a fresh `dist/`, puts the bundled agent definitions beside it, and
 * ends with the compiler's exit code. `node tools/build.ts FOLDER` builds into another folder.
 */
import { cpSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { binary, root, runNode } from "./run.ts";

const [given] = process.argv.slice(2);
const target = resolve(root, given ?? "dist");
const definitions = join("runtime", "definitions", "bundled");

// Only the folder that belongs to the build is emptied: what else stands in a given one is not ours.
if (given === undefined) rmSync(target, { recursive: true, force: true });
process.exitCode = runNode(binary("typescript", "tsc"), ["-p", "tsconfig.build.json", "--outDir", target]);
cpSync(join(root, definitions), join(target, definitions), { recursive: true });
