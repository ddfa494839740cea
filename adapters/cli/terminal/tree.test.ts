import { describe, expect, test } from "vitest";
import type { WorkerRow } from "../../../runtime/index.ts";
import { columnsOf } from "./text.ts";
import { renderTree } from "./tree.ts";

const row = (label: string, state: string, more: Partial<WorkerRow> = {}): WorkerRow => ({
  label,
  state,
  steerable: false,
  agentDefinition: "any",
  ...more,
});
const child = (label: string, state: string, more: Partial<WorkerRow> = {}) =>
  row(label, state, { parentLabel: "census", ...more });
const size = { columns: 80, rows: 24, notes: new Map<string, string>() };

describe("the tree of workers", () => {
  test("shows label, state, and what each asks or does, or what its task is", () => {
    const workers = [
      row("census", "blocked", { question: { askId: "a", question: "Which folders?\n\n  a table", envelope: "" } }),
      child("counter", "working", { activeRequestId: "r1" }),
      child("counter-2", "blocked", { diagnostic: "held", task: "src" }),
      child("counter-3", "settling", { task: "Count docs" }),
      child("docs", "working", { task: "docs" }),
    ];
    expect(renderTree(workers, { ...size, notes: new Map([["r1", "src: 3 files"]]) })).toEqual([
      "census        blocked   asks: Which folders?",
      "├─ counter    working   src: 3 files",
      "├─ counter-2  blocked   held",
      "├─ counter-3  settling  Count docs",
      "└─ docs       working",
    ]);
  });

  test("shows the children that wait for a place in one line", () => {
    const queued = ["c1", "c2", "c3"].map((label) => child(label, "settling", { queued: true }));
    expect(renderTree([row("census", "blocked"), child("counter", "working"), ...queued], size)).toEqual([
      "census      blocked",
      "├─ counter  working",
      "└─ 3 more   queued",
    ]);
  });

  test("never gets wider or higher than the terminal", () => {
    const workers = [
      row("census", "working", { activeRequestId: "r" }),
      ...Array.from({ length: 40 }, (_, n) => child(`counter-${n}`, "working", { activeRequestId: "r" })),
    ];
    const notes = new Map([["r", "日本語のフォルダ 👩‍👩‍👧‍👦 ".repeat(20)]]);
    for (const columns of [1, 2, 10, 33, 80]) {
      for (const rows of [2, 3, 10, 60]) {
        const lines = renderTree(workers, { columns, rows, notes });
        expect(lines.length).toBeLessThan(Math.max(3, rows));
        for (const line of lines) expect(columnsOf(line)).toBeLessThan(columns);
      }
    }
    expect(renderTree(workers, { columns: 40, rows: 10, notes }).at(-1)).toBe("… and 33 more");
  });

  test("lets no name or note steer the terminal", () => {
    const notes = new Map([["r", "\u001b[2J"]]);
    expect(renderTree([row("census", "working", { activeRequestId: "r" })], { ...size, notes })).toEqual([
      String.raw`census  working  \u001b[2J`,
    ]);
  });

  test("is empty without workers", () => {
    expect(renderTree([], size)).toEqual([]);
  });
});
