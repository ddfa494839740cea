/** Runs the examples of a page from top to bottom, on one herd, and compares what comes out with what the page shows. */
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { levelStore, type AgentDefinition, type Question, type Worker } from "pi-herd";
import * as api from "pi-herd";
import { createTestHerd, type TestHerd } from "pi-herd/testing";
import { fences } from "./page.ts";

/** The folder that the pages speak of. */
const HOME = "/home/ada/shop";

export interface Stage {
  t: TestHerd;
  /** The worker that has the newest task with this text; waits until it has started. */
  at(task: string): Promise<Scene>;
}

/** A worker's function, held until the test lets it end. */
export interface Scene {
  worker: Worker;
  end(text: string): void;
}

/** Until something is so. Functions that are held here never let the herd be idle. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; !(await condition()); turn++) {
    if (turn > 5_000) throw new Error(`never so: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Lets a worker come to its end. */
export async function ends({ t, at }: Stage, task: string, text: string): Promise<void> {
  const had = t.owner.results.length;
  (await at(task)).end(text);
  await until(() => t.owner.results.length > had);
}

/** What happens behind the page: before the first example under a heading, and before an example of a kind. */
export type Directions = Record<string, (stage: Stage) => unknown>;

export async function openStage(describe: (play: AgentDefinition["run"]) => Record<string, AgentDefinition>) {
  const root = await realpath(await mkdtemp(join(tmpdir(), "herd-docs-")));
  await writeFile(join(root, "notes.md"), "Twelve tests are red.\n");
  await writeFile(join(root, "options.md"), "A: keep it. B: drop it.\n");
  const scenes = new Map<string, PromiseWithResolvers<Scene>>();
  const sceneOf = (task: string) => {
    const scene = scenes.get(task) ?? Promise.withResolvers<Scene>();
    scenes.set(task, scene);
    return scene;
  };
  const agents = describe((task, worker) => {
    const { promise, resolve } = Promise.withResolvers<string>();
    sceneOf(task).resolve({ worker, end: resolve });
    return promise;
  });
  const t = await createTestHerd({
    agents,
    store: levelStore(join(root, ".herd")),
    owner: "ada",
    cwd: root,
    now: "2026-03-01T09:00:00.000Z",
  });
  onTestFinished(async () => {
    await t.close();
    await rm(root, { recursive: true, force: true });
  });
  return { stage: { t, at: (task: string) => sceneOf(task).promise }, root };
}

/** What stands on the page for an id, by what really came. Bound when it is first met. */
class Names {
  readonly #real = new Map<string, string>();
  readonly #shown = new Map<string, string>();

  constructor(root: string) {
    this.bind(HOME, root);
  }

  bind(shown: string, real: string): void {
    const before = this.#shown.get(real) ?? shown;
    if (before !== shown) throw new Error(`the page says ${shown} where it said ${before} of the same`);
    this.#real.set(shown, real);
    this.#shown.set(real, shown);
  }

  /** A text of the page as it really is. */
  toReal(text: string): string {
    return [...this.#real].reduce((so, [shown, real]) => so.replaceAll(shown, real), text);
  }

  /** What came, as the page shows it. New ids get the names that the page has in their place. */
  toShown(real: unknown, shown: unknown): unknown {
    this.#learn(real, shown);
    const text = [...this.#shown].reduce((so, [id, name]) => so.replaceAll(id, name), JSON.stringify(real));
    return JSON.parse(text);
  }

  #learn(real: unknown, shown: unknown): void {
    if (typeof real === "string" && typeof shown === "string") {
      const [ids, names] = [idsIn(real), idsIn(shown)];
      for (const [index, id] of ids.entries()) if (names[index] !== undefined) this.bind(names[index], id);
    } else if (typeof real === "object" && real !== null && typeof shown === "object" && shown !== null) {
      for (const [key, value] of Object.entries(real)) this.#learn(value, (shown as Record<string, unknown>)[key]);
    }
  }
}

/** Ids of sessions, of runs and requests, and of deliveries. */
function idsIn(text: string): string[] {
  return text.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![\w-])(?:[\w-]{21}|\d{15})(?![\w-])/g) ?? [];
}

const AsyncFunction = (async () => {}).constructor as new (...args: string[]) => (...given: unknown[]) => Promise<void>;

/**
 * Runs a page. Its fences say what they are: `json request` goes to `subagent` and `json ask` to `ask_owner`,
 * `json answer` and `json asked` are what came back, `json question` is the newest one; `ts` runs and `text output` is what it printed; `json details` and
 * `text envelope` are of the newest result.
 * @returns how many examples were compared.
 */
export async function runPage(text: string, { stage, root }: Awaited<ReturnType<typeof openStage>>, plan: Plan) {
  const names = new Names(root);
  const { t } = stage;
  let heading = "";
  let answer: unknown;
  let asked: Promise<unknown> | undefined;
  let printed = "";
  let compared = 0;
  const same = (real: unknown, shown: unknown, where: string) => {
    expect({ [where]: names.toShown(real, shown) }).toEqual({ [where]: shown });
    compared++;
  };
  for (const { info, content, heading: under } of fences(text)) {
    if (under !== heading) await plan.before[under]?.(stage);
    heading = under;
    const where = `${info} under "${under}"`;
    if (info === "json request") answer = await t.owner.subagent(JSON.parse(names.toReal(content)));
    else if (info === "json ask") {
      if (plan.asking === undefined) throw new Error("nobody is there who asks");
      const { worker } = await plan.asking(stage);
      const had = t.owner.questions.length;
      asked = worker.askOwnerTool(JSON.parse(content), { batch: ["ask_owner"] });
      await until(() => t.owner.questions.length > had);
    } else if (info === "json answer") same(answer, JSON.parse(content), where);
    else if (info === "json asked") same(await asked, JSON.parse(content), where);
    else if (info === "json question") {
      const { reply: _, ...question } = t.owner.questions.at(-1) as Question;
      same(question, JSON.parse(content), where);
    } else if (info === "json details") same(t.owner.results.at(-1)?.details, JSON.parse(content), where);
    else if (info === "text envelope") {
      same(t.owner.results.at(-1)?.envelope, content.trimEnd(), where);
    } else if (info === "ts") printed = await run(content, stage, await plan.given?.(stage));
    else if (info === "text output") same(printed, content, where);
    else throw new Error(`nobody runs the example "${info}" under "${under}"`);
  }
  return compared;
}

export interface Plan {
  before: Directions;
  asking?: (stage: Stage) => Promise<Scene>;
  /** More names that the TypeScript on the page may use. */
  given?: (stage: Stage) => Record<string, unknown> | Promise<Record<string, unknown>>;
}

async function run(typescript: string, { t }: Stage, given: Record<string, unknown> = {}): Promise<string> {
  const lines: string[] = [];
  const console = { log: (...words: unknown[]) => void lines.push(`${words.join(" ")}\n`) };
  const scope: Record<string, unknown> = { ...api, owner: t.owner, herd: t.herd, ...given, console };
  const code = `{${stripTypeScriptTypes(typescript.replaceAll(/^import .*$/gm, ""))}}`;
  await new AsyncFunction(...Object.keys(scope), code)(...Object.values(scope));
  return lines.join("");
}
