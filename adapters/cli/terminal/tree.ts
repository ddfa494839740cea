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

/** The workers as a tree, one line each: label, state, and what it asks or does. Never wider or higher than allowed. */
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
  const lines: Line[] = [];
  const below = (parent: string | undefined) => workers.filter((worker) => worker.parentLabel === parent);
  for (const worker of below(undefined)) {
    lines.push(lineOf(worker, "", notes));
    const children = below(worker.label);
    for (const [index, child] of children.entries()) {
      lines.push(lineOf(child, index === children.length - 1 ? "└─ " : "├─ ", notes));
    }
  }
  return lines;
}

function lineOf(worker: WorkerRow, branch: string, notes: ReadonlyMap<string, string>): Line {
  return { label: branch + visible(worker.label), state: worker.state, says: visible(saysOf(worker, notes)) };
}

function saysOf(worker: WorkerRow, notes: ReadonlyMap<string, string>): string {
  if (worker.question) return `asks: ${worker.question.question.split("\n")[0]}`;
  if (worker.diagnostic) return worker.diagnostic;
  if (worker.queued) return "waits for its turn";
  return notes.get(worker.activeRequestId ?? "") ?? "";
}

function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map(columnsOf));
}
