import { describe, expect, test } from "vitest";
import { COMMAND, POINTS, type Figure, type Measurement } from "../../bench/figures.ts";
import { toPage } from "../../bench/page.ts";
import { toPlot } from "../../bench/plot.ts";
import { blocksOf, page } from "./page.ts";

/** A checkout may have changed the ends of lines. */
const read = async (name: string) => (await page(name)).replaceAll("\r\n", "\n");
const text = await read("performance.md");
const [run, ...figures] = blocksOf(text, "jsonl")
  .flatMap((block) => block.trimEnd().split("\n"))
  .map((line) => JSON.parse(line) as unknown);
const measurement = { ...(run as Omit<Measurement, "figures">), figures: figures as Figure[] };

describe(`the page that ${COMMAND} writes`, () => {
  test("holds every figure that is measured today", () => {
    expect(figures).toEqual(POINTS.map(({ of }) => expect.objectContaining(of)));
  });

  test("is what would be written today of the same figures, and so is its plot", async () => {
    expect(text).toBe(toPage(measurement));
    expect(await read("performance.svg")).toBe(toPlot(measurement));
    expect(text).not.toContain("NaN");
  });
});
