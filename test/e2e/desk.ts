import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { folderWith } from "./folder.ts";
import { herd, root, start, type Ended, type Running } from "./herd-process.ts";

/** A program with workers of every kind; it opens the herd, says so, and closes it when its input ends. */
const program = `
  import { createHerd } from ${JSON.stringify(new URL("runtime/index.ts", `file://${root}/`).href)};
  const asks = {
    description: "Asks, then waits to be told more",
    run: async (task, worker) => {
      const answer = await worker.askOwner({ question: task + "?\\nOr not?" });
      return task + " " + answer + worker.steers().map(({ message }) => " " + message).join("");
    },
  };
  const agents = {
    asks,
    echo: { description: "Says its task", run: async (task) => task },
    parent: {
      description: "Has a child that asks",
      subagents: ["asks"],
      run: async (_task, worker) => {
        const child = await worker.assign({ agent: "asks", label: "child", task: "Child" });
        for await (const event of child) if (event.type === "result") return event.result.text;
      },
    },
    script: {
      description: "Asks what its input lists, one group after the other",
      run: async (_task, worker) => {
        const answers = [];
        for (const group of worker.input) {
          answers.push(...(await Promise.all(group.map((ask) => worker.ask(ask)))));
        }
        return answers.map((answer) => JSON.stringify(answer)).join(" ");
      },
    },
    fails: {
      description: "Asks, then fails",
      run: async (_task, worker) => {
        await worker.ask({ question: "Go on?" });
        throw new Error("no\u001b[2J way");
      },
    },
    above: {
      description: "Has a child that asks its caller",
      subagents: ["below"],
      run: async (task, worker) => (await (await worker.assign({ agent: "below", task })).result()).text,
    },
    below: { description: "Asks its caller", run: async (task, worker) => worker.ask({ question: task + "?" }) },
  };
  const herd = await createHerd({ directory: process.argv[2], agents, tickMs: 0 });
  const ids = {};
  if (process.argv[3] === "begin") {
    const [me, you] = [herd.owner("me"), herd.owner("you", { workspace: "w" })];
    const assign = async (owner, request) => (ids[request.label] = await owner.assign(request)).requestId;
    await assign(me, { agent: "asks", label: "first", task: "Go" });
    await assign(me, { agent: "asks", label: "second", task: "Stay" });
    await assign(you, { agent: "asks", label: "second", task: "Rest" });
    await assign(me, { agent: "echo", label: "done", task: "All is well" });
    await assign(me, { agent: "parent", label: "parent", task: "Delegate" });
    const { workers } = await me.list();
    while ((await me.list()).workers.filter(({ question }) => question).length < 3) await new Promise(setImmediate);
    while ((await you.list()).workers[0].state !== "blocked") await new Promise(setImmediate);
    while ((await ids.done.status({ acknowledge: false })).result === undefined) await new Promise(setImmediate);
  }
  if (process.argv[3] === "parked") {
    const shop = (order) => ({ scope: "shop", keys: { order } });
    const start = (order, agent, more) => herd.visit({ subject: shop(order), start: { agent, ...more } });
    const until = "2199-04-01T00:00:00Z";
    await start("7", "script", {
      label: "sizes",
      input: [
        [{ question: "Which size?", answerFormat: "select", options: ["S", "M"], expiresAt: until }],
        [
          { question: "Which name?", groupId: "g" },
          { question: "May it wait?", groupId: "g", answerFormat: "confirm", to: "user" },
        ],
      ],
    });
    await start("8", "above", { label: "above", task: "Deep" });
    await start("8", "fails", { label: "fails", task: "Fail" });
    await start("9", "script", { label: "person", input: [[{ question: "Who signs?", to: "user" }]] });
    await herd.visit({ subject: shop("9"), start: { agent: "echo", task: "Done so far" }, receivesOutcome: false });
  }
  console.log("ready " + (ids.done?.requestId ?? "") + " " + (ids.first?.requestId ?? ""));
  process.stdin.on("end", () => herd.close()).resume();
`;

/** What a program in `begin` has open, by label. */
export interface Ids {
  done: string;
  first: string;
}

/** A folder with a herd, and the program that can have it open. */
export class Desk {
  readonly folder: string;
  readonly directory: string;

  /** @param like the folder of another herd to begin with a copy of. */
  constructor(like?: string) {
    this.folder = folderWith({ "program.ts": program, "package.json": '{ "type": "module" }', "a.txt": "evidence" });
    this.directory = join(this.folder, "herd");
    if (like === undefined) return;
    mkdirSync(this.directory, { mode: 0o700 });
    cpSync(like, this.directory, { recursive: true });
  }

  /** The program, once it has the herd open. */
  async open(...args: string[]): Promise<Running & { ids: Ids }> {
    const file = join(this.folder, "program.ts");
    const running = start(process.execPath, [file, this.directory, ...args], this.folder, { stdin: "pipe" });
    const said = new Promise<string>((resolve, reject) => {
      running.child.stdout?.on("data", (text: string) => text.startsWith("ready") && resolve(text));
      void running.ended.then(({ stderr }) => reject(new Error(stderr)));
    });
    const [, done = "", first = ""] = (await said).trim().split(" ");
    return { ...running, ids: { done, first } };
  }

  /** A command on this herd. */
  run(...args: string[]): Promise<Ended> {
    return herd([...args, "--directory", this.directory], this.folder);
  }
}

/** Lets the program close its herd. */
export async function end({ child, ended }: Running): Promise<void> {
  child.stdin?.end();
  expect(await ended).toMatchObject({ code: 0, stderr: "" });
}

/**
 * A herd in which something of every kind is open, closed; to be copied.
 * @param what of owners, or parked on subjects.
 */
export async function begunDesk(
  what: "begin" | "parked" = "begin",
): Promise<{ directory: string; ids: Ids; remove(): void }> {
  const desk = new Desk();
  const begun = await desk.open(what);
  await end(begun);
  // Its own folder goes with whatever made it.
  const kept = mkdtempSync(join(tmpdir(), "herd-begun-"));
  cpSync(desk.directory, join(kept, "herd"), { recursive: true });
  return {
    directory: join(kept, "herd"),
    ids: begun.ids,
    remove: () => rmSync(kept, { recursive: true, force: true }),
  };
}

export const json = (ended: Ended) => JSON.parse(ended.stdout) as any;
