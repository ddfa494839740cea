import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parkedJson, tools, type AnswerFormat } from "pi-herd";
import { firstCells, page, sectionOf } from "./page.ts";

const [parked, visits, inbox, errors] = await Promise.all(
  ["parked.md", "visits.md", "inbox.md", "errors.md"].map(page),
);
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
/** The fields of an interface, in their order. */
function fieldsOf(path: string, name: string): string[] {
  const [, body = ""] = read(path).split(new RegExp(String.raw`export interface ${name}\b[^{]*\{\n`));
  return [...(body.split("\n}\n")[0] ?? "").matchAll(/^ {2}(\w+)\??:/gm)].map(([, field]) => field as string);
}
const section = (text = "", heading: string) => sectionOf(text, heading);
const words = (text: string) => [...text.matchAll(/`([a-zA-Z_]+)`/g)].map(([, word]) => word as string);

describe("the page on what is parked", () => {
  test("lists every field of an entry, and its name in JSON", () => {
    const [, table = ""] = section(parked, "Entries").split("| field");
    const rows = [...table.matchAll(/^\| (`[^|]+)\| ([^|]+)\|/gm)].map(
      ([, cell = "", json = ""]) => [cell, json] as const,
    );
    const fields = rows.flatMap(([cell]) => words(cell));
    expect(fields.toSorted()).toEqual(fieldsOf("runtime/asks/entry.ts", "ParkedEntry").toSorted());
    const entry = Object.fromEntries(fields.map((field) => [field, "x"]));
    const names = rows.flatMap(([cell, json]) => (json.trim() === "the same" ? words(cell) : (words(json)[0] ?? [])));
    expect(names.toSorted()).toEqual(Object.keys(parkedJson(entry as never)).toSorted());
  });

  test("lists every format of an answer", () => {
    const formats: Record<AnswerFormat, true> = { text: true, confirm: true, select: true, form: true, free: true };
    expect(firstCells(section(parked, "Asking"))).toEqual(Object.keys(formats));
  });
});

describe("the page on visits", () => {
  test("lists every rule that a visit is refused by, as the page on errors does", () => {
    const sources = ["visit-request.ts", "visit-step.ts"].map((name) => read(`runtime/asks/${name}`));
    sources.push(read("runtime/doors/fire.ts"));
    const raised = sources.flatMap((text) => [...text.matchAll(/refused\(\s*"(\w+)"/g)]).map(([, rule]) => rule);
    const [rules = ""] = section(visits, "Refusals").split("| reason");
    expect(firstCells(rules).toSorted()).toEqual([...new Set(raised)].toSorted());
    const [, said = ""] = (errors as string).split("### visit_request\n");
    const [told = ""] = said.split("\n### ");
    expect([...told.matchAll(/^- `(\w+)`/gm)].map(([, rule]) => rule).toSorted()).toEqual(firstCells(rules).toSorted());
  });

  test("names every field of a visit and of its outcome", () => {
    const shapes = "runtime/asks/visit-shapes.ts";
    const names = new Set(words(visits as string));
    const all = ["VisitRequest", "VisitOutcome", "Suspended"].flatMap((name) => fieldsOf(shapes, name));
    expect(all.length).toBeGreaterThan(15);
    const untold = all.filter((field) => !names.has(field) && !(visits as string).includes(`\`${field}:`));
    expect(untold).toEqual([]);
    const start = /`\{ (agent[^}]*) \}`/.exec(visits as string)?.[1]?.split(", ");
    expect(start).toEqual(fieldsOf(shapes, "VisitStart"));
  });

  test("lists the tools for models", () => {
    const { listParked, resumeParked, cancelParked } = tools;
    const names = [listParked, resumeParked, cancelParked].map(({ name }) => name);
    expect(firstCells(section(visits, "Tools for models"))).toEqual(names);
  });
});

test("the page on the inbox names every field of an entry", () => {
  const names = words(inbox as string);
  expect(fieldsOf("runtime/asks/people.ts", "InboxEntry").filter((field) => !names.includes(field))).toEqual([]);
});
