import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^pi-herd\/testing$/, replacement: source("./runtime/testing/index.ts") },
      { find: /^pi-herd\/contracts$/, replacement: source("./runtime/contracts.ts") },
      { find: /^pi-herd$/, replacement: source("./runtime/index.ts") },
    ],
  },
  test: {
    include: ["{machines,runtime,adapters,visualizations,examples,test,bench,tools}/**/*.test.ts"],
    testTimeout: 30_000,
    // Child processes and real LevelDB folders: more workers than cores only adds noise.
    maxWorkers: 2,
  },
});
