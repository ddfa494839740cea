/**
 * `npm run crash -- --kills N [--seed S]`: a process under mixed load is ended by SIGKILL, N times at a random moment
 * and once at every failpoint; after each kill a second process audits the store against the ledger of what the
 * first acknowledged. Every few kills the auditor answers everything, and nothing may be left. Then whatever is done with
 * what is parked is killed at every pass of every point that it passes.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { FAILPOINTS, type Failpoint } from "../../runtime/testing/index.ts";
import type { Report } from "./audit.ts";
import { runChild, type Ended } from "./child.ts";
import { playOut, plays } from "./parked-plays.ts";
import { Random } from "./random.ts";

/** Points that this load does not pass, and who does. */
const ELSEWHERE: Partial<Record<Failpoint, string>> = {
  "launch.between": "functions are launched in one batch; launching.test.ts passes it, with workers in processes",
};
/** Passes of a point before the kill, at most: some are passed all the time, some now and then. */
const PASSES: Partial<Record<Failpoint, number>> = {
  "close.child-gone": 3,
  "ack.before-flush": 20,
  "door.before-visit": 30,
};
const MANY_PASSES = 60;
/** How long a process may take until it passes its failpoint, or opens, or is audited. */
const PATIENCE_MS = 60_000;
/** Kills on one store before all its work is brought to an end, and before a new store is taken. */
const KILLS_PER_DRAIN = 5;
const KILLS_PER_STORE = 10;

export interface CampaignOptions {
  kills: number;
  seed: number;
  failpoints?: readonly Failpoint[];
  print(line: string): void;
}

type Kill = { at: "random" } | { at: Failpoint };

/** @returns whether every audit passed. Directories of failed ones are kept and named. */
export async function runCampaign({ kills, seed, failpoints = FAILPOINTS, print }: CampaignOptions): Promise<boolean> {
  const started = Date.now();
  print(`seed ${seed}`);
  const random = new Random(seed);
  const plan: Kill[] = Array.from({ length: kills }, () => ({ at: "random" }));
  for (const at of failpoints) {
    if (ELSEWHERE[at] === undefined) plan.splice(random.between(0, plan.length), 0, { at });
    else print(`failpoint ${at} is skipped: ${ELSEWHERE[at]}`);
  }
  const directory = await mkdtemp(join(tmpdir(), "pi-herd-crash-"));
  let round: Round | undefined;
  for (const [index, kill] of plan.entries()) {
    round ??= new Round(await mkdtemp(join(directory, "store-")), seed, random);
    const last = index === plan.length - 1 || (index + 1) % KILLS_PER_STORE === 0;
    const drain = last || (index + 1) % KILLS_PER_DRAIN === 0;
    const { line, violations } = await round.once(kill, 2 * index + 1, drain);
    print(`kill ${index + 1}/${plan.length} ${line}`);
    if (violations.length > 0) {
      for (const violation of violations.slice(0, 10)) print(`  violated: ${violation}`);
      print(`  store, ledger and everything else: ${round.directory}`);
      print(`  again: npm run crash -- --kills ${kills} --seed ${seed}; audit alone: ${round.lastAudit}`);
      print(`${index} passed, 1 failed`);
      return false;
    }
    if (!last) continue;
    await rm(round.directory, { recursive: true, force: true });
    round = undefined;
  }
  await rm(directory, { recursive: true, force: true });
  const seconds = Math.round((Date.now() - started) / 1000);
  print(`${kills} kills at random and ${plan.length - kills} at failpoints in ${seconds} s, no invariant violated`);
  print(`${plan.length} passed, 0 failed`);
  return true;
}

/** @returns whether everything was done once and wholly, wherever it was killed. */
export async function runPlays(print: (line: string) => void): Promise<boolean> {
  const started = Date.now();
  let kills = 0;
  for (const play of Object.keys(plays)) {
    const { killed, faults } = await playOut(play, "all");
    kills += killed;
    print(`${play}: ${killed} kills`);
    for (const fault of faults.slice(0, 10)) print(`  violated: ${fault}`);
    if (faults.length > 0) return false;
  }
  const seconds = Math.round((Date.now() - started) / 1000);
  print(`${kills} kills of what is done with what is parked in ${seconds} s, everything was done once and wholly`);
  return true;
}

/** One store under a row of kills. */
class Round {
  readonly directory: string;
  lastAudit = "";
  readonly #env: Record<string, string>;
  readonly #seed: number;
  readonly #random: Random;

  constructor(directory: string, seed: number, random: Random) {
    this.directory = directory;
    // Many short processes: the compiled code is worth keeping.
    this.#env = { NODE_COMPILE_CACHE: join(directory, "..", "code") };
    this.#seed = seed;
    this.#random = random;
  }

  async once(kill: Kill, session: number, drain: boolean): Promise<{ line: string; violations: string[] }> {
    const { how, violations } = await this.#kill(kill, session);
    if (violations.length > 0) return { line: how, violations };
    const audited = await this.#audit(session + 1, drain);
    const line = `${how}${drain ? ", drained" : ""}: ${audited.summary}`;
    return { line, violations: audited.violations };
  }

  async #kill({ at }: Kill, session: number): Promise<{ how: string; violations: string[] }> {
    const args = [this.directory, `${session}`, `${this.#seed}`];
    const passes = at === "random" ? 0 : this.#random.between(1, PASSES[at] ?? MANY_PASSES);
    // Some die while they open, most under load.
    const opening = this.#random.chance(0.15);
    const afterMs = opening ? this.#random.between(0, 60) : this.#random.between(50, 800);
    const ended = await runChild("load.ts", args, {
      patienceMs: PATIENCE_MS,
      env: { ...this.#env, ...(at !== "random" && { HERD_FAILPOINT: `${at}:${passes}` }) },
      ...(at === "random" && { killAfter: { line: opening ? "opening" : "ready", ms: afterMs } }),
    });
    const when = at === "random" ? `${afterMs} ms after ${opening ? "it began to open" : "ready"}` : `${at}:${passes}`;
    if (ended.signal === "SIGKILL" && !ended.patienceOver) return { how: when, violations: [] };
    const why = ended.patienceOver
      ? `the process did not come to ${at === "random" ? "its opening" : `failpoint ${at}`} in ${PATIENCE_MS} ms`
      : `the process under load ended by itself: ${told(ended)}`;
    return { how: when, violations: [why] };
  }

  async #audit(session: number, drain: boolean): Promise<Report> {
    const args = [this.directory, `${session}`, `${this.#seed}`, ...(drain ? ["drain"] : [])];
    this.lastAudit = `node test/crash/audit.ts ${args.join(" ")}`;
    const ended = await runChild("audit.ts", args, { patienceMs: 3 * PATIENCE_MS, env: this.#env });
    const text = ended.lines.at(-1) ?? "";
    if (text.startsWith("{")) return JSON.parse(text) as Report;
    return { violations: [`the audit did not end: ${told(ended)}`], summary: "" };
  }
}

function told({ code, signal, errors }: Ended): string {
  return `code ${code ?? "none"}, signal ${signal ?? "none"}, ${errors.trim().slice(-3_000) || "it said nothing"}`;
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { kills: { type: "string", default: "20" }, seed: { type: "string" } } });
  const kills = Number(values.kills);
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  if (!Number.isInteger(kills) || kills < 1 || !Number.isInteger(seed)) {
    console.error("usage: npm run crash -- --kills N [--seed S], both whole numbers, N at least 1");
    process.exit(2);
  }
  const print = (line: string) => console.log(line);
  const passed = (await runCampaign({ kills, seed, print })) && (await runPlays(print));
  process.exitCode = passed ? 0 : 1;
}
