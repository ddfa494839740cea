import { expect, test } from "vitest";
import { findTests } from "./titles.ts";

const titles = (text: string) => findTests(text).map(({ title }) => title);
const runs = (text: string) => findTests(text).map((found) => found.runs);

test("titles are found in any quotes, with test and it, alone and in groups", () => {
  const text = [
    'test("one", () => {});',
    "it('two', () => {});",
    "describe(`group`, () => {",
    "  test(`three`, async () => {});",
    "});",
  ].join("\n");
  expect(findTests(text)).toEqual([
    { title: "one", line: 1, runs: "always" },
    { title: "two", line: 2, runs: "always" },
    { title: "three", line: 4, runs: "always" },
  ]);
});

test("escapes in a title are read", () => {
  expect(titles(String.raw`test("says \"no\" \u2192 \x41 \u{1F600}", f)`)).toEqual(['says "no" → A 😀']);
});

test("a template keeps its placeholders", () => {
  expect(titles("for (const n of all) test(`asks ${n} times`, f);")).toEqual(["asks ${n} times"]);
});

test.each([
  ["a list", 'test.each([["a", 1], ["b)", 2]])("takes %s", f)'],
  ["a list with types", 'test.each<[string, () => void]>([])("takes %s", f)'],
  ["a table", 'test.each`a | b\n${1} | ${2}`("takes %s", f)'],
  ["for", 'test.for([1])("takes %s", f)'],
  ["more modifiers", 'test.concurrent.each([1])("takes %s", f)'],
])("a repeated test has its title as written: %s", (_, text) => {
  expect(titles(text)).toEqual(["takes %s"]);
});

test("what only looks like a test is none", () => {
  const text =
    '// test("a", f)\nconst b = \'test("b", f)\';\npattern.test("c");\ntest(name, f);\ntest("d" + e, f);\nmytest("f")';
  expect(titles(text)).toEqual([]);
});

test.each([
  ['test.skip("a", f)', "never"],
  ['test.todo("a")', "never"],
  ['test.fails("a", f)', "never"],
  ['test.skip.each([1])("a", f)', "never"],
  ['test("a", { skip: true }, f)', "never"],
  ['describe.skip("g", () => { describe("h", () => { test("a", f); }); });', "never"],
  ['const off = test.skip;\noff("a", f)', "never"],
  ['test.skipIf(!tmux)("a", f)', "sometimes"],
  ['test.runIf(tmux)("a", f)', "sometimes"],
  ['test("a", { skip: !tmux }, f)', "sometimes"],
  ['test("a", (context) => { context.skip(); })', "sometimes"],
  ['describe.skipIf(!tmux)("g", () => { test("a", f); });', "sometimes"],
  ['const e2e = test.skipIf(!tmux);\ne2e("a", f)', "sometimes"],
  ['const e2e = tmux ? test : test.skip;\ne2e("a", f)', "sometimes"],
  ['test("a", { timeout: 1 }, () => { expect({ skip: 1 }).toBe(1); })', "always"],
  ['const mine = test.extend({ x: f });\nmine("a", f)', "always"],
  ['test.only("a", f)', "always"],
])("%s runs %s", (text, expected) => {
  expect(runs(text)).toEqual([expected]);
});

test("a skipped group spares the tests beside it", () => {
  expect(runs('describe.skip("g", () => { test("a", f); });\ntest("b", f);')).toEqual(["never", "always"]);
});
