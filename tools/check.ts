/**
 * `npm run check`: everything that must hold besides the tests, one check after another. The first that fails ends
 * the run with exit code 1 and says what to do.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { binary, root, runNode } from "./run.ts";

interface Check {
  title: string;
  script: string;
  args: readonly string[];
  /** What to do when it fails. */
  mend: string;
}

const tool = (name: string) => join(root, "tools", name);
const charts = join(root, "visualizations", "charts.ts");

const checks: Check[] = [
  {
    title: "types",
    script: binary("typescript", "tsc"),
    args: ["-p", "tsconfig.json"],
    mend: "correct the lines that the compiler names",
  },
  {
    title: "lint",
    script: binary("oxlint", "oxlint"),
    args: ["--deny-warnings"],
    mend: "correct the lines that the linter names",
  },
  {
    title: "import direction",
    script: tool("imports.ts"),
    args: [],
    mend: "each line above ends with what to do",
  },
  { title: "format", script: binary("oxfmt", "oxfmt"), args: ["--check"], mend: "run npm run format" },
  {
    title: "conformance ledger",
    script: tool("ledger.ts"),
    args: [],
    mend: "each line above says which row of test/conformance/ledger.json is wrong",
  },
  {
    title: "API reference",
    script: tool("api.ts"),
    args: ["--check"],
    mend: "run npm run api, and correct the docstrings that it names",
  },
  {
    title: "package",
    script: tool("package.ts"),
    args: [],
    mend: "each line above says what is wrong with the package as users get it",
  },
];

// The charts are drawn from the machines; they may not exist yet in a checkout that has none.
if (existsSync(charts)) {
  checks.splice(-1, 0, { title: "charts", script: charts, args: ["--check"], mend: "run npm run charts" });
}

for (const [index, { title, script, args, mend }] of checks.entries()) {
  console.log(`check ${index + 1} of ${checks.length}: ${title}`);
  const code = runNode(script, args);
  if (code === 0) continue;
  console.error(`\ncheck failed: ${title} (exit code ${code}). What to do: ${mend}.`);
  process.exit(1);
}
console.log(`\nall ${checks.length} checks passed`);
