import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { EXIT } from "../../adapters/cli/errors.ts";
import { rules } from "../../machines/eligibility.ts";
import { createTestHerd } from "pi-herd/testing";
import { isTest, readSources } from "../../tools/imports.ts";
import { closing, scan } from "../../tools/source.ts";
import { blocksOf, firstCells, page, sectionOf } from "./page.ts";
import { CATEGORIES } from "../../runtime/errors.ts";

const errors = await page("errors.md");
const headings = [...errors.matchAll(/^### (\S+)$/gm)].map(([, reason]) => reason as string);

const sources = readSources()
  .filter(({ path }) => /^(runtime|machines|adapters)\//.test(path) && !isTest(path))
  .map(({ path, text }) => ({ path, text, ...scan(text) }));
type Source = (typeof sources)[number];

/** Reasons that are put together from parts, and expressions that only pass a reason on. */
const TEMPLATES: Record<string, string[]> = { "bad_${field}": ["bad_session", "bad_fork"] };

/** What a reason's expression can come to: its literals, without those that it only compares with. */
function literalsIn({ code, literals, text }: Source, from: number, to: number): string[] {
  return [...literals.values()]
    .filter(({ start, end }) => start >= from && end <= to && !/([=!]==\s*|\[)$/.test(code.slice(from, start)))
    .flatMap(({ start, raw }) => {
      if (text[start] !== "`") return raw;
      if (TEMPLATES[raw] === undefined) throw new Error(`the template ${raw} is not known to this test`);
      return TEMPLATES[raw];
    });
}

/** The end of an expression: the comma or bracket that does not belong to it. */
function endOf(code: string, from: number): number {
  for (let at = from; at < code.length; at++) {
    const char = code[at] as string;
    if (",;)]}".includes(char)) return at;
    if ("([{".includes(char)) at = closing(code, at) - 1;
  }
  return code.length;
}

/** The literals of every property of a name. An object or a type is not what is looked for. */
function properties(source: Source, name: string): string[] {
  return [...source.code.matchAll(new RegExp(String.raw`(?<![\w.])${name}: ?(?=["\w\x60])`, "g"))].flatMap((match) => {
    const from = match.index + match[0].length;
    return literalsIn(source, from, endOf(source.code, from));
  });
}

/** The literals of one argument of every call of a function. */
function args(source: Source, name: string, index: number): string[] {
  return [...source.code.matchAll(new RegExp(String.raw`(?<!function )\b${name}\(`, "g"))].flatMap((match) => {
    let from = match.index + match[0].length;
    for (let skipped = 0; skipped < index; skipped++) from = endOf(source.code, from) + 1;
    return literalsIn(source, from, endOf(source.code, from));
  });
}

const words = (found: string[]) => found.filter((word) => /^[a-z_]+$/.test(word));
const raised = sources.flatMap((source) =>
  words([...properties(source, "reason"), ...args(source, "invalidRequest", 1)]),
);
const codes = sources
  // What ends a command is no result.
  .filter(({ path }) => !path.startsWith("adapters/") || path.startsWith("adapters/pi/worker/"))
  .filter(({ path }) => path !== "runtime/functions/worker.ts")
  .flatMap((source) => words([...properties(source, "code"), ...args(source, "failed", 0)]));
const stopCodes = ["herd_closing", "parked", "fenced"];

describe("the page on errors", () => {
  test("has one heading for every reason that something raises, and no other", () => {
    expect(raised.length).toBeGreaterThan(60);
    const inRules = Object.values(rules).flatMap((list) => list.map(({ reason }) => reason));
    const known = new Set([...raised, ...inRules, ...codes.filter((code) => !stopCodes.includes(code))]);
    expect(headings.toSorted()).toEqual([...known].toSorted());
  });

  test("says of each reason to which category it belongs", () => {
    const categories = new Set(firstCells(sectionOf(errors, "Categories")));
    const reasons = sectionOf(errors, "Reasons").split(/^### /m).slice(1);
    const without = reasons.filter((text) => !categories.has(/`(\w+)`/.exec(text)?.[1] ?? ""));
    expect(without).toEqual([]);
    const invalid = sources.flatMap((source) => words(args(source, "invalidRequest", 1)));
    const misplaced = reasons.filter((text) => {
      const [reason = ""] = text.split("\n");
      return invalid.includes(reason) && !text.includes("`invalid_request`");
    });
    expect(misplaced).toEqual([]);
  });

  test("lists every category and no other", () => {
    expect(CATEGORIES).toHaveLength(9);
    expect(firstCells(sectionOf(errors, "Categories")).toSorted()).toEqual([...CATEGORIES].toSorted());
  });

  test("lists why a signal aborts, and the exit codes", () => {
    const { text } = sources.find(({ path }) => path === "runtime/functions/worker.ts") as Source;
    const [union = ""] = /readonly code: [^;]*/.exec(text) ?? [];
    const all = [...union.matchAll(/"(\w+)"/g)].map(([, name]) => name);
    expect(firstCells(sectionOf(errors, "Why a worker's signal aborts"))).toEqual(all);
    const exits = [...sectionOf(errors, "Exit codes").matchAll(/^\| (\d+)/gm)].map(([, code]) => Number(code));
    expect(exits).toEqual(Object.values(EXIT));
  });

  test("shows an error as it comes, and every field of it", async () => {
    const t = await createTestHerd({ agents: {} });
    const [shown = ""] = blocksOf(errors, "json");
    expect(await t.owner.subagent({ action: "close", label: "ghost" })).toEqual(JSON.parse(shown));
    const source = readFileSync(new URL("../../runtime/errors.ts", import.meta.url), "utf8");
    const [, options = ""] = /toJSON\(\)[^{]*\{([\s\S]*?)\}\)/.exec(source) ?? [];
    const fields = [...options.matchAll(/^ +(\w+): this/gm)].map(([, name]) => name);
    const [beginning = ""] = errors.split("## Categories");
    const rows = [...beginning.matchAll(/^\| (`[^|]+)\|/gm)].flatMap(([, cell = ""]) => cell.match(/\w+/g) ?? []);
    expect(rows.toSorted()).toEqual(fields.toSorted());
  });
});
