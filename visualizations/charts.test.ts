import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toDirectedGraph } from "xstate/graph";
import type { AnyStateMachine } from "xstate";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { rules } from "../machines/eligibility.ts";
import { supervisor } from "../machines/supervisor.ts";
import { worker } from "../machines/worker.ts";
import { drawCharts, folder, staleCharts, writeCharts } from "./charts.ts";
import { fragmentsOf } from "./fragment.ts";
import { conditionOf, effectOf, eventName, readChart, type Chart, type ChartTransition } from "./graph.ts";
import { toJson } from "./json.ts";

const files = await drawCharts();
const machines: [string, AnyStateMachine][] = [
  ["supervisor", supervisor],
  ["worker", worker],
];

const fileOf = (name: string) => files.get(name) as string;

/** Every branch of every transition as `from event to`, told by XState's own graph; `always` is not in there. */
function* branchesOf({ stateNode, edges, children }: ReturnType<typeof toDirectedGraph>): Generator<string> {
  const all = new Set([...edges.map(({ transition }) => transition), ...(stateNode.always ?? [])]);
  for (const { source, eventType, target } of all) {
    yield `${source.path.join(".")} ${eventType || "null"} ${target?.[0]?.path.join(".") ?? "null"}`;
  }
  for (const inner of children) yield* branchesOf(inner);
}

/** How a transition is written in the pictures. */
function textOf(transition: ChartTransition): string {
  const { event, actions } = transition;
  return [eventName(event), conditionOf(transition), effectOf(actions)].filter(Boolean).join(" ");
}

/** What can be read in one element of a picture. */
function readIn(svg: string, id: string): string {
  const escaped = id.replaceAll("->", "&#45;&gt;");
  const start = svg.indexOf(`<g id="${escaped}"`);
  if (start === -1) return "";
  const words = [...svg.slice(start, svg.indexOf("</g>", start)).matchAll(/<text[^>]*>([^<]*)<\/text>/g)];
  return decoded(words.map(([, word]) => word).join(" "));
}

function decoded(text: string): string {
  return text
    .replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replaceAll("&gt;", ">")
    .replaceAll(/\s+/g, " ");
}

describe("a chart", () => {
  test("is the same whenever it is drawn", async () => {
    expect([...(await drawCharts())]).toEqual([...files]);
  });

  test.each(machines)("of %s has a picture, a diagram and the plain data", (name) => {
    expect(fileOf(`${name}.svg`)).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
    expect(fileOf(`${name}.mmd`)).toContain("stateDiagram-v2");
    expect(JSON.parse(fileOf(`${name}.json`))).toMatchObject({ machine: name, version: "1" });
  });

  test.each(machines)("of %s holds every transition of the machine, and no other", (name, machine) => {
    const { transitions } = JSON.parse(fileOf(`${name}.json`)) as Chart;
    const held = transitions.map(({ from, event, to }) => `${from} ${event} ${to}`);
    const branches = [...branchesOf(toDirectedGraph(machine))];
    expect(branches.length).toBeGreaterThan(3);
    expect(held.toSorted()).toEqual(branches.toSorted());
  });

  test.each(machines)("of %s shows every transition at its arrow or in its state", (name, machine) => {
    const svg = fileOf(`${name}.svg`);
    const missing = readChart(machine).transitions.filter((transition) => {
      const { from, to, event } = transition;
      const text = textOf(transition);
      const written = text.replace(eventName(event), `${eventName(event)} → ${to}`);
      const inside = readIn(svg, `state.${from}`);
      return ![inside.includes(text), inside.includes(written), readIn(svg, `${from} -> ${to}`).includes(text)].some(
        Boolean,
      );
    });
    expect(missing.map(textOf)).toEqual([]);
  });

  test.each(machines)("of %s shows every transition in its diagram", (name, machine) => {
    const lines = fileOf(`${name}.mmd`).split("\n");
    const missing = readChart(machine).transitions.filter((transition) => {
      const { from, to } = transition;
      const text = textOf(transition);
      const arrow = lines.find((line) => line.trim().startsWith(`${from} --> ${to} : `.replaceAll(".", "_")));
      if (to !== null && to !== from) return arrow === undefined || !arrow.includes(text);
      return !lines.some((line) => line.endsWith(text) && !line.includes("-->"));
    });
    expect(missing.map(textOf)).toEqual([]);
  });

  test.each(machines)("of %s shows every state with its description", (name, machine) => {
    const svg = fileOf(`${name}.svg`);
    for (const { path, description } of readChart(machine).states) {
      const text = readIn(svg, `state.${path}`);
      expect(text).toContain(path.split(".").at(-1));
      expect(text).toContain(description ?? "");
    }
  });

  test("says of the last branch that it is taken when no other is", () => {
    const ended = readChart(worker).transitions.filter(({ event }) => event === "turn.ended");
    expect(ended.map(textOf)).toEqual([
      "turn.ended [isAnswered] tells order.run",
      "turn.ended [hasOpenAsk]",
      "turn.ended [otherwise]",
    ]);
  });

  test("calls what XState tells of children by its meaning", () => {
    const texts = readChart(supervisor).transitions.map(textOf);
    expect(texts).toEqual([
      "worker.rested removes it",
      "a child has ended removes it",
      "a child has failed removes it",
      "worker.launch starts it",
    ]);
  });

  test("lists the reasons why a command is refused in their order", () => {
    const picture = decoded(fileOf("worker.svg").replaceAll(/<[^>]*>/g, " "));
    const diagram = decoded(fileOf("worker.mmd"));
    for (const list of Object.values(rules)) {
      const words = list.map(({ reason, message }) => [reason, message].map((word) => word.replaceAll(/\W/g, ".")));
      expect(picture).toMatch(new RegExp(words.map(([reason, message]) => `${reason} +${message}`).join(".*")));
      expect(diagram).toMatch(new RegExp(words.map(([reason, message]) => `${reason}: ${message}`).join(".*")));
    }
    expect(fileOf("supervisor.svg")).not.toContain("refused");
  });

  test("knows the facts that are made from context and event", () => {
    const { transitions, states } = readChart(worker);
    const facts = [...transitions, ...states.map(({ entry }) => ({ actions: entry }))].flatMap(({ actions }) =>
      actions.filter(({ does }) => does === "emit").map(({ fact }) => fact),
    );
    expect([...new Set(facts)].toSorted()).toEqual([
      "ask.answered",
      "ask.opened",
      "asks.abandoned",
      "assignment.closed",
      "order.resume",
      "order.run",
      "order.steer",
      "order.stop",
      "result.dropped",
      "result.stored",
      "worker.closed",
    ]);
  });
});

describe("the fragments of the worker's chart", () => {
  const chart = readChart(worker);
  const fragments = fragmentsOf(chart).map((fragment) => [fragment.of, fragment] as const);

  test("are one for every top state", () => {
    const tops = chart.states.filter(({ parent }) => parent === "").map(({ path }) => path);
    expect(fragments.map(([of]) => of)).toEqual(tops);
    const drawn = [...files.keys()].filter((name) => /^worker\.\w+\.(svg|mmd)$/.test(name));
    expect(drawn).toEqual(tops.flatMap((of) => [`worker.${of}.svg`, `worker.${of}.mmd`]));
    expect(fragmentsOf(readChart(supervisor))).toEqual([]);
  });

  test.each(fragments)(
    "of %s shows every transition into it, through it and out of it, and no other",
    (of, fragment) => {
      const touches = ({ from, to }: ChartTransition) => [from, to].some((path) => path?.split(".")[0] === of);
      const wanted = chart.transitions.filter(touches).map((it) => `${it.from} ${textOf(it)} ${it.to}`);
      const plain = (path: string | null) => path?.replace(/^(from|to):/, "") ?? null;
      const held = fragment.transitions.map((it) => `${plain(it.from)} ${textOf(it)} ${plain(it.to)}`);
      expect(held).toEqual(wanted);
      const svg = fileOf(`worker.${of}.svg`);
      const lines = fileOf(`worker.${of}.mmd`).split("\n");
      for (const transition of fragment.transitions) {
        const { from, to } = transition;
        const text = textOf(transition);
        const isArrow = to !== null && to !== from;
        const written = text.replace(eventName(transition.event), `${eventName(transition.event)} → ${to}`);
        const shown = [
          readIn(svg, `${from} -> ${to}`).includes(text),
          readIn(svg, `state.${from}`).includes(isArrow ? written : text),
        ];
        expect(shown).toContain(true);
        const arrow = `${from} --> ${to} : `.replaceAll(/[.:](?=\S)/g, "_");
        expect(lines.some((line) => line.includes(text) && line.includes(arrow) === isArrow)).toBe(true);
      }
    },
  );

  test.each(fragments)("of %s is small and keeps the colour that the state has in the whole", (of) => {
    const svg = fileOf(`worker.${of}.svg`);
    const [, width, height] = (/width="(\d+)pt" height="(\d+)pt"/.exec(svg) ?? []).map(Number) as number[];
    expect(width).toBeLessThan(1_450);
    expect(height).toBeLessThan(600);
    const colourIn = (picture: string) =>
      picture.slice(picture.indexOf(`id="state.${of}"`)).match(/stroke="#\w+"/)?.[0];
    expect(colourIn(svg)).toBe(colourIn(fileOf("worker.svg")));
  });
});

describe("the check of the charts", () => {
  let into: string;

  beforeEach(async () => {
    into = mkdtempSync(join(tmpdir(), "charts-"));
    await writeCharts(into);
  });

  afterEach(() => rmSync(into, { recursive: true }));

  const check = () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(folder, "../charts.ts"), "--check", into]);
    return { status, told: `${stdout}${stderr}` };
  };

  test("accepts what was just drawn, also with other ends of lines", async () => {
    expect(await staleCharts(into)).toEqual([]);
    writeFileSync(join(into, "worker.mmd"), fileOf("worker.mmd").replaceAll("\n", "\r\n"));
    expect(await staleCharts(into)).toEqual([]);
    expect(check()).toMatchObject({ status: 0 });
  });

  test("names every file that is different, missing or of no machine, and the command that draws them", async () => {
    writeFileSync(join(into, "worker.svg"), fileOf("worker.svg").replace("inTurn", "inturn"));
    rmSync(join(into, "supervisor.json"));
    writeFileSync(join(into, "gone.mmd"), "");
    expect(await staleCharts(into)).toEqual(["supervisor.json", "worker.svg", "gone.mmd"]);
    const { status, told } = check();
    expect(status).toBe(1);
    for (const name of ["supervisor.json", "worker.svg", "gone.mmd"]) expect(told).toContain(join(into, name));
    expect(told).toContain("npm run charts");
    expect(told).not.toContain("worker.json");
  });

  test("is content again once they are drawn", async () => {
    writeFileSync(join(into, "worker.svg"), "");
    writeFileSync(join(into, "gone.svg"), "");
    writeFileSync(join(into, "notes.txt"), "kept");
    await writeCharts(into);
    expect(await staleCharts(into)).toEqual([]);
    expect(readdirSync(into)).not.toContain("gone.svg");
    expect(readFileSync(join(into, "notes.txt"), "utf8")).toBe("kept");
  });

  test("finds everything stale where nothing was drawn", async () => {
    expect(await staleCharts(join(into, "nowhere"))).toEqual([...files.keys()]);
  });
});

describe("the plain data", () => {
  test("is written as the formatter writes it", () => {
    const long = Array.from({ length: 30 }, (_, index) => `word${index}`);
    const value = { none: [], empty: {}, words: ["a", "b"], long, rows: [{ a: 1 }, [2, null]] };
    const text = toJson(value);
    expect(JSON.parse(text)).toEqual(value);
    expect(text).toContain('  "words": ["a", "b"],\n');
    expect(text).toContain('  "long": [\n    "word0",\n');
    expect(text).toContain('  "rows": [\n    {\n      "a": 1\n    },\n    [2, null]\n  ]\n}\n');
  });
});
