import { rules, type Rule } from "../machines/eligibility.ts";
import type { Chart } from "./graph.ts";

/** Why a command is refused: the reasons in their order, of which the first that holds is told. */
export interface Legend {
  title: string;
  reasons: { reason: string; message: string; states: string }[];
}

const titles: Record<keyof typeof rules, string> = {
  askOwner: "ask [mayAsk] of the direct owner",
  parkedAsk: "ask [mayAsk] that parks",
  reply: "reply [mayReply]",
  steer: "steer [maySteer]",
  assign: "assign [mayAssign]",
  delegate: "worker.launch [mayDelegate]",
  close: "close",
};

/** The legends of a chart: one for every command that it takes. */
export function legendsOf(chart: Chart): Legend[] {
  const guards = new Set(chart.transitions.map(({ guard }) => guard));
  if (!guards.has("mayAsk")) return [];
  return Object.entries(titles).map(([command, title]) => ({
    title,
    reasons: rules[command as keyof typeof rules].map((rule) => readRule(chart, rule)),
  }));
}

/** One legend as a sentence that introduces its reasons. */
export function introduction({ title, reasons }: Legend): string {
  return `${title} is refused for ${reasons.length === 1 ? "one reason" : "the first reason that holds"}`;
}

function readRule(chart: Chart, { reason, message, in: paths = [] }: Rule) {
  return { reason, message, states: shortened(chart, paths).join(", ") };
}

/** A box of states in place of all its states. */
function shortened({ states }: Chart, paths: readonly string[]): string[] {
  const named = paths.map((path) => {
    const box = path.split(".")[0] as string;
    const inner = states.filter(({ parent }) => parent === box);
    return inner.every((state) => paths.includes(state.path)) ? box : path;
  });
  return [...new Set(named)];
}
