import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

/** Imports a module and says which packages that has loaded. */
const LOADED = `
  import { registerHooks } from "node:module";
  const packages = new Set();
  registerHooks({
    load(url, context, next) {
      const found = /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url);
      if (found) packages.add(found[1]);
      return next(url, context);
    },
  });
  await import(process.argv[1]);
  console.log([...packages].sort().join(" "));`;

// Each costs every program that starts with it: what only some need is imported where they need it.
test("the package loads only what every herd needs", () => {
  const entry = new URL("./index.ts", import.meta.url).href;
  const args = ["--input-type=module", "--eval", LOADED, "--", entry];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stderr).toBe("");
  const ofLevel = ["abstract-level", "classic-level", "level-supports", "level-transcoder"];
  const inLevel = ["maybe-combine-errors", "module-error", "node-gyp-build"];
  const needed = ["croner", "level", "nanoid", "xstate", "zod", ...ofLevel, ...inLevel];
  expect(stdout.trim().split(" ")).toEqual(needed.toSorted());
});
