import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { backendContract } from "../../runtime/contracts.ts";
import { blocksOf, firstCells, page, sectionOf } from "./page.ts";

const text = await page("backends.md");
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const port = read("runtime/backend.ts");
const namesIn = (from: string, to: string, pattern: RegExp) =>
  [...(port.split(from)[1]?.split(to)[0] ?? "").matchAll(pattern)].map(([, name]) => name as string);

describe("the page on backends", () => {
  test("lists every order and every event of the port, and no other", () => {
    const orders = namesIn("export type Order =", "interface OrderBase", /kind: "([\w.]+)"/g);
    expect(orders.length).toBeGreaterThan(5);
    expect(firstCells(sectionOf(text, "2. Orders")).toSorted()).toEqual(orders.toSorted());
    const events = namesIn("export type BackendEvent =", "/** What the engine hands", /type: "([\w.]+)"/g);
    expect(events.length).toBeGreaterThan(10);
    expect(firstCells(sectionOf(text, "3. Events")).toSorted()).toEqual(events.toSorted());
  });

  test("lists every answer about identity, and every stage of a launch", () => {
    const answers = namesIn("export type Identity =", ";", /"(\w+)"/g);
    expect(firstCells(sectionOf(text, "1. Name and proof"))).toEqual(answers);
    const stages = namesIn("export type Stage =", ";", /"(\w+)"/g);
    const [, table = ""] = sectionOf(text, "4. Launches and their rollback").split("| `stage`");
    expect(firstCells(table)).toEqual(stages);
  });

  test("names everything that a backend has", () => {
    const members = namesIn("export interface Backend {", "\n}\n", /^ {2}(?:readonly )?(\w+)/gm);
    expect(members).toContain("perform");
    expect(members.filter((name) => !text.includes(`\`${name}`))).toEqual([]);
  });

  test("shows the whole backend that the examples run", () => {
    expect(blocksOf(sectionOf(text, "A whole one"), "ts")).toEqual([read("examples/threads.ts")]);
    expect(sectionOf(text, "6. The suite")).toContain(backendContract.name);
  });
});
