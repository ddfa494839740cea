import { stat } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { createTestHerd, type TestHerd } from "pi-herd/testing";
import { rules, whyNot, type Rule, type StatePath } from "../../machines/eligibility.ts";
import { isSteerable, shownState } from "../../machines/projection.ts";
import { NO_CHILDREN, type WorkerContext } from "../../machines/vocabulary.ts";
import { readChart, statesIn } from "../../visualizations/graph.ts";
import { worker } from "../../machines/worker.ts";
import { firstCells, page, sectionOf } from "./page.ts";

const text = await page("worker-states.md");
const chart = readChart(worker);
const tops = statesIn(chart, "").map(({ path }) => path);

/** A worker as it is in a state, with nothing unusual about it. */
function contextIn(state: StatePath): WorkerContext {
  const id = "00000000-0000-4000-8000-000000000000";
  return {
    ...{ runId: "run", label: "worker", agent: "worker", backend: "any", sessionId: id, ownerSessionId: "ada" },
    ...{ workspace: "ada", cwd: "/", delegates: false, reusable: true, asks: 0, unacknowledged: 0, lastActivityAt: 0 },
    assignment: state === "ready" ? null : { requestId: "task", acceptedAt: 0, metadata: false, deadline: false },
    ask: state === "blocked.onOwner" ? { askId: "ask", answered: false } : null,
    children: NO_CHILDREN,
    diagnostic: null,
    resultError: null,
  };
}

type Action = "assign" | "steer" | "reply" | "close";
const ACTIONS: readonly Action[] = ["assign", "steer", "reply", "close"];

/** A row of the page's tables: what each action comes to. */
function cells(state: StatePath, context = contextIn(state)): string[] {
  const answer = (action: Action) => {
    const rule: Rule | undefined = whyNot(rules[action], { state, context });
    return rule ? `\`${rule.reason}\`` : "yes";
  };
  return ACTIONS.map(answer);
}

const rowsOf = (section: string) =>
  [...section.matchAll(/^\| (.+) \|$/gm)]
    .map(([, row = ""]) => row.split(/ +\| /).map((cell) => cell.trim()))
    .filter(([first = ""]) => first !== "inside" && !first.startsWith("---"));

describe("the page on worker states", () => {
  test("has a heading for every state and explains each one first", () => {
    const headings = [...text.matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(headings).toEqual([...tops, "unknown"]);
    const [beginning = ""] = text.split("\n## ");
    const rows = [...beginning.matchAll(/^\| \[`(\w+)`\]\(#(\w+)\)/gm)].map(([, name, anchor]) => [name, anchor]);
    expect(rows).toEqual(headings.map((name) => [name, name]));
  });

  test.each(tops.filter((top) => top !== "closed"))("says what can be done in %s as the rules say it", (top) => {
    const inner = statesIn(chart, top).map(({ path }) => path);
    const states = inner.length === 0 ? [top] : inner;
    const shown = rowsOf(sectionOf(text, top)).toSorted();
    expect(shown).toEqual(states.map((state) => [`\`${state}\``, ...cells(state)]).toSorted());
    for (const state of states) {
      expect(isSteerable(state, contextIn(state))).toBe(cells(state)[1] === "yes");
      expect(shownState(state, contextIn(state))).toBe(top);
    }
  });

  test("explains every inner state", () => {
    const missing = tops.flatMap((top) => {
      const names = statesIn(chart, top).map(({ path }) => path.split(".")[1] as string);
      return top === "closing" ? [] : names.filter((name) => !sectionOf(text, top).includes(`\`${name}\``));
    });
    expect(missing).toEqual([]);
  });

  test("shows the part of the chart of every state", async () => {
    for (const top of tops) {
      const section = sectionOf(text, top);
      const [, path = ""] = /!\[[^\]]+\]\(([^)]+)\)/.exec(section) ?? [];
      expect(path).toBe(`../visualizations/charts/worker.${top}.svg`);
      expect((await stat(new URL(`../../docs/${path}`, import.meta.url))).isFile()).toBe(true);
    }
  });

  test("says what can be done while a process cannot be proved", async () => {
    const unproven = (state: StatePath) => ({ ...contextIn(state), unproven: "why" });
    const lost = { ...contextIn("ready"), lost: true as const };
    const shown = rowsOf(sectionOf(text, "unknown")).map((row) => row.slice(1));
    // That a close needs proof is no rule of the chart: it is shown below.
    const withProof = (row: string[]) => [...row.slice(0, 3), "`identity_unproven`"];
    expect(shown).toEqual([
      withProof(cells("working.inTurn", unproven("working.inTurn"))),
      withProof(cells("blocked.onOwner", unproven("blocked.onOwner"))),
      cells("ready", lost),
    ]);
    expect(shownState("working.inTurn", unproven("working.inTurn"))).toBe("unknown");
    expect(shownState("ready", lost)).toBe("unknown");
    expect((await unprovable()).error).toMatchObject({ reason: "identity_unproven" });
  });

  async function unprovable(): Promise<{ error: object }> {
    const t: TestHerd = await createTestHerd({ agents: { fixer: { description: "x", run: async () => "done" } } });
    const script = t.scripted("fixer");
    await t.owner.subagent({ action: "assign", agent: "fixer", task: "x" });
    await (await script.run()).turn();
    script.identities.set((await script.run()).runId, "unprovable");
    return t.owner.subagent({ action: "close", label: "fixer" });
  }

  test("names no reason that the page on errors does not explain", async () => {
    const known = [...(await page("errors.md")).matchAll(/^### (\S+)$/gm)].map(([, reason]) => reason);
    const named = tops.flatMap((top) => rowsOf(sectionOf(text, top)).flatMap((row) => row.slice(1)));
    const reasons = named.filter((cell) => cell !== "yes").map((cell) => cell.replaceAll("`", ""));
    expect(reasons.filter((reason) => !known.includes(reason))).toEqual([]);
    expect(firstCells(text).length).toBeGreaterThan(10);
  });
});
