import type { WorkerRow } from "../../../runtime/index.ts";
import { columnsOf, fit, pad, visible } from "./text.ts";

export interface TreeOptions {
  /** The size of the terminal. The tree leaves the last column free, which some terminals wrap at. */
  columns: number;
  rows: number;
  /** Progress by the request that a worker is at. */
  notes: ReadonlyMap<string, string>;
}

interface Line {
  label: string;
  state: string;
  says: string;
}

/**
 * The workers as a tree, one line each: label, state, and what it asks, or what it is at and what its task is. Children that wait for a free place
 * are one line together. Never wider or higher than allowed.
 */
export function renderTree(workers: readonly WorkerRow[], { columns, rows, notes }: TreeOptions): string[] {
  const lines = treeLines(workers, notes);
  const shown = lines.length > rows - 1 ? lines.slice(0, Math.max(1, rows - 2)) : lines;
  const labels = widest(shown.map(({ label }) => label));
  const states = widest(shown.map(({ state }) => state));
  const text = shown.map(({ label, state, says }) => `${pad(label, labels)}  ${pad(state, states)}  ${says}`.trimEnd());
  if (shown.length < lines.length) text.push(`… and ${lines.length - shown.length} more`);
  return text.map((line) => fit(line, columns - 1));
}

function treeLines(workers: readonly WorkerRow[], notes: ReadonlyMap<string, string>): Line[] {
  const below = (parent: string | undefined) => workers.filter((worker) => worker.parentLabel === parent);
  return below(undefined).flatMap((worker) => {
    const [queued, others] = parted(below(worker.label), (child) => child.queued === true);
    const children = others.map((child) => lineOf(child, notes));
    if (queued.length > 0) children.push({ label: `${queued.length} more`, state: "queued", says: "" });
    return [lineOf(worker, notes), ...children.map((line, index) => branched(line, index === children.length - 1))];
  });
}

function branched(line: Line, isLast: boolean): Line {
  return { ...line, label: `${isLast ? "└─" : "├─"} ${line.label}` };
}

function parted<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter((item) => isFirst(item)), items.filter((item) => !isFirst(item))];
}

function lineOf(worker: WorkerRow, notes: ReadonlyMap<string, string>): Line {
  return { label: visible(worker.label), state: worker.state, says: visible(saysOf(worker, notes)) };
}

function saysOf(worker: WorkerRow, notes: ReadonlyMap<string, string>): string {
  if (worker.question) return `asks: ${worker.question.question.split("\n")[0]}`;
  if (worker.diagnostic) return worker.diagnostic;
  const { label, task = "" } = worker;
  return notes.get(worker.activeRequestId ?? "") ?? (task === label ? "" : task);
}

function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map(columnsOf));
}
