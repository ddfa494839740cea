import { expect, test } from "vitest";
import { checkLedger, format, requiredIds, summary, type Row } from "./ledger.ts";

const required = ["T1", "T2", "C1"];
const files: Record<string, string> = {
  "runtime/a.test.ts":
    'test("works", f);\ntest.each([1])("takes %s", f);\ntest.skip("off", f);\ntest.skipIf(x)("maybe", f);',
  "runtime/store/contract.ts": 'test("keeps", f);',
  "test/e2e/a.test.ts": 'test.skipIf(x)("maybe", f);',
  "runtime/a.ts": 'test("works", f);',
};

const row = (id: string, more: Partial<Row> = {}): Row => ({ id, rule: "It holds.", status: "later", ...more });
const shown = (file: string, title: string, more: Partial<Row> = {}): Partial<Row> => ({
  status: "shown",
  test: { file, title },
  ...more,
});
const check = (ledger: unknown) => checkLedger(ledger, (path) => files[path], required);
/** What is wrong with the first row when all others are fine. */
const checkFirst = (more: Partial<Row>) => check([row("T1", more), row("T2"), row("C1")]);

test("a complete ledger is fine", () => {
  expect(checkFirst({})).toEqual([]);
  expect(checkFirst({ status: "pi" })).toEqual([]);
  expect(checkFirst({ status: "not applicable", reason: "There is no such thing." })).toEqual([]);
  expect(checkFirst(shown("runtime/a.test.ts", "works"))).toEqual([]);
  expect(checkFirst(shown("runtime/a.test.ts", "takes %s"))).toEqual([]);
  expect(checkFirst(shown("runtime/store/contract.ts", "keeps"))).toEqual([]);
});

test("a missing, an unknown and a doubled row are named", () => {
  expect(check([row("T1"), row("T1"), row("C1"), row("C9")])).toEqual([
    "T2: the row is missing",
    "C9: no such row is required",
    "T1: the row is there twice",
  ]);
});

test("rows keep their order", () => {
  expect(check([row("T1"), row("C1"), row("T2")])).toEqual(["C1: out of order; run node tools/ledger.ts --write"]);
});

test("what is no row is named by its place", () => {
  expect(check({})).toEqual(["the ledger is not a list of rows"]);
  expect(check([row("T1"), row("T2"), row("C1"), null, { id: "T1" }])).toEqual([
    "entry 4 has no id, rule or status",
    "entry 5 has no id, rule or status",
  ]);
});

test("a status outside the four is refused", () => {
  expect(checkFirst({ status: "done" as never })).toEqual([
    'T1: status "done" is none of shown, pi, later, not applicable',
  ]);
});

test("an unknown field and an endless rule are refused", () => {
  expect(checkFirst({ note: "x" } as never)).toEqual(["T1: unknown field note"]);
  expect(checkFirst({ rule: "x".repeat(161) })).toEqual(["T1: the rule must be a sentence of at most 160 characters"]);
  expect(checkFirst({ rule: " " })).toHaveLength(1);
});

test("shown needs a test, and not applicable a reason", () => {
  expect(checkFirst({ status: "shown" })).toEqual(["T1: is shown without a test"]);
  expect(checkFirst({ status: "shown", tests: [] })).toEqual(["T1: is shown without a test"]);
  expect(checkFirst({ status: "not applicable" })).toEqual(["T1: is not applicable without a reason"]);
});

test("a test file must exist and be one that runs", () => {
  expect(checkFirst(shown("runtime/b.test.ts", "works"))).toEqual(["T1: runtime/b.test.ts does not exist"]);
  expect(checkFirst(shown("runtime/a.ts", "works"))).toEqual([
    "T1: runtime/a.ts is no test file: its name must end in .test.ts or contract.ts",
  ]);
  expect(checkFirst(shown("docs/a.test.ts", "works"))).toHaveLength(1);
});

test("a title must exist in its file", () => {
  expect(checkFirst(shown("runtime/a.test.ts", "work"))).toEqual(['T1: runtime/a.test.ts has no test "work"']);
});

test("a skipped test shows nothing", () => {
  expect(checkFirst(shown("runtime/a.test.ts", "off"))).toEqual(['T1: the test "off" in runtime/a.test.ts is skipped']);
});

test("a test under a condition shows something only in pi rows and end-to-end files", () => {
  expect(checkFirst(shown("runtime/a.test.ts", "maybe"))).toEqual([
    'T1: the test "maybe" in runtime/a.test.ts is skipped under a condition, which only pi rows and e2e tests may be',
  ]);
  expect(checkFirst(shown("runtime/a.test.ts", "maybe", { status: "pi" }))).toEqual([]);
  expect(checkFirst(shown("test/e2e/a.test.ts", "maybe"))).toEqual([]);
});

test("each of several tests is looked up, whatever the status", () => {
  const tests = [
    { file: "runtime/a.test.ts", title: "works" },
    { file: "runtime/a.test.ts", title: "gone" },
  ];
  expect(checkFirst({ tests })).toEqual(['T1: runtime/a.test.ts has no test "gone"']);
  expect(checkFirst({ tests, test: { file: "runtime/a.test.ts", title: "works" } })).toContain(
    "T1: has test and tests; keep one of them",
  );
});

test("the written form is sorted, with one row a line", () => {
  const rows = [row("C1"), row("T2", { reason: "line\nbreak" }), row("T1")];
  const text = format(rows, required);
  expect(text.split("\n").map((line) => line.slice(0, 15))).toEqual([
    "[",
    '  { "id": "T1",',
    '  { "id": "T2",',
    '  { "id": "C1",',
    "]",
    "",
  ]);
  expect(JSON.parse(text)).toEqual([rows[2], rows[1], rows[0]]);
});

test("the summary counts each status per letter", () => {
  const text = summary([row("T1"), row("T2", { status: "shown" }), row("C1", { status: "pi" })]);
  expect(text.split("\n").map((line) => line.trim().split(/\s+/))).toEqual([
    ["shown", "pi", "later", "not", "applicable", "rows"],
    ["T", "1", "0", "1", "0", "2"],
    ["C", "0", "1", "0", "0", "1"],
    ["all", "1", "1", "1", "0", "3"],
  ]);
});

test("every row is required once", () => {
  expect(requiredIds).toHaveLength(81 + 16 + 65 + 200);
  expect(new Set(requiredIds).size).toBe(requiredIds.length);
});
