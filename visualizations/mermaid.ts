import {
  conditionOf,
  effectOf,
  eventName,
  nameOf,
  statesIn,
  type Chart,
  type ChartState,
  type ChartTransition,
} from "./graph.ts";
import type { Fragment } from "./fragment.ts";
import { introduction, type Legend } from "./legend.ts";

/** A chart as a Mermaid state diagram, with the legends as comments: for pages that draw Mermaid themselves. */
export function toMermaid(chart: Chart | Fragment, legends: readonly Legend[] = []): string {
  const [root] = chart.states as [ChartState];
  return [
    `%% ${chart.machine}${"of" in chart ? `, its state ${chart.of}` : ""}, version ${chart.version}`,
    ...(root.description === null ? [] : [`%% ${root.description}`]),
    "stateDiagram-v2",
    ...indented(["direction LR", ...notes(chart, root), ...drawInner(chart, root), ...drawArrows(chart)]),
    ...legends.flatMap(drawLegend),
    "",
  ].join("\n");
}

function drawInner(chart: Chart, { path, initial }: ChartState): string[] {
  return [
    ...(initial === null ? [] : [`[*] --> ${idOf(initial)}`]),
    ...statesIn(chart, path).flatMap((state) => drawState(chart, state)),
  ];
}

function drawState(chart: Chart, state: ChartState): string[] {
  const id = idOf(state.path);
  const named = `state "${nameOf(chart, state.path)}" as ${id}`;
  if (state.kind === "compound")
    return [`${named} {`, ...indented(drawInner(chart, state)), "}", ...notes(chart, state)];
  const lines = linesOf(chart, state).map((line) => `${id} : ${line}`);
  return [named, ...lines, ...(state.kind === "final" ? [`${id} --> [*]`] : [])];
}

/** A box of states has no room for text: what it takes as a whole stands beside it. */
function notes(chart: Chart, state: ChartState): string[] {
  const lines = linesOf(chart, state);
  if (lines.length === 0) return [];
  // The root has no box of its own.
  if (state.parent === null) return ["%% In every state:", ...lines.map((line) => `%%   ${line}`)];
  return [`note right of ${idOf(state.path)}`, ...indented(lines), "end note"];
}

/** Description, what is told on entering, and the events that leave the state as it is. */
function linesOf(chart: Chart, state: ChartState): string[] {
  const staying = chart.transitions.filter(({ from, to }) => from === state.path && (to === null || to === from));
  const told = effectOf(state.entry);
  return [
    ...(state.description === null || state.parent === null ? [] : [escaped(state.description)]),
    ...(told === "" ? [] : [`on entering ${told}`]),
    ...staying.map(textOf),
  ];
}

function drawArrows(chart: Chart): string[] {
  const moving = chart.transitions.filter(({ from, to }) => to !== null && to !== from);
  return [...Map.groupBy(moving, ({ from, to }) => `${idOf(from)} --> ${idOf(to ?? "")}`)].map(
    ([arrow, transitions]) => `${arrow} : ${transitions.map(textOf).join("<br>")}`,
  );
}

function textOf(transition: ChartTransition): string {
  const parts = [eventName(transition.event), conditionOf(transition), effectOf(transition.actions)];
  return escaped(parts.filter(Boolean).join(" "));
}

function drawLegend(legend: Legend): string[] {
  const reasons = legend.reasons.map(
    ({ reason, message, states }, index) => `%%   ${index + 1}. ${reason}: ${message}${states && ` (in ${states})`}`,
  );
  return ["%%", `%% ${introduction(legend)}:`, ...reasons];
}

/** Mermaid's names are words. */
function idOf(path: string): string {
  return path.replaceAll(/[.:]/g, "_");
}

/** A colon or a semicolon would end a text in Mermaid, which does not decode its own entities everywhere. */
function escaped(text: string): string {
  return text.replaceAll(": ", " – ").replaceAll(";", ",");
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}
