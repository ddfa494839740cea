import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHerd } from "../runtime/index.ts";
import { rawCycles } from "./raw.ts";

/** One figure a line; what a reader compares is `ratio`. */
export interface CycleFigure {
  name: "cycle";
  concurrency: number;
  cyclesPerSecond: number;
  rawCyclesPerSecond: number;
  /** Product over raw, measured side by side; the median of the rounds. */
  ratio: number;
  ratios: number[];
  /** Processor time of the whole process, in milliseconds a cycle. */
  cpuMsPerCycle: number;
}

const ROUNDS = 3;
const SECONDS = 3;
/** Long enough for the compiler to have seen everything; what is measured is a process that has run for a while. */
const WARM_UP = { concurrency: 100, seconds: 2 };
let warm: Promise<unknown> | undefined;

/**
 * Cycles a second, assign → parked question durable → reply → result acknowledged, on real LevelDB with fsync,
 * against the raw limit of the same disk in alternating rounds.
 */
export async function cycle(concurrency: number): Promise<CycleFigure> {
  await (warm ??= productCycles(WARM_UP));
  const rounds: { raw: number; product: number; cpuMs: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const raw = await inFolder((directory) => rawCycles({ concurrency, seconds: SECONDS, directory }));
    const product = await productCycles({ concurrency, seconds: SECONDS });
    rounds.push({ raw: raw.cyclesPerSecond, product: product.cyclesPerSecond, cpuMs: product.cpuMsPerCycle });
  }
  const ratios = rounds.map(({ raw, product }) => product / raw);
  return {
    name: "cycle",
    concurrency,
    cyclesPerSecond: Math.round(median(rounds.map(({ product }) => product))),
    rawCyclesPerSecond: Math.round(median(rounds.map(({ raw }) => raw))),
    ratio: rounded(median(ratios)),
    ratios: ratios.map(rounded),
    cpuMsPerCycle: rounded(median(rounds.map(({ cpuMs }) => cpuMs))),
  };
}

/** The product's cycles, each caller an owner of its own that reads its handle. */
export async function productCycles(options: {
  concurrency: number;
  seconds: number;
  owners?: number;
  maxTrees?: number;
}): Promise<{ cyclesPerSecond: number; cpuMsPerCycle: number }> {
  const { concurrency, seconds, owners = concurrency, maxTrees } = options;
  return inFolder(async (directory) => {
    const herd = await createHerd({
      directory,
      ...(maxTrees !== undefined && { maxTrees }),
      agents: {
        asks: {
          description: "Asks once",
          run: async (task, worker) => `${task}: ${await worker.askOwner({ question: "Go on?" })}`,
        },
      },
    });
    let cycles = 0;
    let next = 0;
    const began = performance.now();
    const cpu = process.cpuUsage();
    const end = began + seconds * 1_000;
    const caller = async () => {
      while (performance.now() < end) {
        const owner = herd.owner(`owner-${next++ % owners}`);
        const run = await owner.assign({ agent: "asks", task: "work" });
        for await (const event of run) if (event.type === "question") await event.question.reply("yes");
        cycles++;
      }
    };
    await Promise.all(Array.from({ length: concurrency }, caller));
    const elapsed = (performance.now() - began) / 1_000;
    const { user, system } = process.cpuUsage(cpu);
    await herd.close({ graceMs: 0 });
    return { cyclesPerSecond: cycles / elapsed, cpuMsPerCycle: (user + system) / 1_000 / cycles };
  });
}

/** Runs on a fresh folder on the disk of the temporary directory, and removes it. */
export async function inFolder<T>(body: (directory: string) => Promise<T>): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "herd-bench-"));
  try {
    return await body(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] as number;
}

export function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
