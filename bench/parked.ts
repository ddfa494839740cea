import { spawn } from "node:child_process";
import { createHerd, type AgentDefinition } from "../runtime/index.ts";
import { inFolder, median, rounded } from "./cycle.ts";

const OWNERS = 100;
const PER_OWNER = 100;
const OPENINGS = 5;

const agents = {
  asks: { description: "Asks once", run: (_task, worker) => worker.askOwner({ question: "Go on?" }) },
} satisfies Record<string, AgentDefinition>;

export interface ParkedFigure {
  name: "parked";
  parked: number;
  owners: number;
  /** Milliseconds from `createHerd` to the open herd, after a kill. */
  openMs: number;
  /** Milliseconds to list one owner's workers, right after opening. */
  listMs: number;
  openAndListMs: number;
  /** Milliseconds from a reply to the result, the first one after opening. */
  firstAnswerMs: number;
}

/** Opens a store with 10,000 parked questions that a killed process left, and gives the first answer. */
export async function parked(): Promise<ParkedFigure> {
  return inFolder(async (directory) => {
    await parkAndDie(directory);
    const rounds: { open: number; list: number; answer: number }[] = [];
    for (let round = 0; round < OPENINGS; round++) {
      const began = performance.now();
      const herd = await createHerd({ directory, agents });
      const opened = performance.now();
      const owner = herd.owner(`owner-${round}`);
      const { workers } = await owner.list();
      const listed = performance.now();
      const waiting = workers.find(({ question }) => question);
      const run = await herd.assignment(waiting?.activeRequestId ?? "");
      const asked = performance.now();
      await owner.reply({ askId: waiting?.question?.askId ?? "", message: "yes" });
      await run.result();
      rounds.push({ open: opened - began, list: listed - opened, answer: performance.now() - asked });
      await herd.close({ graceMs: 0 });
    }
    const of = (pick: (round: (typeof rounds)[number]) => number) => rounded(median(rounds.map(pick)));
    return {
      name: "parked",
      parked: OWNERS * PER_OWNER,
      owners: OWNERS,
      openMs: of(({ open }) => open),
      listMs: of(({ list }) => list),
      openAndListMs: of(({ open, list }) => open + list),
      firstAnswerMs: of(({ answer }) => answer),
    };
  });
}

/** A process of its own parks everything and is killed without a word. */
async function parkAndDie(directory: string): Promise<void> {
  const child = spawn(process.execPath, [import.meta.filename, directory], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise<void>((resolve, reject) => {
    child.stdout.once("data", () => resolve());
    child.once("exit", (code) => reject(new Error(`the process that parks ended early with ${code}`)));
  });
  child.removeAllListeners("exit");
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

if (process.argv[1] === import.meta.filename) {
  const herd = await createHerd({ directory: process.argv[2] as string, agents, maxParkedRuns: 1 });
  let left = OWNERS * PER_OWNER;
  const all = new Promise<void>((resolve) => herd.on("question", () => --left === 0 && resolve()));
  for (let round = 0; round < PER_OWNER; round++) {
    await Promise.all(
      Array.from({ length: OWNERS }, (_, owner) =>
        herd.owner(`owner-${owner}`).assign({ agent: "asks", task: "work" }),
      ),
    );
  }
  await all;
  process.stdout.write("parked\n");
  setInterval(() => undefined, 1_000);
}
