import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import {
  connectHerd,
  createHerd,
  type Backend,
  type BackendFactory,
  type BackendHost,
  type Order,
} from "../runtime/index.ts";
import { PiDriver, subagent, task } from "../test/support/pi/driver.ts";
import { herdJs, makePlace, model, piCli, until, type PiPlace } from "../test/support/pi/folder.ts";
import { median, rounded } from "./cycle.ts";

const ROUNDS = 5;
const QUESTIONS = 15;

export interface PiStartFigure {
  name: "pi-start";
  workers: number;
  /** Milliseconds from the assignments until every worker is at its first turn. */
  firstTurnMs: number;
  /** Milliseconds from the start of as many bare Pis until each is at its first turn. */
  bareMs: number;
  /** Medians of the differences of the rounds. */
  overMs: number;
}

/** Workers that begin at once, beside as many bare Pis; both in turns. */
export async function piStart(workers: number): Promise<PiStartFigure> {
  const rounds: { worker: number; bare: number }[] = [];
  await inPlace(async (place) => {
    const without = makePlace({ extensions: [model] });
    await withHost(place, async () => {
      const herd = await connectHerd({ directory: place.herd });
      // What the first start compiles the others find compiled.
      await assignAll(herd, 1);
      await bareAll(without, 1);
      for (let round = 0; round < ROUNDS; round++) {
        rounds.push({ worker: await assignAll(herd, workers), bare: await bareAll(without, workers) });
      }
      await herd.close();
    });
    await without.remove();
  });
  return {
    name: "pi-start",
    workers,
    firstTurnMs: rounded(median(rounds.map(({ worker }) => worker))),
    bareMs: rounded(median(rounds.map(({ bare }) => bare))),
    overMs: rounded(median(rounds.map(({ worker, bare }) => worker - bare))),
  };
}

let owners = 0;

/** Assigns so many at once. @returns when the last of them was at its first turn, by what its session's file says. */
async function assignAll(herd: Awaited<ReturnType<typeof connectHerd>>, count: number): Promise<number> {
  const owner = herd.owner(`bench-${++owners}`);
  const began = Date.now();
  const runs = await Promise.all(
    Array.from({ length: count }, () => owner.assign({ agent: "scout", task: task("say done") })),
  );
  const results = await Promise.all(runs.map((run) => run.result()));
  const turns = results.map(({ details }) => saidOf(entriesOf(details["piSessionFile"] as string), "task")[0] ?? NaN);
  await until(async () => (await owner.list()).workers.length === 0);
  return Math.max(...turns) - began;
}

/** Starts so many bare Pis at once, and waits until each is at its first turn. */
async function bareAll(place: PiPlace, count: number): Promise<number> {
  const began = performance.now();
  const children = Array.from({ length: count }, () => bare(place));
  await Promise.all(children.map(({ inTurn }) => inTurn));
  const took = performance.now() - began;
  await Promise.all(children.map(({ end }) => end()));
  return took;
}

/** A Pi of the same user without our extension. */
function bare(place: PiPlace): { inTurn: Promise<void>; end(): Promise<void> } {
  const args = ["--mode", "rpc", "--no-approve", "--model", "scripted/script"];
  const child = spawn(process.execPath, [piCli, ...args], {
    cwd: place.cwd,
    env: place.env,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const { promise: inTurn, resolve } = Promise.withResolvers<void>();
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    if (said.includes('"type":"turn_start"')) return;
    said += part;
    if (said.includes('"type":"turn_start"')) resolve();
  });
  child.stdin.write(`${JSON.stringify({ type: "prompt", message: "SCRIPT\nsay done" })}\n`);
  return {
    inTurn,
    end: async () => {
      const over = new Promise((done) => child.once("close", done));
      child.stdin.end();
      await over;
    },
  };
}

export interface PiLatencyFigure {
  name: "pi-latency";
  questions: number;
  /** Milliseconds from the worker's call until the question stands in its owner's session; median. */
  questionMs: number;
  /** Milliseconds from the owner's call until the answer stands in the worker's session; median. */
  replyMs: number;
}

/** One worker that asks again and again, by what stands in the files of both sessions. */
export async function piLatency(): Promise<PiLatencyFigure> {
  const asks = Array.from({ length: QUESTIONS }, (_, index) => `call ask_owner {"question":"${index}?"}`);
  const answers = Array.from({ length: QUESTIONS }, (_, index) => [
    subagent({ action: "reply", label: "worker", message: `${index}!` }),
    "say told",
  ]).flat();
  return inPlace(async (place) => {
    const pi = new PiDriver(place);
    await pi.prompt(
      subagent({ action: "assign", agent: "scout", label: "worker", task: task(...asks, "say done") }),
      "say assigned",
      ...answers,
      "say end",
    );
    const result = await until(() => pi.herd("result")[0], "the result", 120_000);
    const owner = entriesOf((await pi.state()).sessionFile);
    const worker = entriesOf(result.details.result.piSessionFile);
    await pi.quit();
    const asked = callsOf(worker, "ask_owner");
    const told = saidOf(owner, "question");
    const replied = callsOf(owner, "subagent").slice(1);
    const heard = saidOf(worker, "answer");
    const between = (from: number[], to: number[]) => rounded(median(to.map((at, index) => at - (from[index] ?? at))));
    return {
      name: "pi-latency",
      questions: QUESTIONS,
      questionMs: between(asked, told),
      replyMs: between(replied, heard),
    };
  });
}

interface Entry {
  type: string;
  timestamp: string;
  customType?: string;
  details?: { kind: string };
  message?: { role: string; content: { type: string; name?: string }[] };
}

function entriesOf(file: string): Entry[] {
  return readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Entry);
}

/** When the model's messages with calls of a tool were written. */
function callsOf(entries: readonly Entry[], tool: string): number[] {
  return entries
    .filter(({ message }) => message?.role === "assistant" && message.content.some(({ name }) => name === tool))
    .map(({ timestamp }) => Date.parse(timestamp));
}

/** When what came from the herd was written. */
function saidOf(entries: readonly Entry[], kind: string): number[] {
  return entries.filter(({ details }) => details?.kind === kind).map(({ timestamp }) => Date.parse(timestamp));
}

export interface HostMemoryFigure {
  name: "host-memory";
  known: number;
  /** Memory of the process that is its own, in MB. */
  ownMb: number;
  /** Memory with what it shares with other processes, in MB. */
  rssMb: number;
}

/** The host with so many workers that wait with a question and whose processes are not there. */
export async function hostMemory(known: number): Promise<HostMemoryFigure> {
  return inPlace(async (place) => {
    if (known > 0) await park(place, known);
    return withHost(place, async (pid) => {
      const herd = await connectHerd({ directory: place.herd });
      for (const { id } of await herd.owners()) await herd.owner(id).list();
      await herd.close();
      await pause(500);
      const { own, rss } = memoryOf(pid);
      return { name: "host-memory", known, ownMb: rounded(own / 1024), rssMb: rounded(rss / 1024) };
    });
  });
}

/** In kB, as Linux tells it. */
function memoryOf(pid: number): { own: number; rss: number } {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(rollup)?.[1] ?? 0);
  return { own: of("Private_Clean") + of("Private_Dirty"), rss: of("Rss") };
}

/** Workers of the host that ask and whose processes end with this program. */
async function park(place: PiPlace, count: number): Promise<void> {
  const herd = await createHerd({
    directory: place.herd,
    definitions: [],
    backends: [askingBackend],
    maxChildren: count,
  });
  const owner = herd.owner("bench");
  await Promise.all(
    Array.from({ length: count }, (_, index) => owner.assign({ agent: "scout", label: `w${index}`, task: "ask" })),
  );
  await until(
    async () => (await owner.list()).workers.every(({ state }) => state === "blocked"),
    "the questions",
    120_000,
  );
  await herd.close();
}

/** Stands for processes that ask at once and are gone afterwards. */
const askingBackend: BackendFactory = (host): Backend => ({
  name: "pi",
  perform: (order: Order) => void ask(host, order),
  identify: async () => "present",
  close: async () => undefined,
});

async function ask(host: BackendHost, order: Order): Promise<void> {
  if (order.kind !== "start") return;
  const { runId, requestId } = order;
  await host.report(runId, { type: "accepted" }, requestId);
  await host.report(runId, { type: "turn.started" }, requestId);
  await host.askOwner(runId, { question: "Go on?" }, { batch: ["ask_owner"], ...(requestId && { requestId }) });
  await host.report(runId, { type: "turn.ended" }, requestId);
}

async function inPlace<T>(work: (place: PiPlace) => Promise<T>): Promise<T> {
  const place = makePlace();
  try {
    return await work(place);
  } finally {
    await place.remove();
  }
}

/** A host of the place for the time of some work. */
async function withHost<T>(place: PiPlace, work: (pid: number) => Promise<T>): Promise<T> {
  const host = spawn(process.execPath, [herdJs, "serve", "--directory", place.herd, "--leave-after", "600"], {
    env: place.env,
    stdio: "ignore",
  });
  const over = new Promise((done) => host.once("exit", done));
  try {
    const herd = await connectHerd({ directory: place.herd, waitForHerdMs: 20_000 });
    await herd.close();
    return await work(host.pid as number);
  } finally {
    host.kill("SIGTERM");
    await over;
  }
}
