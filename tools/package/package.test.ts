import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { bytesIn, filesIn, surplus } from "./files.ts";
import { median } from "./measure.ts";
import { entriesOf, neededFiles } from "./needed.ts";
import { npm, RegistryUnreachable } from "./npm.ts";

function folderWith(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "herd-tools-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

test("what is needed is the code that entry points load and the declarations that they name", () => {
  const folder = folderWith({
    "runtime/index.js": 'import { a } from "./deep/a.js";\nconst later = () => import("./later.js");',
    "runtime/index.d.ts": 'export { A } from "./deep/a.ts";\nexport declare const t: import("./types.ts").T;',
    "runtime/deep/a.js": 'export * from "../index.js";\nimport "node:fs";\nimport "zod";',
    "runtime/deep/a.d.ts": "export declare class A {}",
    "runtime/later.js": "",
    "runtime/later.d.ts": "",
    "runtime/types.js": "export {};",
    "runtime/types.d.ts": "export type T = 1;",
  });
  const needed = neededFiles(folder, { code: ["runtime/index.js"], declarations: ["runtime/index.d.ts"] });
  expect(filesIn(folder).filter((file) => !needed.has(file))).toEqual(["runtime/later.d.ts", "runtime/types.js"]);
});

test("what code starts by its path is needed, with what that loads", () => {
  const folder = folderWith({
    "index.js": [
      "const thread = new URL(`./deep/thread${extname(import.meta.url)}`, import.meta.url);",
      'const child = new URL("./child.js", import.meta.url), folder = new URL("./data", import.meta.url);',
      'const page = new URL("/index.js", "https://example.org"); // new URL("./comment.js", import.meta.url)',
    ].join("\n"),
    "deep/thread.js": 'import "../loaded.js";',
    "loaded.js": "",
    "child.js": "",
    "comment.js": "",
  });
  const needed = neededFiles(folder, { code: ["index.js"], declarations: [] });
  expect(filesIn(folder).filter((file) => !needed.has(file))).toEqual(["comment.js"]);
});

test("a file that is needed and missing is no file to pass over", () => {
  const folder = folderWith({ "index.js": 'import "./gone.js";' });
  expect(() => neededFiles(folder, { code: ["index.js"], declarations: [] })).toThrow("gone.js");
});

test("the ways in are the exports, and the code of the command and of the extension for Pi", () => {
  const exports = {
    ".": { types: "./dist/runtime/index.d.ts", default: "./dist/runtime/index.js" },
    "./package.json": "./package.json",
  };
  expect(entriesOf({ exports, files: [] })).toEqual({
    code: ["runtime/index.js", "adapters/cli/main.js", "adapters/pi/index.js"],
    declarations: ["runtime/index.d.ts"],
  });
});

test.each([
  "dist/runtime/unused.js",
  "dist/runtime/needed.test.js",
  "dist/runtime/needed.js.map",
  "dist/test/support.js",
  "dist/notes.md",
  "runtime/index.ts",
  "tsconfig.json",
])("%s is a file that users do not need", (file) => {
  const needed = [
    "package.json",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "adapters/cli/herd.js",
    "adapters/pi/extension.js",
  ];
  const files = [...needed, "dist/runtime/needed.js", "dist/runtime/definitions/bundled/scout.md", file];
  const found = surplus(files, new Set(["runtime/needed.js", "runtime/needed.test.js"]));
  expect(found).toHaveLength(1);
  expect(found[0]).toContain(`${file} is `);
});

test("the bytes of a folder are those of all its files", () => {
  expect(bytesIn(folderWith({ "a/b/c": "12345", d: "ä" }))).toBe(7);
});

test("the median is the value in the middle", () => {
  expect(median([9, 100, 1, 10])).toBe(10);
  expect(median([10, 9, 1])).toBe(9);
  expect(() => median([])).toThrow("nothing");
});

test("a registry that nobody answers at is told from a package that it does not have", () => {
  const folder = folderWith({ "package.json": '{ "private": true }' });
  const install = (...more: string[]) =>
    npm(["install", "nobody-has-this@1", "--cache", join(folder, "cache"), "--fetch-retries=0", ...more], folder);
  // Port 9 discards whatever comes, where it is open at all.
  expect(() => install("--registry", "http://127.0.0.1:9")).toThrow(RegistryUnreachable);
  expect(() => npm(["install", "./not-here.tgz"], folder)).toThrow(/^npm install .* exit code/);
});
