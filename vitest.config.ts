import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { compiled } from "./test/support/compiled.ts";

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Tests that install the package, or a copy of the checkout, from the npm registry: minutes, most of them npm's. */
const install = ["test/package/installed.test.ts", "test/e2e/readme.test.ts"];

/** Tests that start processes, from a small process that is quick to fork, and one that replaces a module of Node. */
const apart = ["{examples,test/{crash,e2e,package,pi}}/**/*.test.ts", "test/conformance/evidence.test.ts"];

export default defineConfig({
  resolve: {
    alias: [
      { find: /^pi-herd\/testing$/, replacement: source("./runtime/testing/index.ts") },
      { find: /^pi-herd\/contracts$/, replacement: source("./runtime/contracts.ts") },
      { find: /^pi-herd$/, replacement: source("./runtime/index.ts") },
    ],
  },
  test: {
    testTimeout: 60_000,
    // Child processes and real LevelDB folders: more workers than cores take longer for all of it.
    maxWorkers: 2,
    env: { NODE_COMPILE_CACHE: compiled },
    globalSetup: "test/support/compiled.ts",
    projects: [
      // Goes first, by its name: what takes longest is not left to the end, when one worker has nothing to do any more.
      { extends: true, test: { name: "apart", include: apart, exclude: install } },
      { extends: true, test: { name: "install", include: install } },
      {
        extends: true,
        test: {
          name: "together",
          include: ["{machines,runtime,adapters,visualizations,bench,tools,test}/**/*.test.ts"],
          exclude: apart,
          // Loading the engine anew for each of them takes longer than what they test.
          isolate: false,
        },
      },
    ],
  },
});
