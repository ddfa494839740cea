import { expect, test } from "vitest";
import { checkImports, describe, isTest, readPackages, readSources, type Packages } from "./imports.ts";
import { references } from "./references.ts";
import { scan } from "./source.ts";

const packages: Packages = {
  published: new Set(["xstate", "zod", "level", "nanoid"]),
  all: new Set(["xstate", "zod", "level", "nanoid", "vitest", "@xstate/graph"]),
};

/** What is wrong in these files, as `file:line rule`. */
function wrong(files: Record<string, string>): string[] {
  const sources = Object.entries(files).map(([path, text]) => ({ path, text }));
  return checkImports(sources, packages).map(({ file, line, rule }) => `${file}:${line} ${rule}`);
}

const read = (text: string) => references("runtime/a/b.ts", text, scan(text));

test.each([
  ["named", 'import { a, b } from "../x.ts";', false],
  ["over several lines", 'import {\n  a,\n  b,\n} from "../x.ts";', false],
  ["default and namespace", 'import a, * as b from "../x.ts";', false],
  ["side effect", 'import "../x.ts";', false],
  ["re-export", 'export * from "../x.ts";', false],
  ["named re-export", 'export { a as b } from "../x.ts";', false],
  ["on demand", 'const a = await import("../x.ts");', false],
  ["on demand, as a template", "const a = await import(`../x.ts`);", false],
  ["required", 'const a = require("../x.ts");', false],
  ["types inline, whose import stays at run time", 'import { type A } from "../x.ts";', false],
  ["a default import called type", 'import type from "../x.ts";', false],
  ["types", 'import type { A } from "../x.ts";', true],
  ["types, re-exported", 'export type { A } from "../x.ts";', true],
  ["all types, re-exported", 'export type * from "../x.ts";', true],
  ["in a type", 'let a: import("../x.ts").A;', true],
  ["typeof", 'let a: typeof import("../x.ts");', true],
])("an import is found: %s", (_, text, typeOnly) => {
  expect(read(text)).toEqual([{ line: 1, specifier: "../x.ts", target: "runtime/x.ts", typeOnly, builtin: false }]);
});

test.each([
  ["in a comment", '// import "level";\n/* export * from "level" */'],
  ["in a string", "const text = 'import \"level\"';"],
  ["in a template", 'const text = `import "level"`;'],
  ["a key called from", 'export const mail = { from: "level" };'],
  ["a method called import", 'store.import("level");'],
])("what only looks like an import is not one: %s", (_, text) => {
  expect(read(text)).toEqual([]);
});

test("packages are told from Node's own modules, with and without a subpath", () => {
  const text = 'import "node:fs";\nimport "fs/promises";\nimport "zod/v4";\nimport "@xstate/graph/x";';
  expect(read(text).map((it) => [it.line, it.builtin, it.package])).toEqual([
    [1, true, undefined],
    [2, true, undefined],
    [3, false, "zod"],
    [4, false, "@xstate/graph"],
  ]);
});

test("imports that point down are fine", () => {
  expect(
    wrong({
      "machines/worker.ts": 'import { setup } from "xstate";\nimport { z } from "zod";\nimport "./vocabulary.ts";',
      "machines/vocabulary.ts": "",
      "runtime/backend.ts": 'import "../machines/worker.ts";',
      "runtime/index.ts": 'export * from "./herd.ts";',
      "runtime/herd.ts": 'import "node:path";\nimport { nanoid } from "nanoid";\nimport "./store/level.ts";',
      "runtime/store/level.ts": 'import { Level } from "level";',
      "adapters/cli/main.ts": 'import "../../runtime/index.ts";\nimport "node:fs";\nimport "../host/host.ts";',
      "adapters/host/host.ts": 'import type { Backend } from "../../runtime/backend.ts";',
      "visualizations/charts.ts": 'import "../machines/worker.ts";\nimport "@xstate/graph";',
      "visualizations/live/page.ts": 'import "../../runtime/index.ts";',
      "bench/raw.ts": 'import { Level } from "level";',
      "examples/a.ts": 'import { createHerd } from "pi-herd";',
    }),
  ).toEqual([]);
});

test.each(['import "node:fs";', 'import "level";', 'import type { A } from "../runtime/a.ts";', 'import "nanoid";'])(
  "machines import only themselves, xstate and zod: %s",
  (text) => {
    expect(wrong({ "machines/worker.ts": `\n${text}` })).toContain(
      "machines/worker.ts:2 machines import only themselves, xstate and zod",
    );
  },
);

test.each(["adapters/cli/a.ts", "visualizations/a.ts", "test/a.ts", "bench/a.ts", "tools/a.ts", "examples/a.ts"])(
  "runtime does not read upwards: %s",
  (target) => {
    expect(wrong({ "runtime/kernel/step.ts": `import "../../${target}";` })).toEqual([
      "runtime/kernel/step.ts:1 imports point down only: adapters, then runtime, then machines",
    ]);
  },
);

test.each(["runtime/herd.ts", "runtime/kernel/index.ts", "runtime/testing/index.ts", "visualizations/a.ts"])(
  "adapters see only the entries of runtime: %s",
  (target) => {
    expect(wrong({ "adapters/pi/a.ts": `import type { A } from "../../${target}";` })).toEqual([
      "adapters/pi/a.ts:1 adapters read runtime/index.ts, runtime/backend.ts, runtime/client.ts, runtime/visitor.ts and machines/ alone",
    ]);
  },
);

test.each(["runtime/backend.ts", "runtime/herd.ts", "adapters/cli/a.ts"])(
  "visualizations see only the public entry: %s",
  (target) => {
    expect(wrong({ "visualizations/live/a.ts": `import "../../${target}";` })).toEqual([
      "visualizations/live/a.ts:1 visualizations read machines/ and runtime/index.ts alone",
    ]);
  },
);

test("a path that leaves the repository is refused", () => {
  expect(wrong({ "tools/a.ts": 'import "../../elsewhere/b.ts";' })).toEqual([
    "tools/a.ts:1 nothing is imported from outside the repository",
  ]);
});

test.each(["runtime/herd.ts", "runtime/kernel/step.ts", "adapters/cli/a.ts", "bench/index.ts", "tools/a.ts"])(
  "only runtime/store knows the database: %s",
  (path) => {
    for (const name of ["level", "abstract-level", "classic-level", "level/x"]) {
      expect(wrong({ [path]: `import type { A } from "${name}";` })).toContain(
        `${path}:1 only runtime/store knows the database`,
      );
    }
  },
);

test("what is published imports no development package, and nothing imports an unlisted one", () => {
  expect(wrong({ "runtime/a.ts": 'import "vitest";', "bench/a.ts": 'import "vitest";\nimport "unlisted";' })).toEqual([
    "bench/a.ts:2 only packages that package.json lists are imported",
    "runtime/a.ts:1 what is published imports only packages that users get with it",
  ]);
});

test("the package's own name is for examples and tests", () => {
  expect(wrong({ "bench/a.ts": 'import { createHerd } from "pi-herd";' })).toEqual([
    "bench/a.ts:1 only examples and tests import the package by its name",
  ]);
});

test("files may not import each other in a circle, in one folder or across", () => {
  const rule = "files do not import each other in circles";
  expect(wrong({ "runtime/a.ts": 'import "./b.ts";', "runtime/b.ts": '\nimport "./a.ts";' })).toEqual([
    `runtime/a.ts:1 ${rule}`,
  ]);
  expect(
    wrong({
      "runtime/a/a.ts": 'import "../b/b.ts";',
      "runtime/b/b.ts": 'import "../c/c.ts";',
      "runtime/c/c.ts": 'export * from "../a/a.ts";',
    }),
  ).toEqual([`runtime/a/a.ts:1 ${rule}`]);
  expect(wrong({ "runtime/a.ts": 'import "./a.ts";' })).toEqual([`runtime/a.ts:1 ${rule}`]);
});

test("types may circle inside a folder and not across folders", () => {
  expect(wrong({ "runtime/a.ts": 'import "./b.ts";', "runtime/b.ts": 'import type { A } from "./a.ts";' })).toEqual([]);
  expect(
    wrong({
      "runtime/a/a.ts": 'import "../b/b.ts";',
      "runtime/b/b.ts": 'import type { A } from "../a/a.ts";',
    }),
  ).toEqual(["runtime/a/a.ts:1 types do not circle across folders"]);
});

test("a violation is one line with file, line, what, rule and what to do", () => {
  const [violation] = checkImports(
    [
      { path: "runtime/a.ts", text: 'import "./b.ts";' },
      { path: "runtime/b.ts", text: 'import "./a.ts";' },
    ],
    packages,
  );
  expect(violation && describe(violation)).toBe(
    "runtime/a.ts:1: closes the circle runtime/a.ts → runtime/b.ts → runtime/a.ts. " +
      "Rule: files do not import each other in circles. What to do: move what both need into a file that imports neither.",
  );
});

test.each([
  ["member", "actor._snapshot"],
  ["optional member", "actor?._parent"],
  ["by name", 'actor["_syncSnapshot"]'],
  ["by name, optional", 'actor?.["_processingStatus"]'],
  ["destructured", "const { id, _relay } = actor"],
  ["called", "actor . _stop()"],
])("XState's private members stay in the kernel: %s", (_, text) => {
  const rule = "XState's private members are touched in runtime/kernel alone";
  expect(wrong({ "runtime/herd.ts": text })).toEqual([`runtime/herd.ts:1 ${rule}`]);
  expect(wrong({ "runtime/kernel/capture.ts": text })).toEqual([]);
});

test("parameters, strings and comments that carry such a name touch nothing", () => {
  const text = 'const names = ["_snapshot"];\n// actor._stop()\nconst f = (_parent, b) => b;\nsay("x._relay");';
  expect(wrong({ "runtime/herd.ts": text })).toEqual([]);
});

test.each([
  ["the system", "actor.system.inspect(observer)"],
  ["an option", "createActor(machine, { id: f({}), inspect: observer })"],
  ["a short option", "createActor(machine, { inspect })"],
  ["a method", "createActor(machine, { inspect(event) {} })"],
])("only the kernel inspects actors: %s", (_, text) => {
  const rule = "one observer sits on an actor system, the kernel's";
  expect(wrong({ "adapters/inspector/a.ts": text })).toEqual([`adapters/inspector/a.ts:1 ${rule}`]);
  expect(wrong({ "runtime/kernel/a.ts": text })).toEqual([]);
});

test("inspect elsewhere is an ordinary word", () => {
  expect(wrong({ "runtime/a.ts": "createActor(machine, { id });\nconst options = { inspect: 1 };" })).toEqual([]);
});

test("tests may import anything and are no part of a circle", () => {
  const text = 'import "level";\nimport "../adapters/cli/a.ts";\nactor._snapshot; actor.system.inspect(x);';
  expect(
    wrong({ "runtime/a.test.ts": text, "test/model/a.ts": text, "runtime/a.type-test.ts": 'import "pi-herd";' }),
  ).toEqual([]);
  expect(isTest("runtime/testing/index.ts")).toBe(false);
  expect(isTest("runtime/contest.ts")).toBe(false);
});

test("the repository's own packages and files are read", () => {
  expect(readPackages().published.has("xstate")).toBe(true);
  expect(readPackages().published.has("typescript")).toBe(false);
  const paths = readSources().map(({ path }) => path);
  expect(paths).toContain("tools/imports.ts");
  expect(paths).toContain("vitest.config.ts");
  expect(paths.some((path) => path.includes("node_modules"))).toBe(false);
});
