import { describe, expect, test } from "vitest";
import type { Measurement } from "./figures.ts";
import { toPlot } from "./plot.ts";

const measurement: Measurement = {
  date: "2026-03-01",
  machine: {
    ...{ processor: 'Tom & "Jerry" <9>', processors: 6, memory: 12 * 2 ** 30, system: "Linux 6.1.2, arm64" },
    ...{ node: "v24.0.1", fileSystem: "xfs", loads: [0.25, 1.5] },
  },
  figures: [
    cycle(1, { product: 400, raw: 800, ratio: 0.5 }),
    cycle(10, { product: 3_000, raw: 4_000, ratio: 0.75 }),
    cycle(100, { product: 4_000, raw: 16_000, ratio: 0.25 }),
    {
      ...{ name: "parked", parked: 7_000, owners: 70, openMs: 14.2, listMs: 8.11, openAndListMs: 23.6 },
      ...{ firstAnswerMs: 9.04 },
    },
    { name: "trees", owners: 9_000, maxTrees: 900, cyclesPerSecond: 2_700, warmCyclesPerSecond: 3_000, ratio: 0.9 },
    { name: "heap", workersPerTree: 100, workers: 5_000, bytesPerWorker: 2_000 },
    { name: "heap", workersPerTree: 1, workers: 5_000, bytesPerWorker: 8_000 },
  ],
};

function cycle(concurrency: number, { product, raw, ratio }: { product: number; raw: number; ratio: number }) {
  const rates = { cyclesPerSecond: product, rawCyclesPerSecond: raw, ratio, ratios: [2, ratio, 0.1] };
  return { name: "cycle" as const, concurrency, ...rates, cpuMsPerCycle: 1 };
}

const ENTITY = String.raw`&(?:amp|lt|gt|quot|#\d+);`;
const ATTRIBUTE = String.raw`\s+[A-Za-z_][\w:.-]*="(?:[^<&"]|${ENTITY})*"`;
const TOKEN = new RegExp(String.raw`<(/?)([A-Za-z][\w.-]*)((?:${ATTRIBUTE})*)(/?)>|(?:[^<>&]|${ENTITY})+`, "y");

/** The elements of a well-formed XML text, in order; throws where it is not well-formed. */
function elementsOf(xml: string): string[] {
  const open: string[] = [];
  const found: string[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < xml.length) {
    const at = TOKEN.lastIndex;
    const token = TOKEN.exec(xml);
    if (token === null) throw new Error(`not XML: ${xml.slice(at, at + 40)}`);
    const [whole, end, name, attributes = "", empty] = token;
    if (name === undefined) {
      if (open.length === 0 && whole.trim() !== "") throw new Error(`text outside the root: ${whole}`);
      continue;
    }
    if (end === "/") {
      if (open.pop() !== name) throw new Error(`</${name}> closes what is not open`);
      continue;
    }
    const keys = [...attributes.matchAll(/([\w:.-]+)=/g)].map(([, key]) => key);
    if (new Set(keys).size < keys.length) throw new Error(`<${name}> has an attribute twice`);
    if (open.length === 0 && found.length > 0) throw new Error(`<${name}> is a second root`);
    if (empty === "") open.push(name);
    found.push(name);
  }
  if (open.length > 0) throw new Error(`${open.join()} is never closed`);
  return found;
}

/** The lengths of the bars by kind and by the text behind each. */
function barsOf(svg: string): Record<string, number> {
  const bars = svg.matchAll(/<rect class="(product|raw)" [^>]*width="([\d.]+)"[^>]*>\n<text [^>]*>([^<]*)</g);
  return Object.fromEntries([...bars].map(([, kind, width, shown]) => [`${kind} ${shown}`, Number(width)]));
}

describe("the plot of the figures", () => {
  const svg = toPlot(measurement);

  test("is well-formed, whatever the machine is called", () => {
    const elements = elementsOf(svg);
    expect(elements[0]).toBe("svg");
    expect(elements.filter((name) => name === "rect").length).toBeGreaterThan(10);
    expect(svg).toContain("Tom &amp; &quot;Jerry&quot; &lt;9&gt;");
    expect(() => elementsOf(svg.replace("&amp;", "&"))).toThrow("not XML");
    expect(() => elementsOf(svg.replace("</title>", ""))).toThrow("closes what is not open");
  });

  test("has bars that are as long as their values, from one zero", () => {
    const bars = barsOf(svg);
    const longest = bars["raw 16,000"] as number;
    const lengths = (...names: string[]) => names.map((name) => ((bars[name] as number) / longest).toFixed(4));
    expect(longest).toBeGreaterThan(100);
    expect(
      lengths(
        "product 400, ratio 0.5 (0.1 to 2)",
        "raw 800",
        "product 3,000, ratio 0.75 (0.1 to 2)",
        "raw 4,000",
        "product 4,000, ratio 0.25 (0.1 to 2)",
      ),
    ).toEqual([400, 800, 3_000, 4_000, 4_000].map((value) => (value / 16_000).toFixed(4)));
    expect(lengths("product 0.5", "product 0.75", "product 0.25", "product 0.9")).toEqual(
      [0.5, 0.75, 0.25, 0.9].map((ratio) => ratio.toFixed(4)),
    );
    expect(lengths("product 2,000", "product 8,000")).toEqual(["0.2500", "1.0000"]);
    const starts = [...svg.matchAll(/<rect class="(?:product|raw)" x="(\d+)" [^>]*width="[\d.]+"/g)].slice(2);
    expect(new Set(starts.map(([, x]) => x)).size).toBe(1);
  });

  test("tells its figures to whoever does not see it", () => {
    expect(svg).toMatch(/^<svg [^>]*role="img" aria-labelledby="title desc"/);
    expect(svg).toContain('<title id="title">');
    const [, description = ""] = /<desc id="desc">([^<]*)</.exec(svg) ?? [];
    expect(description).toContain("100 callers: pi-herd 4,000, ratio 0.25 (0.1 to 2); raw limit 16,000.");
    expect(description).toContain("1 worker an owner: 8,000.");
  });

  test("has a background and colours for light and for dark, and brings everything that it needs", () => {
    const [light = "", dark = ""] = svg.split("prefers-color-scheme: dark");
    for (const name of ["text", ".background", ".product", ".raw"]) {
      const colour = (style: string) => new RegExp(String.raw`^${name} \{.*fill: (#\w{6})`, "m").exec(style)?.[1];
      expect(colour(light)).toBeDefined();
      expect(colour(dark)).toBeDefined();
      expect(colour(light)).not.toBe(colour(dark));
    }
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(/https?:|url\(|@import|href=/);
  });

  test("says by which command it was generated", () => {
    expect(svg).toContain("<metadata>Generated by npm run bench -- --write.");
  });
});
