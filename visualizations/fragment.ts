import { statesIn, type Chart, type ChartState } from "./graph.ts";

/**
 * One top state of a chart with what is inside of it, and the transitions that lead into it, through it and out of it. The
 * other ends of those are small states outside: where they come from on one side, where they lead on the other.
 */
export interface Fragment extends Chart {
  /** The top state that is shown. */
  of: string;
  /** The top states of the whole chart, in its order. */
  tops: string[];
}

/** The fragments of a chart, one for each top state. A chart of one state is its own fragment. */
export function fragmentsOf(chart: Chart): Fragment[] {
  const tops = statesIn(chart, "").map(({ path }) => path);
  return tops.length < 2 ? [] : tops.map((of) => fragmentOf(chart, of, tops));
}

function fragmentOf(chart: Chart, of: string, tops: string[]): Fragment {
  const inside = (path: string) => path === of || path.startsWith(`${of}.`);
  const [root] = chart.states as [ChartState];
  const transitions = chart.transitions
    .filter(({ from, to }) => inside(from) || (to !== null && inside(to)))
    .map((it) => ({
      ...it,
      from: inside(it.from) ? it.from : `from:${it.from}`,
      to: it.to === null || inside(it.to) ? it.to : `to:${it.to}`,
    }));
  const ends = new Set(transitions.flatMap(({ from, to }) => (to === null ? [from] : [from, to])));
  const outside = [...ends].filter((path) => path.includes(":")).map(outer);
  return {
    ...chart,
    of,
    tops,
    states: [
      { ...root, description: null, initial: root.initial === of ? of : null, entry: [], exit: [] },
      ...chart.states.filter(({ path }) => inside(path)),
      ...outside,
    ],
    transitions,
  };
}

function outer(path: string): ChartState {
  const name = path.slice(path.indexOf(":") + 1);
  return { path, name, parent: "", kind: "atomic", description: null, initial: null, entry: [], exit: [] };
}
