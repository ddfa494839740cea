/**
 * The conformance ledger, `test/conformance/ledger.json`: what the product has to do, row by row, and which test
 * shows it. `T` and `C` rows are about workers and their tools, `F` rows about faults that users of such systems
 * met, `P` rows about parked asks and doors.
 *
 * `node tools/ledger.ts` checks it, `--summary` prints the counts, `--write` sorts it, one row a line.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.ts";
import { findTests, type FoundTest } from "./titles.ts";

/**
 * `shown`: the named tests show it. `pi`: it needs a real Pi, tmux or Herdr. `later`: it comes with open work.
 * `not applicable`: what it speaks about does not exist here, and the reason says why.
 */
export type Status = "shown" | "pi" | "later" | "not applicable";

export interface TestReference {
  file: string;
  title: string;
}

export interface Row {
  id: string;
  /** What must hold, in one sentence. */
  rule: string;
  status: Status;
  test?: TestReference;
  tests?: TestReference[];
  reason?: string;
}

export const statuses: readonly Status[] = ["shown", "pi", "later", "not applicable"];
export const ledgerFile = "test/conformance/ledger.json";

/** The numbers of the `F` rows. */
const faults = [
  3, 5, 6, 7, 9, 10, 12, 13, 14, 15, 18, 19, 20, 21, 22, 24, 26, 28, 30, 31, 32, 33, 34, 35, 36, 37, 38, 40, 42, 43, 45,
  46, 47, 48, 49, 51, 52, 54, 55, 56, 57, 59, 60, 61, 62, 63, 64, 65, 66, 68, 71, 72, 74, 76, 77, 78, 79, 80, 82, 83,
  85, 86, 87, 88, 89,
];

/** How many `P` rows each section has, from 17.1 on. */
const parkedSections = [19, 9, 6, 4, 6, 5, 23, 13, 17, 15, 15, 16, 6, 13, 28, 5];

const count = (length: number) => Array.from({ length }, (_, index) => index + 1);

/** Every row that the ledger must have, in its order. */
export const requiredIds: readonly string[] = [
  ...count(81).map((n) => `T${n}`),
  ...count(16).map((n) => `C${n}`),
  ...faults.map((n) => `F${n}`),
  ...parkedSections.flatMap((rows, index) => count(rows).map((n) => `P17.${index + 1}-${n}`)),
];

const fields = new Set(["id", "rule", "status", "test", "tests", "reason"]);
const longestRule = 160;

/** Gives a file's text by its path from the root, or undefined when there is none. */
export type ReadFile = (path: string) => string | undefined;

/** Everything that is wrong with a ledger, one sentence each. */
export function checkLedger(ledger: unknown, read: ReadFile, required = requiredIds): string[] {
  if (!Array.isArray(ledger)) return ["the ledger is not a list of rows"];
  const found = new Map<string, FoundTest[] | undefined>();
  const testsIn = (file: string) => {
    if (!found.has(file)) {
      const text = read(file);
      found.set(file, text === undefined ? undefined : findTests(text));
    }
    return found.get(file);
  };
  const rows = ledger as unknown[];
  const shaped = rows.filter(isRow);
  const notRows = rows.flatMap((row, index) => (isRow(row) ? [] : [`entry ${index + 1} has no id, rule or status`]));
  return [
    ...notRows,
    ...checkIds(shaped, required),
    ...shaped.flatMap((row) => checkRow(row, testsIn).map((problem) => `${row.id}: ${problem}`)),
  ];
}

function isRow(value: unknown): value is Row {
  if (typeof value !== "object" || value === null) return false;
  const { id, rule, status } = value as Partial<Row>;
  return typeof id === "string" && typeof rule === "string" && typeof status === "string";
}

function checkIds(rows: readonly Row[], required: readonly string[]): string[] {
  const ids = rows.map(({ id }) => id);
  const known = new Set(required);
  const present = new Set(ids);
  const problems = [
    ...required.filter((id) => !present.has(id)).map((id) => `${id}: the row is missing`),
    ...[...present].filter((id) => !known.has(id)).map((id) => `${id}: no such row is required`),
    ...ids.filter((id, index) => ids.indexOf(id) < index).map((id) => `${id}: the row is there twice`),
  ];
  const misplaced = problems.length === 0 ? ids.find((id, index) => id !== required[index]) : undefined;
  return misplaced ? [`${misplaced}: out of order; run node tools/ledger.ts --write`] : problems;
}

function checkRow(row: Row, testsIn: (file: string) => FoundTest[] | undefined): string[] {
  const references = testsOf(row);
  const problems = Object.keys(row)
    .filter((field) => !fields.has(field))
    .map((field) => `unknown field ${field}`);
  if (row.rule.trim() === "" || row.rule.length > longestRule) {
    problems.push(`the rule must be a sentence of at most ${longestRule} characters`);
  }
  if (!statuses.includes(row.status)) problems.push(`status "${row.status}" is none of ${statuses.join(", ")}`);
  if (row.test && row.tests) problems.push("has test and tests; keep one of them");
  if (row.status === "shown" && references.length === 0) problems.push("is shown without a test");
  if (row.status === "not applicable" && !row.reason?.trim()) problems.push("is not applicable without a reason");
  return [...problems, ...references.flatMap((reference) => checkReference(row, reference, testsIn))];
}

function checkReference(
  { status }: Row,
  { file, title }: TestReference,
  testsIn: (file: string) => FoundTest[] | undefined,
): string[] {
  if (!isTestFile(file)) return [`${file} is no test file: its name must end in .test.ts or contract.ts`];
  const tests = testsIn(file);
  if (!tests) return [`${file} does not exist`];
  const named = tests.filter((it) => it.title === title);
  if (named.length === 0) return [`${file} has no test "${title}"`];
  if (named.some(({ runs }) => runs === "never")) return [`the test "${title}" in ${file} is skipped`];
  const mayDepend = status === "pi" || /(^|[/.])e2e[/.]/.test(file);
  if (!mayDepend && named.some(({ runs }) => runs === "sometimes")) {
    return [`the test "${title}" in ${file} is skipped under a condition, which only pi rows and e2e tests may be`];
  }
  return [];
}

/** What vitest runs, and the contract suites that such tests call. */
const isTestFile = (file: string) =>
  /^(machines|runtime|adapters|visualizations|test|bench|tools)\/(.*[/.])?(test|contract)\.ts$/.test(file);

const testsOf = ({ test, tests }: Row): TestReference[] => (Array.isArray(tests) ? tests : test ? [test] : []);

/** Counts per status, for each letter and in all, as a table. */
export function summary(rows: readonly Row[]): string {
  const letters = [...new Set(rows.map(({ id }) => id.charAt(0)))];
  const line = (name: string, part: readonly Row[]) => [
    name,
    ...statuses.map((status) => String(part.filter((row) => row.status === status).length)),
    String(part.length),
  ];
  const table = [
    ["", ...statuses, "rows"],
    ...letters.map((letter) =>
      line(
        letter,
        rows.filter(({ id }) => id.startsWith(letter)),
      ),
    ),
    line("all", rows),
  ];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((cells) => cells[column]?.length ?? 0))) ?? [];
  return table
    .map((cells) => cells.map((cell, at) => cell[at ? "padStart" : "padEnd"](widths[at] ?? 0)).join("  "))
    .join("\n");
}

/** The ledger's text: rows in their order, one a line, so that a change is a one-line difference. */
export function format(rows: readonly Row[], required = requiredIds): string {
  const place = (id: string) => (required.includes(id) ? required.indexOf(id) : required.length);
  const sorted = rows.toSorted((a, b) => place(a.id) - place(b.id));
  const lines = sorted.map((row) => `  ${JSON.stringify(row, null, 1).replaceAll(/\n\s*/g, " ")}`);
  return `[\n${lines.join(",\n")}\n]\n`;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(join(root, path), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function main(option: string | undefined): void {
  const text = readIfThere(ledgerFile);
  if (text === undefined) throw new Error(`${ledgerFile} does not exist`);
  const rows = JSON.parse(text) as Row[];
  if (option === "--summary") return console.log(summary(rows));
  if (option === "--write") return writeFileSync(join(root, ledgerFile), format(rows));
  if (option !== undefined) throw new Error(`unknown option ${option}; there are --summary and --write`);
  const problems = checkLedger(rows, readIfThere);
  if (problems.length === 0 && text !== format(rows)) {
    problems.push(`${ledgerFile} is not written one row a line; run node tools/ledger.ts --write`);
  }
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
  else console.log(`${rows.length} rows, each with what it must have`);
}

if (import.meta.main) {
  try {
    main(process.argv[2]);
  } catch (error) {
    console.error(`${ledgerFile}: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}
