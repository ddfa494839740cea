import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { tools } from "pi-herd";
import { createTestHerd } from "pi-herd/testing";
import { ends, openStage, runPage, until, type Directions } from "./book.ts";
import { firstCells, page, sectionOf } from "./page.ts";

const text = await page("subagent.md");
const source = (path: string) => readFileSync(new URL(`../../runtime/${path}`, import.meta.url), "utf8");
const between = (whole: string, from: string, to: string) => whole.split(from)[1]?.split(to)[0] ?? "";

const before: Directions = {
  "`list`": async ({ t, at }) => {
    await t.owner.assign({ agent: "lead", task: "Release", label: "release" });
    const lead = await at("Release");
    const child = await lead.worker.assign({ agent: "scout", task: "Look" });
    void child
      .next()
      .then(() => child.next())
      .catch(() => undefined);
    const scout = await at("Look");
    void scout.worker.askOwner({ question: "Which branch?" }).catch(() => undefined);
    await until(async () => (await t.owner.list()).workers.every(({ state }) => state === "blocked"));
  },
  "A fresh worker": ({ t }) => t.owner.close({ label: "release" }),
  "A saved session": (stage) => ends(stage, "Try the other way", "Begun."),
  "A live worker": (stage) => ends(stage, "Make the checkout tests pass", "They pass."),
  "`reply`": async ({ t, at }) => {
    const { worker, end } = await at("Now the search tests");
    worker.steers();
    void worker.askOwner({ question: "Option A or B?" }).then(() => end("All 41 tests pass."));
    await until(() => t.owner.questions.length > 0);
  },
  "The result": ({ t }) => until(() => t.owner.results.length > 2),
  Typed: ({ at }) => void at("And the cart tests").then(({ end }) => end("The cart tests pass.")),
};

describe("the page on subagent", () => {
  test("shows examples that do what it says", async () => {
    const stage = await openStage((play) => ({
      implementer: { description: "Makes one change and tests it", run: play },
      lead: { description: "Splits a task up", subagents: ["scout"], run: play },
      scout: { description: "Finds out how things are", run: play },
      reviewer: { description: "Says what is wrong", enabled: false, run: play },
    }));
    expect(await runPage(text, stage, { before })).toBeGreaterThan(10);
  });

  test("says which fields every form takes and needs", async () => {
    const t = await createTestHerd({ agents: {} });
    const [head = "", , ...body] = sectionOf(text, "Fields").match(/^\|.*\|$/gm) ?? [];
    const cellsOf = (row: string) =>
      row
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.replaceAll("`", "").trim());
    const forms = cellsOf(head).slice(2);
    const rows = new Map(body.map((row) => [cellsOf(row)[0] as string, cellsOf(row).slice(2)]));
    const { action: _, ...properties } = tools.subagent.inputSchema.properties;
    expect([...rows.keys()].toSorted()).toEqual(Object.keys(properties).toSorted());
    const valid = { label: "a", files: ["x"], reusable: true, timeoutMs: 6_000 };
    const all = Object.fromEntries([...rows.keys()].map((field) => [field, "x"]));
    const fieldsOf = async (request: object) => {
      const { error } = await t.owner.subagent(request);
      return new Set((error?.field ?? "").split(", "));
    };
    for (const [index, form] of forms.entries()) {
      const { agent, session, ...rest } = { ...all, ...valid } as Record<string, unknown>;
      const chosen = { fresh: { agent, session }, session: { session } }[form] ?? {};
      const action = ["fresh", "session", "live"].includes(form) ? "assign" : form;
      const offending = await fieldsOf({ action, ...rest, ...chosen });
      const selector = { fresh: "agent", session: "session", live: "label" }[form];
      const missing = await fieldsOf({ action, ...(selector && { [selector]: "a" }) });
      for (const [field, cells] of rows) {
        const told = field in rest || field in chosen ? offending.has(field) : true;
        const needed = field === selector || missing.has(field);
        expect([form, field, cells[index]]).toEqual([form, field, needed ? "needed" : told ? "" : "may"]);
      }
    }
  });

  test("explains every field of a worker's row and of a definition", () => {
    const row = between(source("subagent/row.ts"), "function seedRow", "\n}\n");
    const fields = [...row.matchAll(/^ {4}(\w+):/gm)].map(([, name]) => name);
    expect(fields.length).toBeGreaterThan(25);
    const [, part = ""] = text.split("### A worker's row\n");
    expect(firstCells(part.split("### ", 1)[0] as string)).toEqual(fields.toSorted(byPage(part)));
    const metadata = between(source("definitions/definition.ts"), "export function metadataOf", "\n}\n");
    const declared = [...metadata.matchAll(/^ {6}(\w+):/gm)].map(([, name]) => name as string);
    const [, definitions = ""] = text.split("### Agent definitions\n");
    const [explained = ""] = definitions.split("\n## ", 1);
    expect(declared.filter((name) => !explained.includes(`\`${name}`))).toEqual([]);
  });

  test("names every detail of a result", () => {
    const details = between(source("deliveries/result.ts"), "const details: Record<string, Json> = {", "...more");
    const names = [...details.matchAll(/(?:^ {4}|\{ )(\w+)(?=: |,| \}| })/gm)].map(([, name]) => name as string);
    const section = sectionOf(text, "The result");
    const known = new Set([...firstCells(section), ...(section.match(/(?<=^ {2}")\w+/gm) ?? [])]);
    expect([...known].toSorted()).toEqual([...new Set(names)].toSorted());
    expect(known.size).toBeGreaterThan(20);
  });
});

/** The order of the page: what counts is that nothing is missing and nothing is too much. */
function byPage(part: string) {
  return (a = "", b = "") => part.indexOf(`| \`${a}\``) - part.indexOf(`| \`${b}\``);
}
