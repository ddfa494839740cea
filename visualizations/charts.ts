/**
 * The pictures of the machines, drawn from the machines themselves.
 *
 * `node visualizations/charts.ts` writes them, `--check` says which are stale and how to draw them again.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { instance } from "@viz-js/viz";
import type { AnyStateMachine } from "xstate";
import { supervisor } from "../machines/supervisor.ts";
import { worker } from "../machines/worker.ts";
import { toDot } from "./dot.ts";
import { fragmentsOf } from "./fragment.ts";
import { readChart } from "./graph.ts";
import { toJson } from "./json.ts";
import { legendsOf } from "./legend.ts";
import { toMermaid } from "./mermaid.ts";

const machines: readonly AnyStateMachine[] = [supervisor, worker];

/** Where the pictures are kept. */
export const folder = join(import.meta.dirname, "charts");

/**
 * The text of every file by its name: one picture, one Mermaid diagram and the plain data for each machine, and a picture
 * and a diagram for each of its top states.
 */
export async function drawCharts(): Promise<Map<string, string>> {
  const viz = await instance();
  const files = new Map<string, string>();
  for (const machine of machines) {
    const chart = readChart(machine);
    const legends = legendsOf(chart);
    files.set(`${chart.machine}.svg`, finished(viz.renderString(toDot(chart, legends), { format: "svg" })));
    files.set(`${chart.machine}.mmd`, toMermaid(chart, legends));
    files.set(`${chart.machine}.json`, toJson({ ...chart, legends }));
    for (const fragment of fragmentsOf(chart)) {
      const name = `${chart.machine}.${fragment.of}`;
      files.set(`${name}.svg`, finished(viz.renderString(toDot(fragment), { format: "svg" })));
      files.set(`${name}.mmd`, toMermaid(fragment));
    }
  }
  return files;
}

/** Writes every file, and takes away those of machines that are gone. */
export async function writeCharts(into = folder): Promise<string[]> {
  const files = await drawCharts();
  mkdirSync(into, { recursive: true });
  for (const name of readdirSync(into)) if (isChart(name) && !files.has(name)) rmSync(join(into, name));
  for (const [name, text] of files) writeFileSync(join(into, name), text);
  return [...files.keys()];
}

/** The names of the files that are missing, different from what would be drawn now, or of no machine. */
export async function staleCharts(of = folder): Promise<string[]> {
  const files = await drawCharts();
  const left = namesIn(of).filter((name) => isChart(name) && !files.has(name));
  const stale = [...files].filter(([name, text]) => textOf(join(of, name)) !== text).map(([name]) => name);
  return [...stale, ...left];
}

/** Graphviz writes its own version and a document type, which pages that embed the picture do not want. */
function finished(svg: string): string {
  return svg
    .slice(svg.indexOf("<svg"))
    .replaceAll(/<!--[\s\S]*?-->\n?/g, "")
    .replaceAll(/font-family="Helvetica[^"]*"/g, 'font-family="Helvetica, Arial, sans-serif"');
}

const isChart = (name: string) => /\.(svg|mmd|json)$/.test(name);

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** A checkout may have changed the ends of lines. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").replaceAll("\r\n", "\n");
  } catch {
    return undefined;
  }
}

if (import.meta.main) {
  const [option, into = folder] = process.argv.slice(2);
  if (option === "--check") {
    const stale = await staleCharts(into);
    for (const name of stale) console.error(`${join(into, name)} is not what the machines say. Run npm run charts.`);
    if (stale.length > 0) process.exitCode = 1;
    else console.log("the charts are what the machines say");
  } else if (option === undefined) {
    for (const name of await writeCharts()) console.log(`drew ${join(folder, name)}`);
  } else {
    console.error(`unknown option ${option}; there is --check`);
    process.exitCode = 2;
  }
}
