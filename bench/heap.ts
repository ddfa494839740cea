import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createHerd } from "../runtime/index.ts";
import { inFolder } from "./cycle.ts";

const WORKERS = 5_000;

export interface HeapFigure {
  name: "heap";
  workersPerTree: number;
  workers: number;
  /** Bytes of heap that one more worker costs while it waits for its owner, its function parked. */
  bytesPerWorker: number;
}

/** Heap of waiting workers, their functions parked out of memory. */
export async function heap(workersPerTree: number): Promise<HeapFigure> {
  return inFolder((directory) => heapIn(directory, workersPerTree));
}

async function heapIn(directory: string, workersPerTree: number): Promise<HeapFigure> {
  const herd = await createHerd({
    directory,
    parkAfter: 0,
    maxTrees: WORKERS,
    tickMs: 0,
    agents: { asks: { description: "Asks once", run: (_task, worker) => worker.askOwner({ question: "Go on?" }) } },
  });
  const park = async (from: number, to: number) => {
    let left = to - from;
    const parked = new Promise<void>((resolve) => {
      const stop = herd.on("question", () => {
        if (--left === 0) resolve(stop());
      });
    });
    for (let at = from; at < to; at += 100) {
      await Promise.all(
        Array.from({ length: Math.min(100, to - at) }, (_, index) =>
          herd.owner(`owner-${Math.floor((at + index) / workersPerTree)}`).assign({ agent: "asks", task: "work" }),
        ),
      );
    }
    await parked;
    return collected();
  };
  const before = await park(0, 1_000);
  const after = await park(1_000, WORKERS);
  await herd.close({ graceMs: 0 });
  return {
    name: "heap",
    workersPerTree,
    workers: WORKERS,
    bytesPerWorker: Math.round((after - before) / (WORKERS - 1_000)),
  };
}

/** The heap in use after everything that can go is gone. */
async function collected(): Promise<number> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
  return process.memoryUsage().heapUsed;
}
