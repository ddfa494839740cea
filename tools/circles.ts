/**
 * Circles among files that import each other.
 */
import { posix } from "node:path";

export interface Edge {
  from: string;
  to: string;
  line: number;
  typeOnly: boolean;
}

export interface Circle {
  /** The import that closes the circle, with its line. */
  edge: Edge;
  /** The files on the way round, the first one again at the end. */
  path: string[];
  /** `value` circles exist at run time; `types` circles lie across folders and exist for the reader alone. */
  kind: "value" | "types";
}

/**
 * Finds the circles that are not allowed: any at run time, and those made with type-only imports when they leave a
 * folder. Inside one folder types may refer to each other.
 */
export function findCircles(edges: readonly Edge[]): Circle[] {
  const sorted = edges.toSorted((a, b) => a.from.localeCompare(b.from) || a.line - b.line);
  const known = new Set<string>();
  const circles: Circle[] = [];
  const search = (kind: Circle["kind"], candidates: readonly Edge[], graph: ReadonlyMap<string, string[]>) => {
    for (const edge of candidates) {
      const back = shortestPath(graph, edge.to, edge.from);
      if (!back) continue;
      const key = back.toSorted().join("\n");
      if (known.has(key)) continue;
      known.add(key);
      circles.push({ edge, path: [edge.from, ...back], kind });
    }
  };
  const values = sorted.filter((edge) => !edge.typeOnly);
  search("value", values, graphOf(values));
  const acrossFolders = sorted.filter((edge) => posix.dirname(edge.from) !== posix.dirname(edge.to));
  search("types", acrossFolders, graphOf(sorted));
  return circles;
}

function graphOf(edges: readonly Edge[]): Map<string, string[]> {
  const graph = new Map<string, string[]>();
  for (const { from, to } of edges) graph.set(from, [...(graph.get(from) ?? []), to]);
  return graph;
}

function shortestPath(graph: ReadonlyMap<string, string[]>, from: string, to: string): string[] | undefined {
  const cameFrom = new Map<string, string | undefined>([[from, undefined]]);
  for (const node of cameFrom.keys()) {
    if (node === to) {
      const path = [node];
      for (let back = cameFrom.get(node); back !== undefined; back = cameFrom.get(back)) path.unshift(back);
      return path;
    }
    for (const next of graph.get(node) ?? []) if (!cameFrom.has(next)) cameFrom.set(next, node);
  }
  return undefined;
}
