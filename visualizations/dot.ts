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

/**
 * A chart in Graphviz's language. Inner states are boxes in their state's box; what leaves a state as it is stands
 * as lines inside of it, everything else is an arrow, one between two states however many events lead along it.
 */
export function toDot(chart: Chart | Fragment, legends: readonly Legend[] = []): string {
  const [root] = chart.states as [ChartState];
  return [
    `digraph ${quoted(chart.machine)} {`,
    ...indented([
      `graph [compound=true, newrank=true, rankdir=LR, nodesep=0.3, ranksep=0.6, pad=0.3, fontname="Helvetica"]`,
      `graph [bgcolor=white, labelloc=b, labeljust=l, label=${legends.length > 0 ? `<${drawLegends(legends)}>` : '""'}]`,
      'node [shape=plain, fontname="Helvetica", fontsize=13]',
      'edge [fontname="Helvetica", fontsize=11, arrowsize=0.8, penwidth=1.2]',
      ...(root.initial === null
        ? []
        : [
            `start [shape=circle, style=filled, width=0.16, label="", color="${grey.line}"]`,
            `start -> ${quoted(arrivalAt(chart, ""))} [color="${grey.line}"]`,
          ]),
      // A fragment is of a machine that has its own picture.
      ...("of" in chart ? statesIn(chart, "").flatMap((state) => drawState(chart, state)) : drawState(chart, root)),
      ...drawArrows(chart),
    ]),
    "}",
    "",
  ].join("\n");
}

interface Colour {
  line: string;
  fill: string;
}

const grey: Colour = { line: "#4d5866", fill: "#f4f5f7" };
/** By top state, in the order of the chart. */
const palette: readonly Colour[] = [
  { line: "#1f7a4d", fill: "#e9f6ef" },
  { line: "#1f5fa8", fill: "#e9f1fb" },
  { line: "#a8620b", fill: "#fdf3e3" },
  { line: "#6b4aa8", fill: "#f2edfb" },
  { line: "#a8324a", fill: "#fcebef" },
];

const KEY = "How to read: what happens [when it is taken] tells what is stored in the same step.";

/** From how many states an event must lead to the same one to be written instead of drawn. */
const MANY = 4;
/** How long a line of a description may be, in letters. */
const LINE = 48;

function colourOf(chart: Chart | Fragment, path: string): Colour {
  const top = /[^.:]*(?=\.|$)/.exec(path)?.[0] ?? "";
  const tops = "tops" in chart ? chart.tops : statesIn(chart, "").map((state) => state.path);
  return palette[tops.indexOf(top)] ?? grey;
}

function drawState(chart: Chart, state: ChartState): string[] {
  const id = quoted(`state.${state.path}`);
  if (state.kind !== "compound") return [`${quoted(state.path)} [id=${id}, label=<${box(chart, state)}>]`];
  const inner = statesIn(chart, state.path);
  const { line, fill } = colourOf(chart, state.path);
  const style =
    state.parent === null
      ? "peripheries=0"
      : `peripheries=1, style="rounded,filled", color="${line}", fillcolor="${fill}"`;
  const title = listed(lines(chart, state, state.parent === null ? 26 : 18));
  return [
    `subgraph ${quoted(`cluster ${state.path}`)} {`,
    ...indented([
      `graph [id=${id}, ${style}, margin=14, labelloc=t, labeljust=l, label=<${title}>]`,
      ...(state.parent === null ? [] : [`{ rank=same; ${inner.map(({ path }) => quoted(path)).join("; ")} }`]),
      ...inner.flatMap((child) => drawState(chart, child)),
    ]),
    "}",
  ];
}

/**
 * Whether a transition is drawn as an arrow. What leads to the same state from everywhere would cover the picture
 * with arrows that say nothing: it is written in the states that it leaves.
 */
function isArrow(chart: Chart, { event, from, to }: ChartTransition): boolean {
  if (to === null || to === from) return false;
  // A box that leads to its own first state would be drawn as a loop at that state.
  if (to.startsWith(`${from}.`) && arrivalAt(chart, from) === to) return false;
  if ("of" in chart) return arrivalAt(chart, from) !== arrivalAt(chart, to);
  const alike = chart.transitions.filter((other) => other.event === event && other.to === to);
  return new Set(alike.map((other) => other.from)).size < MANY;
}

function drawArrows(chart: Chart): string[] {
  const drawn = chart.transitions.filter((transition) => isArrow(chart, transition));
  const arrows = [...Map.groupBy(drawn, ({ from, to }) => `${from} -> ${to}`)];
  return arrows.map(([id, transitions], index) => {
    const { from, to } = transitions[0] as ChartTransition & { to: string };
    const texts = transitions.map((it) => row(text(chart, it), 'bgcolor="#ffffffb0"'));
    // The texts of two arrows to and fro are put at the same place: each leaves room for the other.
    const opposite = arrows.findIndex(([other]) => other === `${to} -> ${from}`);
    const room = (arrows[opposite]?.[1] ?? []).map(() => row("&#160;"));
    const label = table(opposite < index ? [...room, ...texts] : [...texts, ...room], 'cellpadding="1"');
    // Graphviz draws between nodes only: an arrow that leaves a box of states is cut off at its border.
    const cut = statesIn(chart, from).length > 0 ? `, ltail=${quoted(`cluster ${from}`)}` : "";
    const ends = `${quoted(arrivalAt(chart, from))} -> ${quoted(arrivalAt(chart, to))}`;
    return `${ends} [id=${quoted(id)}, color="${colourOf(chart, from).line}", label=<${label}>${cut}]`;
  });
}

/** Where one arrives: a box of states is entered at its first one. */
function arrivalAt(chart: Chart, path: string): string {
  const state = chart.states.find((state) => state.path === path);
  return state?.initial ? arrivalAt(chart, state.initial) : path;
}

function box(chart: Chart, state: ChartState): string {
  const { line, fill } = colourOf(chart, state.path);
  const background = state.parent === "" ? fill : "#ffffff";
  const border = state.kind === "final" ? 3 : 1;
  const attributes = `border="${border}" style="rounded" color="${line}" bgcolor="${background}" cellpadding="6"`;
  return table([row(listed(lines(chart, state, state.name === undefined ? 15 : 12)))], attributes);
}

/** Title, description, what is told on entering, and every event that is no arrow. */
function lines(chart: Chart, state: ChartState, size: number): string[] {
  const { line } = colourOf(chart, state.path);
  const inside = chart.transitions.filter((it) => it.from === state.path && !isArrow(chart, it));
  const told = effectOf(state.entry);
  return [
    font(nameOf(chart, state.path), { size, colour: line, weight: "b" }),
    ...wrapped(state.description ?? "").map((part) => font(part, { size: 11, colour: "#333333" })),
    ...(told === "" ? [] : [font(told, { size: 10, colour: "#6a7482", weight: "i" })]),
    ...(state.parent === null ? [font(KEY, { size: 10, colour: "#6a7482" })] : []),
    ...(state.parent === null && inside.length > 0 ? [font("In every state:", { size: 11, colour: "#333333" })] : []),
    ...inside.map((transition) => text(chart, transition)),
  ];
}

/** An event, where it leads when no arrow shows it, its condition, and what is told. */
function text(chart: Chart, transition: ChartTransition): string {
  const { from, to, event, actions } = transition;
  const written = to !== null && to !== from && !isArrow(chart, transition);
  const parts = [
    font(eventName(event), { size: 11, colour: colourOf(chart, from).line, weight: "b" }),
    written && font(`→ ${to}`, { size: 11, colour: colourOf(chart, to).line, weight: "b" }),
    font(conditionOf(transition), { size: 11, colour: "#333333" }),
    font(effectOf(actions), { size: 10, colour: "#6a7482", weight: "i" }),
  ];
  return parts.filter(Boolean).join(" ");
}

/** The legends in two columns of about the same length below the picture. */
function drawLegends(legends: readonly Legend[]): string {
  const half = legends.reduce((sum, { reasons }) => sum + reasons.length + 2, 0) / 2;
  const columns: string[][] = [[], []];
  for (const legend of legends) {
    const [left = [], right = []] = columns;
    const rows = drawLegend(legend);
    (right.length === 0 && left.length + rows.length <= half + 2 ? left : right).push(...rows);
  }
  const length = Math.max(...columns.map((column) => column.length));
  const cells = columns.map((column) => {
    const rows = [...column, ...Array.from({ length: length - column.length }, () => blank)];
    return `<td align="left">${table(rows, 'cellpadding="2"')}</td>`;
  });
  return table([`<tr>${cells.join("")}</tr>`], 'cellpadding="14"');
}

const blank = '<tr><td colspan="3">&#160;</td></tr>';

function drawLegend(legend: Legend): string[] {
  const title = font(introduction(legend), { size: 12, colour: grey.line, weight: "b" });
  const reasons = legend.reasons.map(({ reason, message, states }, index) => {
    const where = states === "" ? "" : font(` in ${states}`, { size: 10, colour: "#6a7482", weight: "i" });
    const cells = [
      font(`${index + 1}`, { size: 11, colour: "#6a7482" }),
      font(reason, { size: 11, colour: grey.line, weight: "b" }),
      font(message, { size: 11, colour: "#333333" }) + where,
    ];
    return `<tr>${cells.map((cell) => `<td align="left">${cell}</td>`).join("")}</tr>`;
  });
  return [blank, `<tr><td align="left" colspan="3">${title}</td></tr>`, ...reasons];
}

interface Face {
  size: number;
  colour: string;
  weight?: "b" | "i";
}

/** Bold and slanted letters are wider than Graphviz reckons, so that some space follows them. */
function font(words: string, { size, colour, weight }: Face): string {
  if (words === "") return "";
  const slack = weight === undefined ? "" : "&#160;".repeat(Math.ceil(words.length / 14));
  const content = weight === undefined ? escaped(words) : `<${weight}>${escaped(words)}</${weight}>`;
  return `<font point-size="${size}" color="${colour}">${content}${slack}</font>`;
}

function table(rows: readonly string[], attributes: string): string {
  const border = attributes.includes("border=") ? "" : 'border="0" ';
  return `<table ${border}cellborder="0" cellspacing="0" ${attributes}>${rows.join("")}</table>`;
}

function row(content: string, attributes = ""): string {
  return `<tr><td align="left" ${attributes}>${content}</td></tr>`;
}

function listed(contents: readonly string[]): string {
  return table(
    contents.map((content) => row(content)),
    'cellpadding="1"',
  );
}

/** A sentence in lines of about the same length. */
function wrapped(sentence: string): string[] {
  const width = 4 + sentence.length / Math.ceil(sentence.length / LINE);
  const parts: string[] = [];
  for (const word of sentence.split(" ").filter(Boolean)) {
    const last = parts.at(-1);
    if (last === undefined || last.length + word.length >= width) parts.push(word);
    else parts[parts.length - 1] = `${last} ${word}`;
  }
  return parts;
}

function escaped(value: string): string {
  return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function quoted(value: string): string {
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

function indented(rows: readonly string[]): string[] {
  return rows.map((line) => `  ${line}`);
}
