import { median, productCycles, rounded } from "./cycle.ts";

const OWNERS = 10_000;
const TREES = 1_000;
/** Callers at once, and the owners that all stay in memory. */
export const CONCURRENCY = 100;
const ROUNDS = 3;
const SECONDS = 3;

export interface TreesFigure {
  name: "trees";
  owners: number;
  maxTrees: number;
  cyclesPerSecond: number;
  warmCyclesPerSecond: number;
  /** Ten thousand owners through a thousand trees, over a hundred owners that all stay in memory. */
  ratio: number;
}

/** Whether many more owners than fit into memory cost anything while they come and go. */
export async function trees(): Promise<TreesFigure> {
  const rounds: { cold: number; warm: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const warm = await productCycles({ concurrency: CONCURRENCY, seconds: SECONDS });
    const cold = await productCycles({ concurrency: CONCURRENCY, seconds: SECONDS, owners: OWNERS, maxTrees: TREES });
    rounds.push({ cold: cold.cyclesPerSecond, warm: warm.cyclesPerSecond });
  }
  return {
    name: "trees",
    owners: OWNERS,
    maxTrees: TREES,
    cyclesPerSecond: Math.round(median(rounds.map(({ cold }) => cold))),
    warmCyclesPerSecond: Math.round(median(rounds.map(({ warm }) => warm))),
    ratio: rounded(median(rounds.map(({ cold, warm }) => cold / warm))),
  };
}
