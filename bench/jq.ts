import { evaluateContract, type DoorContract } from "../runtime/doors/contract.ts";
import { Jq } from "../runtime/doors/jq.ts";
import { rounded } from "./cycle.ts";

const SECONDS = 3;

export interface JqFigure {
  name: "jq";
  evaluationsPerSecond: number;
  atOncePerSecond: number;
  functionsPerSecond: number;
  firstMs: number;
}

const parked = [
  { id: "r-1.0001", status: "asking", to: "caller", question: "Refund?", payload: { order: "7" } },
  { id: "r-2", status: "finished", result: "done" },
];
const input = { order: "7", approved: true };
const program = `. as $given | [$parked[] | select(.status == "asking" and .payload.order == $given.order)][0] | { id, payload: $given.approved }`;
const contracts: Record<"jq" | "functions", DoorContract> = {
  jq: { resumeExpr: program },
  functions: {
    resumeExpr: (given, { parked: entries }) => {
      const { order, approved } = given as typeof input;
      const entry = (entries as typeof parked).find(
        ({ status, payload }) => status === "asking" && payload?.order === order,
      );
      return { id: entry?.id, payload: approved };
    },
  },
};

/** Evaluates a contract in jq and in functions, for a while each. */
export async function jq(): Promise<JqFigure> {
  const pool = new Jq();
  const evaluate = (contract: DoorContract) => evaluateContract(pool, contract, { input, parked });
  const began = performance.now();
  await evaluate(contracts.jq);
  const firstMs = performance.now() - began;
  const rate = async (contract: DoorContract, atOnce: number) => {
    let done = 0;
    const start = performance.now();
    const end = start + SECONDS * 1_000;
    const caller = async () => {
      for (; performance.now() < end; done++) await evaluate(contract);
    };
    await Promise.all(Array.from({ length: atOnce }, caller));
    return Math.round(done / ((performance.now() - start) / 1_000));
  };
  const figure: JqFigure = {
    name: "jq",
    evaluationsPerSecond: await rate(contracts.jq, 1),
    atOncePerSecond: await rate(contracts.jq, 16),
    functionsPerSecond: await rate(contracts.functions, 1),
    firstMs: rounded(firstMs),
  };
  await pool.close();
  return figure;
}
