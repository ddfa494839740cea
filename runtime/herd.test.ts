import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { AgentDefinition } from "./functions/agent.ts";
import { checkNode } from "./herd-instance.ts";
import { createHerd, HerdError, type Herd } from "./index.ts";
import { createTestHerd } from "./testing/index.ts";

const does: AgentDefinition = { description: "just does it", run: async (task) => `did ${task}` };
const asks: AgentDefinition = {
  description: "asks before it answers",
  run: async (task, worker) => `${task}: ${await worker.askOwner({ question: `May I do ${task}?` })}`,
};
const agents = { does, asks };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function folder(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "herd-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

async function open(directory: string, options: object = {}): Promise<Herd> {
  const herd = await createHerd({ directory, agents, tickMs: 0, waitForLockMs: 0, ...options });
  cleanups.push(() => herd.close({ graceMs: 0 }));
  return herd;
}

const refusalOf = (work: Promise<unknown>) =>
  work.then(
    () => {
      throw new Error("it was not refused");
    },
    (error: unknown) => error as HerdError,
  );

describe("createHerd", () => {
  test.each(["20.20.2", "22.18.9"])("under Node.js %s says what it needs", (version) => {
    expect(() => checkNode(version)).toThrow(/needs Node\.js 22\.19 or newer, this is .*Next: run it with a newer/);
  });

  test.each(["22.19.0", "24.0.0"])("under Node.js %s has what it needs", (version) => {
    expect(() => checkNode(version)).not.toThrow();
  });

  test("on a folder keeps an open question over close and reopening, and ends with one result", async () => {
    const directory = await folder();
    const first = await open(directory);
    const run = await first.owner("me").assign({ id: "hello", agent: "asks", task: "A" });
    const asked = await run.next();
    await first.close();
    const second = await open(directory);
    const again = await second.owner("me").assign({ id: "hello", agent: "asks", task: "A" });
    expect(again.requestId).toBe(run.requestId);
    expect(await again.next()).toMatchObject({ type: "question", question: { question: "May I do A?" } });
    if (asked.type === "question") await second.owner("me").reply({ askId: asked.question.askId, message: "yes" });
    expect((await again.result()).text).toBe("A: yes");
  });

  test("tells who listens right after it what happened while the store was opened", async () => {
    const directory = await folder();
    const first = await open(directory);
    const run = await first.owner("me").assign({ agent: "asks", task: "A" });
    await run.next();
    await first.close();
    const second = await open(directory, { runWorkers: false });
    await second.owner("me").reply({ label: "asks", message: "yes" });
    await second.close();
    // Its agent is not defined any more, so it is held before there is a herd to listen to.
    const third = await open(directory, { agents: {} });
    const held = new Promise((resolve) => third.on("held", resolve));
    expect(await held).toMatchObject({ label: "asks", diagnostic: expect.stringContaining("not defined") });
  });

  test("on a locked store names the process that has it and the ways out", async () => {
    const directory = await folder();
    await open(directory);
    const error = await refusalOf(open(directory));
    expect(error).toMatchObject({ category: "worker_busy", reason: "store_locked" });
    expect(error.message).toContain(`process ${process.pid}`);
    expect(error.message).toContain(directory);
    expect(error.message).toMatch(
      /Next: reach it with connectHerd or the herd command, end that process, use another directory, or raise waitForLockMs/,
    );
  });

  test("waits for a store that another herd is closing", async () => {
    const directory = await folder();
    const first = await open(directory);
    const second = open(directory, { waitForLockMs: 5_000 });
    await first.close();
    expect((await second).status).toBe("open");
  });

  test("opens what a killed process left, without a lock in the way", async () => {
    const directory = await folder();
    const program = `
      import { createHerd } from ${JSON.stringify(new URL("./index.ts", import.meta.url).href)};
      const herd = await createHerd({ directory: ${JSON.stringify(directory)}, agents: {
        asks: { description: "a", run: async (task, worker) => task + ": " + (await worker.askOwner({ question: "May I do " + task + "?" })) } } });
      const run = await herd.owner("me").assign({ agent: "asks", task: "A" });
      await run.next();
      console.log(run.requestId);
      setInterval(() => {}, 1_000);
    `;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const requestId = await new Promise<string>((resolve) =>
      child.stdout.once("data", (data) => resolve(String(data).trim())),
    );
    child.kill("SIGKILL");
    await new Promise((resolve) => child.once("exit", resolve));
    const herd = await open(directory);
    const run = await herd.assignment(requestId);
    const event = await run.next();
    expect(event).toMatchObject({ type: "question", question: { question: "May I do A?" } });
    if (event.type === "question") await herd.owner("me").reply({ askId: event.question.askId, message: "yes" });
    expect((await run.result()).text).toBe("A: yes");
  });

  test('with durability "process" keeps what it told over a close, and says what it does not survive', async () => {
    const warnings: string[] = [];
    const listen = (warning: Error) => warnings.push(warning.message);
    process.on("warning", listen);
    cleanups.push(() => process.off("warning", listen));
    const directory = await folder();
    const first = await open(directory, { durability: "process" });
    const run = await first.owner("me").assign({ agent: "asks", task: "A" });
    await first.close();
    const second = await open(directory);
    expect((await (await second.assignment(run.requestId)).status()).state).toBe("blocked");
    expect(warnings.some((message) => message.includes("survives the end of this process, not of the machine"))).toBe(
      true,
    );
  });

  test("with passive: true reads what is there and refuses every command", async () => {
    const directory = await folder();
    const first = await open(directory);
    await first.owner("me").assign({ agent: "asks", task: "A" });
    await first.close();
    const herd = await open(directory, { passive: true });
    expect((await herd.owner("me").list()).workers).toMatchObject([
      { label: "asks", question: { question: "May I do A?" } },
    ]);
    expect(await refusalOf(herd.owner("me").assign({ agent: "asks", task: "B" }))).toMatchObject({ reason: "passive" });
    expect(await refusalOf(herd.owner("me").reply({ label: "asks", message: "x" }))).toMatchObject({
      reason: "passive",
    });
  });

  test("on a folder that cannot be one says so with what to do", async () => {
    const directory = join(await folder(), "file");
    await writeFile(directory, "not a folder");
    const error = await refusalOf(open(directory));
    expect(error).toMatchObject({ category: "internal_failure", reason: "store_unavailable" });
    expect(error.message).toContain(directory);
    expect(error.message).toMatch(/Next: use a directory that this process may write/);
  });

  test("with passive: true on a folder without a store says so and creates nothing", async () => {
    const directory = join(await folder(), "nothing");
    await expect(open(directory, { passive: true })).rejects.toThrow(directory);
  });

  test.each([
    ["an unknown option", { tickms: 5 }, /unknown option tickms/],
    ["a limit of zero", { maxTrees: 0 }, /option maxTrees/],
    ["a durability it does not have", { durability: "eventually" }, /option durability/],
    ["a negative pause", { tickMs: -1 }, /option tickMs/],
    ["definitions that are no list", { definitions: "~/agents" }, /option definitions: must be a list/],
    ["a source of no layer", { definitions: ["a", { path: "b" }] }, /option definitions\.1: must be the path .* layer/],
    ["a source without a path", { definitions: [""] }, /option definitions\.0: must be the path/],
  ])("refuses %s by name", async (_what, options, message) => {
    const error = await refusalOf(createHerd(options as object));
    expect(error).toMatchObject({ category: "invalid_request", reason: "bad_option" });
    expect(error.message).toMatch(message);
  });

  test.each([
    ["an unknown field", { does: { ...does, tools: [] } }, /Agent "does", field tools: unknown field/],
    ["no description", { does: { run: does.run } }, /field description/],
    ["no function", { does: { description: "x" } }, /field run/],
    ["a subagent that is not defined", { does: { ...does, subagents: ["nobody"] } }, /"nobody" is not defined/],
    [
      "an input that is no schema",
      { does: { ...does, input: ["task"] } },
      /field input: a JSON Schema object is required/,
    ],
    ["half a place", { does: { ...does, concurrency: 0.5 } }, /field concurrency/],
    [
      "a former name that is taken",
      { does: { ...does, formerly: ["asks"] }, asks },
      /"asks" is also another agent's name/,
    ],
  ])("refuses an agent with %s", async (_what, definitions, message) => {
    const error = await refusalOf(createHerd({ directory: await folder(), agents: definitions as never }));
    expect(error).toMatchObject({ category: "invalid_request", reason: "bad_agent" });
    expect(error.message).toMatch(message);
  });
});

describe("an owner", () => {
  test.each([[""], [" "], ["x".repeat(513)]])("with a bad id %j is refused", async (id) => {
    const t = await createTestHerd({ agents });
    expect(() => t.herd.owner(id)).toThrow(/owner's id is not valid/);
  });

  test('by id "x" and by the subject { scope: "owner", keys: { id: "x" } } is the same', async () => {
    const t = await createTestHerd({ agents });
    await t.herd.owner("x").assign({ agent: "asks", task: "A" });
    expect((await t.herd.owner({ scope: "owner", keys: { id: "x" } }).list()).workers).toHaveLength(1);
  });

  test("sees and closes its own workers only", async () => {
    const t = await createTestHerd({ agents });
    await t.owner.assign({ agent: "asks", task: "A", label: "mine" });
    const other = t.herd.owner("other");
    expect((await other.list()).workers).toEqual([]);
    expect(await refusalOf(other.close({ label: "mine" }))).toMatchObject({ category: "target_not_found" });
    expect(await t.owner.close({ label: "mine" })).toEqual({ label: "mine" });
    expect(await refusalOf(t.owner.close({ label: "mine" }))).toMatchObject({ category: "target_not_found" });
  });

  test("with two workspaces acts in each on the workers of that one", async () => {
    const t = await createTestHerd({ agents });
    const here = t.herd.owner("me", { workspace: "here" });
    const there = t.herd.owner("me", { workspace: "there" });
    await here.assign({ agent: "asks", task: "A", label: "one" });
    await there.assign({ agent: "asks", task: "B", label: "one" });
    await t.idle();
    expect((await here.list()).workers).toMatchObject([{ label: "one", workspaceId: "here" }]);
    await there.reply({ label: "one", message: "yes" });
    expect((await here.list()).workers).toMatchObject([{ state: "blocked" }]);
    await here.close({ label: "one" });
    expect((await here.list()).workers).toEqual([]);
    expect((await there.list()).workers).toMatchObject([{ state: "settling" }]);
  });

  test("may have any characters in its id", async () => {
    const t = await createTestHerd({ agents });
    const id = "!/\u0000 ÄÖ 😀 ".padEnd(512, "!");
    const run = await t.herd.owner(id).assign({ agent: "does", task: "A" });
    expect((await run.result()).owner.id).toBe(id);
  });
});

describe("an assignment", () => {
  test("that does not exist is refused with what to use", async () => {
    const t = await createTestHerd({ agents });
    expect(await refusalOf(t.herd.assignment("nope"))).toMatchObject({ category: "target_not_found" });
  });

  test("is readable for the time of its retention, then gone with everything that belongs to it", async () => {
    const t = await createTestHerd({ agents, retention: { resultsMs: 60_000 } });
    const run = await t.owner.assign({ id: "once", agent: "asks", task: "A" });
    await (await t.question()).reply("yes", { id: "r1" });
    await t.result();
    await t.idle();
    await t.clock.advance("59s");
    expect((await (await t.herd.assignment(run.requestId)).result()).text).toBe("A: yes");
    await t.clock.advance("2s");
    expect(await refusalOf(t.herd.assignment(run.requestId))).toMatchObject({ category: "target_not_found" });
    const rows = await t.store.range({ gte: "a", lt: "~" });
    const left = rows.map(([key]) => key.split("!")[0]).filter((kind) => kind !== "s" && kind !== "m");
    // The owner's own root is all that stays.
    expect(left).toEqual(["a"]);
  });

  test("that waits for its owner is never pruned", async () => {
    const t = await createTestHerd({ agents, retention: { resultsMs: 1_000 } });
    await t.owner.assign({ agent: "asks", task: "A" });
    const question = await t.question();
    await t.clock.advance("365d");
    await question.reply("yes");
    expect((await t.result()).text).toBe("A: yes");
  });
});
