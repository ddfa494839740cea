/**
 * The reference of the public API, made from the docstrings.
 *
 * `node tools/api.ts` writes it to `docs/api`, `--check` says which pages are stale and how to write them again.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { referencePages } from "./api/pages.ts";
import { root } from "./run.ts";

/** Where the reference is kept. Nothing else is in there. */
const folder = join(root, "docs", "api");

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** A checkout may have changed the ends of lines. */
const textOf = (name: string) => readFileSync(join(folder, name), "utf8").replaceAll("\r\n", "\n");

const [option] = process.argv.slice(2);
if (option !== undefined && option !== "--check") {
  console.error(`unknown option ${option}; there is --check`);
  process.exit(2);
}
// typedoc looks for its entry points, which are patterns to it, from the working directory on.
process.chdir(root);
const pages = await referencePages();
const there = namesIn(folder);
if (option === "--check") {
  const missing = [...pages].filter(([name, text]) => !there.includes(name) || textOf(name) !== text);
  const stale = [...missing.map(([name]) => name), ...there.filter((name) => !pages.has(name))];
  for (const name of stale) console.error(`docs/api/${name} is not what the docstrings say. Run npm run api.`);
  if (stale.length > 0) process.exitCode = 1;
  else console.log("the API reference is what the docstrings say");
} else {
  mkdirSync(folder, { recursive: true });
  for (const name of there) if (!pages.has(name)) rmSync(join(folder, name));
  for (const [name, text] of pages) writeFileSync(join(folder, name), text);
  console.log(`wrote ${pages.size} pages to ${folder}`);
}
