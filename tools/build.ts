/**
 * `npm run build`: compiles what is published into a fresh `dist/` and ends with the compiler's exit code.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { binary, root, runNode } from "./run.ts";

rmSync(join(root, "dist"), { recursive: true, force: true });
process.exitCode = runNode(binary("typescript", "tsc"), ["-p", "tsconfig.build.json"]);
