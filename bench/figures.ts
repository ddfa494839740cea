import { cycle, type CycleFigure } from "./cycle.ts";
import { heap, type HeapFigure } from "./heap.ts";
import { disk, type DiskFigure } from "./disk.ts";
import { jq, type JqFigure } from "./jq.ts";
import { listing, type ListingFigure } from "./listing.ts";
import type { Machine } from "./machine.ts";
import { parked, type ParkedFigure } from "./parked.ts";
import {
  hostMemory,
  piLatency,
  piStart,
  type HostMemoryFigure,
  type PiLatencyFigure,
  type PiStartFigure,
} from "./pi.ts";
import { resume, type ResumeFigure } from "./resume.ts";
import { trees, type TreesFigure } from "./trees.ts";

/** What one measurement gives, told apart by its name. */
export type Figure =
  | CycleFigure
  | ParkedFigure
  | TreesFigure
  | HeapFigure
  | ResumeFigure
  | ListingFigure
  | JqFigure
  | DiskFigure
  | PiStartFigure
  | PiLatencyFigure
  | HostMemoryFigure;
export type FigureName = Figure["name"];
export type FigureOf<Name extends FigureName> = Extract<Figure, { name: Name }>;

/** Everything that one run measured. */
export interface Measurement {
  /** The day on which it began, in UTC: `2026-03-01`. */
  date: string;
  machine: Machine;
  figures: readonly Figure[];
}

/** Measures everything and writes the page and the plot. */
export const COMMAND = "npm run bench -- --write";

/** A figure that can be measured: what it will say of itself, and how to take it. */
export interface Point {
  of: Partial<Figure> & { name: FigureName };
  measure: () => Promise<Figure>;
  /** Taken only when everything is measured: it lies between two others. */
  between?: true;
}

/** Every measurement, in the order in which it is taken and shown. */
export const POINTS: readonly Point[] = [
  { of: { name: "cycle", concurrency: 1 }, measure: () => cycle(1) },
  { of: { name: "cycle", concurrency: 10 }, measure: () => cycle(10), between: true },
  { of: { name: "cycle", concurrency: 100 }, measure: () => cycle(100) },
  { of: { name: "parked" }, measure: parked },
  { of: { name: "trees" }, measure: trees },
  { of: { name: "heap", workersPerTree: 100 }, measure: () => heap(100) },
  { of: { name: "heap", workersPerTree: 1 }, measure: () => heap(1) },
  { of: { name: "resume", concurrency: 1 }, measure: () => resume(1) },
  { of: { name: "resume", concurrency: 100 }, measure: () => resume(100) },
  { of: { name: "listing" }, measure: listing },
  { of: { name: "jq" }, measure: jq },
  { of: { name: "disk" }, measure: disk },
  { of: { name: "pi-start", workers: 1 }, measure: () => piStart(1) },
  { of: { name: "pi-start", workers: 8 }, measure: () => piStart(8) },
  { of: { name: "pi-latency" }, measure: piLatency },
  { of: { name: "host-memory", known: 0 }, measure: () => hostMemory(0) },
  { of: { name: "host-memory", known: 10 }, measure: () => hostMemory(10) },
  { of: { name: "host-memory", known: 1_000 }, measure: () => hostMemory(1_000) },
];

/** The figures that can be asked for by name. */
export const NAMES: readonly string[] = [...new Set(POINTS.map(({ of }) => of.name))];

/** What is measured for these names, in their order. */
export function pointsOf(names: readonly string[]): Point[] {
  return names.flatMap((name) => POINTS.filter(({ of, between }) => of.name === name && !between));
}
