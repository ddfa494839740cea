import { cp, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { runChild } from "./child.ts";
import type { Acted, Looked } from "./parking.ts";

const PATIENCE_MS = 60_000;
/** Processes at once. */
const LANES = 2;

/** What a kill left, and what came of it. */
export interface Left {
  /** The point and its pass. */
  at: string;
  looked: Looked;
  /** The log as the kill left it, and in the end. */
  logBefore: string[];
  log: string[];
}

/** At which passes of a point it is killed. */
export type Kills = "all" | "first and last";

/** One play, over and over from the same beginning. */
export class ParkingBench {
  readonly directory: string;
  readonly #play: string;

  constructor(directory: string, play: string) {
    this.directory = directory;
    this.#play = play;
  }

  /** Makes the beginning, and plays it once without a kill. */
  async begin(): Promise<Acted> {
    await mkdir(join(this.directory, "begun"));
    await this.#run("begin", ["begun"]);
    await this.#copy("whole");
    const [acted] = (await this.#run("act", ["whole"])) as [Acted];
    return acted;
  }

  /** Kills it at the passes of every point, which are as many as without a kill. */
  async kill(passes: Acted["passes"], which: Kills): Promise<Left[]> {
    const kills = Object.entries(passes).flatMap(([point, count]) => {
      const all = Array.from({ length: count }, (_, index) => index + 1);
      const some = which === "all" ? all : all.filter((pass) => pass === 1 || pass === count);
      return some.map((pass) => `${point}:${pass}`);
    });
    const killed = (await inLanes(kills, async (at) => ((await this.#kill(at)) ? at : []))).flat();
    const logs = await Promise.all(killed.map((at) => this.#log(at)));
    // The second process does it for all of them, one after the other.
    const looked = (await this.#run("again", killed)) as Looked[];
    return Promise.all(
      killed.map(async (at, index) => ({
        at,
        looked: looked[index] as Looked,
        logBefore: logs[index] as string[],
        log: await this.#log(at),
      })),
    );
  }

  /** @returns false when it came to its end: a pass more or less is a matter of timing. */
  async #kill(at: string): Promise<boolean> {
    await this.#copy(at);
    const { signal, code, errors, patienceOver } = await this.#child("act", [at], { HERD_FAILPOINT: at });
    if (patienceOver || (signal === null && code !== 0))
      throw new Error(`killed at ${at} it did not die there: ${errors}`);
    return signal === "SIGKILL";
  }

  async #run(how: string, names: readonly string[]): Promise<unknown[]> {
    const { code, lines, errors } = await this.#child(how, names);
    if (code !== 0) throw new Error(`${this.#play} ${how} ended with ${code ?? "a signal"}: ${errors}`);
    return lines.map((line) => JSON.parse(line));
  }

  #child(how: string, names: readonly string[], env: Record<string, string> = {}) {
    const directories = names.map((name) => join(this.directory, name));
    // Many short processes: the compiled code is worth keeping.
    const code = process.env["NODE_COMPILE_CACHE"] ?? join(this.directory, "code");
    const options = { env: { ...env, NODE_COMPILE_CACHE: code }, patienceMs: PATIENCE_MS };
    return runChild("parking.ts", [this.#play, how, ...directories], options);
  }

  #copy(name: string): Promise<void> {
    return cp(join(this.directory, "begun"), join(this.directory, name), { recursive: true });
  }

  async #log(name: string): Promise<string[]> {
    const text = await readFile(join(this.directory, name, "log"), "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }
}

async function inLanes<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  const left = [...items.entries()];
  const lane = async () => {
    for (let next = left.shift(); next; next = left.shift()) results[next[0]] = await work(next[1]);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return results;
}
