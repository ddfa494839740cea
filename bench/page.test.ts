import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { sectionOf } from "../test/docs/page.ts";
import { binary, root } from "../tools/run.ts";
import { NAMES, POINTS, pointsOf, type Figure, type FigureName, type Measurement } from "./figures.ts";
import { toPage, writePage } from "./page.ts";
import { toPlot } from "./plot.ts";
import { SECTIONS, type Quantity } from "./sections.ts";

const figures: Figure[] = [
  {
    ...{ name: "cycle", concurrency: 1, cyclesPerSecond: 413, rawCyclesPerSecond: 826, ratio: 0.512 },
    ...{ ratios: [0.512, 0.433, 0.621], cpuMsPerCycle: 1.57 },
  },
  {
    ...{ name: "cycle", concurrency: 100, cyclesPerSecond: 12_345, rawCyclesPerSecond: 24_690, ratio: 0.507 },
    ...{ ratios: [0.507, 0.477, 0.519], cpuMsPerCycle: 0.391 },
  },
  {
    ...{ name: "parked", parked: 7_000, owners: 70, openMs: 14.2, listMs: 8.11, openAndListMs: 23.6 },
    ...{ firstAnswerMs: 9.04 },
  },
  { name: "trees", owners: 9_000, maxTrees: 900, cyclesPerSecond: 2_511, warmCyclesPerSecond: 2_903, ratio: 0.865 },
  { name: "heap", workersPerTree: 100, workers: 5_001, bytesPerWorker: 2_962 },
  { name: "heap", workersPerTree: 1, workers: 5_002, bytesPerWorker: 8_308 },
  {
    ...{ name: "resume", concurrency: 1, resumesPerSecond: 604, rawPerSecond: 1_510, ratio: 0.4 },
    ...{ ratios: [0.4, 0.372, 0.418] },
  },
  {
    ...{ name: "resume", concurrency: 100, resumesPerSecond: 2_222, rawPerSecond: 4_040, ratio: 0.55 },
    ...{ ratios: [0.55, 0.549, 0.561] },
  },
  { name: "listing", entries: 11_000, subjects: 110, listAllMs: 188, listOneMs: 2.13 },
  { name: "jq", evaluationsPerSecond: 811, atOncePerSecond: 1_612, functionsPerSecond: 98_000, firstMs: 77.4 },
  { name: "disk", entries: 120_000, rssMb: 131, emptyRssMb: 129, heapMb: 21.3, emptyHeapMb: 20.9 },
  { name: "pi-start", workers: 1, firstTurnMs: 977, bareMs: 921, overMs: 58.2 },
  { name: "pi-start", workers: 8, firstTurnMs: 5_004, bareMs: 4_902, overMs: 103 },
  { name: "pi-latency", questions: 17, questionMs: 13.1, replyMs: 9.02 },
  { name: "host-memory", known: 0, ownMb: 48.1, rssMb: 98.7 },
  { name: "host-memory", known: 1_000, ownMb: 86.3, rssMb: 137 },
];
const measurement: Measurement = {
  date: "2026-03-01",
  machine: {
    ...{ processor: "Abacus 9 @ 3.00GHz", processors: 6, memory: 12 * 2 ** 30, system: "Linux 6.1.2, arm64" },
    ...{ node: "v24.0.1", fileSystem: "xfs", loads: [0.25, 1.5] },
  },
  figures,
};

/** The rows of the only table in a text, without its rule. */
const rowsOf = (text: string) =>
  [...text.matchAll(/^\| (.*) \|$/gm)]
    .map(([, row = ""]) => row.split(/ +\| +/).map((cell) => cell.trim()))
    .filter(([first = ""]) => !first.startsWith("---"));

const shownAs = (value: unknown) => [value].flat().map((one) => (one as number).toLocaleString("en-US"));

describe("the page about performance", () => {
  test.each(NAMES as FigureName[])("holds every quantity of %s with its unit", (name) => {
    const { title, quantities } = SECTIONS[name] as { title: string; quantities: Record<string, Quantity | null> };
    const shown = figures.filter((figure) => figure.name === name) as unknown as Record<string, unknown>[];
    expect(["name", ...Object.keys(quantities)].toSorted()).toEqual(Object.keys(shown[0] ?? {}).toSorted());
    const [head, ...rows] = rowsOf(sectionOf(toPage(measurement), title));
    expect([head?.[0], head?.length, head?.at(-1)]).toEqual(["what", shown.length + 2, "unit"]);
    const expected = Object.entries(quantities).flatMap(([key, quantity]) =>
      quantity ? [[quantity.what, ...shown.map((figure) => shownAs(figure[key]).join(" / ")), quantity.unit]] : [],
    );
    expect(rows).toEqual(expected);
  });

  test("has a column for every number of callers, with product, raw limit and their ratio", () => {
    const [head, ...rows] = rowsOf(sectionOf(toPage(measurement), "Cycles beside the raw limit"));
    expect(head).toEqual(["what", "1 caller", "100 callers", "unit"]);
    expect(rows.slice(0, 3)).toEqual([
      ["product, median of the rounds", "413", "12,345", "cycles a second"],
      ["raw limit, median of the rounds", "826", "24,690", "cycles a second"],
      ["ratio, median of the rounds", "0.512", "0.507", "product ÷ raw limit"],
    ]);
  });

  test("says on which day, on what and at which load it was measured, and the raw limit", () => {
    const rows = Object.fromEntries(rowsOf(sectionOf(toPage(measurement), "Measured on")));
    expect(rows).toEqual({
      what: "value",
      "day (UTC)": "2026-03-01",
      processor: "Abacus 9 @ 3.00GHz",
      "logical processors": "6",
      memory: "12 GiB",
      "operating system": "Linux 6.1.2, arm64",
      "Node.js": "v24.0.1",
      "file system of the stores": "xfs",
      "load at the beginning, of one minute": "0.25",
      "load at the end, of one minute": "1.50",
      "raw limit, cycles a second": "826 with 1 caller, 24,690 with 100 callers",
    });
  });

  test("says what the system does not tell", () => {
    const machine = { ...measurement.machine, processor: null, fileSystem: null, loads: [null, null] };
    const rows = rowsOf(sectionOf(toPage({ ...measurement, machine }), "Measured on"));
    expect(rows.filter(([, value]) => value === "not told by this system").map(([what]) => what)).toEqual([
      "processor",
      "file system of the stores",
      "load at the beginning, of one minute",
      "load at the end, of one minute",
    ]);
  });

  test("says by which command it was generated", () => {
    expect(toPage(measurement)).toMatch(/^# .*\n\n<!-- Generated by `npm run bench -- --write`\./);
  });

  test("is formatted as the repository is", () => {
    const page = toPage({ ...measurement, machine: { ...measurement.machine, processor: "A | B" } });
    const formatter = [binary("oxfmt", "oxfmt"), "--stdin-filepath=docs/performance.md"];
    const { stdout, stderr } = spawnSync(process.execPath, formatter, { cwd: root, input: page, encoding: "utf8" });
    expect(stderr).toBe("");
    expect(stdout).toBe(page);
  });

  test("is written beside the plot that it shows", async () => {
    const folder = await mkdtemp(join(tmpdir(), "herd-page-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    expect(await writePage(measurement, folder)).toEqual(["performance.md", "performance.svg"]);
    const read = (name: string) => readFile(join(folder, name), "utf8");
    expect(await read("performance.md")).toBe(toPage(measurement));
    expect(await read("performance.md")).toContain("](performance.svg)");
    expect(await read("performance.svg")).toBe(toPlot(measurement));
  });
});

describe("npm run bench", () => {
  const bench = (...args: string[]) =>
    spawnSync(process.execPath, ["bench/index.ts", ...args], { cwd: root, encoding: "utf8" });

  test("refuses to write a page with some of the figures", () => {
    const { status, stdout, stderr } = bench("--write", "cycle", "heap");
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(/^--write takes no names \(cycle heap\): .* Next: leave out cycle heap, or .*\n$/);
  });

  test("refuses a figure that there is not, and names those that there are", () => {
    const { status, stderr } = bench("cycles");
    expect(status).toBe(2);
    expect(stderr).toBe(
      "There is no figure cycles. Next: use one of cycle, parked, trees, heap, resume, listing, jq, disk, pi-start, pi-latency, host-memory, or --all.\n",
    );
  });

  test("measures by name in the order asked for, and what lies between only with everything", () => {
    expect(pointsOf(["heap", "cycle"]).map(({ of }) => of)).toEqual([
      { name: "heap", workersPerTree: 100 },
      { name: "heap", workersPerTree: 1 },
      { name: "cycle", concurrency: 1 },
      { name: "cycle", concurrency: 100 },
    ]);
    expect(POINTS.map(({ of }) => of)).toContainEqual({ name: "cycle", concurrency: 10 });
  });
});
