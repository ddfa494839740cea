import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { CONTRACT_FIELDS } from "../../runtime/doors/contract.ts";
import { blocksOf, firstCells, page, sectionOf } from "./page.ts";

const text = await page("doors.md");
const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const shapes = read("runtime/doors/shapes.ts");
const literals = (from: string) => [...(shapes.split(from)[1]?.split(";")[0] ?? "").matchAll(/"(\w+)"/g)];
const cells = (heading: string) => firstCells(sectionOf(text, heading).replaceAll("| [`", "| `"));

describe("the page on doors", () => {
  test("lists every kind, every expression and every status of a record, and no other", () => {
    const kinds = literals("export type DoorKind =").map(([, kind]) => kind);
    expect(kinds).toHaveLength(5);
    expect(cells("Five kinds").toSorted()).toEqual(kinds.toSorted());
    expect(cells("The contract")).toEqual([...CONTRACT_FIELDS]);
    const statuses = literals("export type DoorRunStatus =").map(([, status]) => status);
    expect(cells("Submit").toSorted()).toEqual(statuses.toSorted());
  });

  test("lists every status that a delivery may be answered with", () => {
    const webhook = read("runtime/doors/webhook.ts");
    const [, table = ""] = webhook.split("const STATUSES");
    const known = [...table.matchAll(/: (\d{3})\b|\?\? (\d{3});/g)].map(([, one, other]) => Number(one ?? other));
    const done = [...webhook.matchAll(/status: (2\d\d)|refusal\((\d{3})/g)].map(([, one, other]) =>
      Number(one ?? other),
    );
    const shown = [...sectionOf(text, "Webhook").matchAll(/^\| (\d{3}) /gm)].map(([, status]) => Number(status));
    expect(shown.toSorted()).toEqual([...new Set([...known, ...done])].toSorted());
  });

  test("shows the whole example as it is run", () => {
    expect(blocksOf(sectionOf(text, "A whole one"), "ts orders.ts")).toEqual([read("examples/orders.ts")]);
  });
});
