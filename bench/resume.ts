import { createHerd, type AgentDefinition } from "../runtime/index.ts";
import { inFolder, median, rounded } from "./cycle.ts";
import { rawCycles, WRITES_PER_RESUME } from "./raw.ts";

const ROUNDS = 3;
const SECONDS = 3;

/** One figure a line; what a reader compares is `ratio`. */
export interface ResumeFigure {
  name: "resume";
  concurrency: number;
  resumesPerSecond: number;
  rawPerSecond: number;
  /** Product over raw, measured side by side; the median of the rounds. */
  ratio: number;
  ratios: number[];
}

const agents = {
  asks: {
    description: "Asks for ever",
    run: async (_task, worker) => {
      for (;;) await worker.ask({ question: "Go on?" });
    },
  },
} satisfies Record<string, AgentDefinition>;

let warm: Promise<unknown> | undefined;

/** Answers a second, visit → answer durable → run goes on → next ask durable → visitor told, against the raw limit. */
export async function resume(concurrency: number): Promise<ResumeFigure> {
  await (warm ??= resumes({ concurrency: 100, seconds: 2 }));
  const rounds: { raw: number; product: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const limit = { concurrency, seconds: SECONDS, writes: WRITES_PER_RESUME };
    const raw = await inFolder((directory) => rawCycles({ ...limit, directory }));
    rounds.push({ raw: raw.cyclesPerSecond, product: await resumes({ concurrency, seconds: SECONDS }) });
  }
  const ratios = rounds.map(({ raw, product }) => product / raw);
  return {
    name: "resume",
    concurrency,
    resumesPerSecond: Math.round(median(rounds.map(({ product }) => product))),
    rawPerSecond: Math.round(median(rounds.map(({ raw }) => raw))),
    ratio: rounded(median(ratios)),
    ratios: ratios.map(rounded),
  };
}

async function resumes({ concurrency, seconds }: { concurrency: number; seconds: number }): Promise<number> {
  return inFolder(async (directory) => {
    const herd = await createHerd({ directory, agents });
    let done = 0;
    const visitors = await Promise.all(
      Array.from({ length: concurrency }, async (_, index) => {
        const subject = { scope: "bench", keys: { visitor: String(index) } };
        const { asks } = await herd.visit({ subject, start: { agent: "asks", task: "work" } });
        return { subject, id: asks?.[0]?.id ?? "" };
      }),
    );
    const began = performance.now();
    const end = began + seconds * 1_000;
    await Promise.all(
      visitors.map(async ({ subject, id: first }) => {
        for (let id = first; performance.now() < end; done++) {
          const { asks } = await herd.visit({ subject, resume: [{ id, payload: "yes" }] });
          id = asks?.[0]?.id ?? "";
        }
      }),
    );
    const elapsed = (performance.now() - began) / 1_000;
    await herd.close({ graceMs: 0 });
    return done / elapsed;
  });
}
