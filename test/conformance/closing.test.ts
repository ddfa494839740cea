import { getEventListeners } from "node:events";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type AgentDefinition, createHerd, type Question } from "pi-herd";
import { createTestHerd, memoryStore } from "pi-herd/testing";
import type { HerdInstance } from "../../runtime/herd-instance.ts";
import { asks, does, expectNothingLeft, gate, refusalOf, rowsOf, statesOf, until } from "./support.ts";

/** A parent with two children that the test plays, which does what it is told when it is let on. */
async function family(then: AgentDefinition["run"] = async () => "done") {
  const on = gate();
  const lead: AgentDefinition = {
    description: "delegates",
    subagents: ["part"],
    run: async (task, worker) => {
      await worker.assign({ agent: "part", task: "one" });
      await worker.assign({ agent: "part", task: "two" });
      await on.opened;
      return then(task, worker);
    },
  };
  const t = await createTestHerd({ agents: { does, lead, part: does } });
  const script = t.scripted("part");
  const run = await t.owner.assign({ agent: "lead", task: "A" });
  const children = [await script.run("part"), await script.run("part-2")] as const;
  for (const child of children) await child.turn();
  return { t, run, script, children, on };
}

describe("closing a parent", () => {
  test("closes its children before it, each with proof, and while that goes on no new child is started", async () => {
    const refused: string[] = [];
    const { t, script, children, on } = await family(async (_task, worker) => {
      await worker
        .assign({ agent: "part", task: "three" })
        .catch((error) => refused.push(error.category, error.reason));
      await gate().opened;
      return "never";
    });
    script.stopsAtOnce = false;
    const order: string[] = [];
    t.herd.on("result", ({ label, status }) => order.push(`${label} ${status}`));
    const closing = t.owner.close({ label: "lead" }).then(() => order.push("lead gone"));
    await until(() => children[0].orders.at(-1)?.kind === "stop");
    on.open();
    await until(() => refused.length > 0);
    expect(refused).toEqual(["worker_busy", "transition_pending"]);
    expect(script.runs).toHaveLength(2);
    expect(await statesOf(t)).toEqual(["lead working", "part closing", "part-2 working"]);
    await children[0].exit();
    await until(() => children[1].orders.at(-1)?.kind === "stop");
    expect(await statesOf(t)).toEqual(["lead working", "part-2 closing"]);
    await children[1].exit();
    await closing;
    expect(order).toEqual(["part closed", "part-2 closed", "lead closed", "lead gone"]);
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("that another close is closing is worker_busy, and leaves no clean-up error behind", async () => {
    const { t, script, children } = await family();
    script.stopsAtOnce = false;
    const closing = t.owner.close({ label: "lead" });
    await until(() => children[0].orders.at(-1)?.kind === "stop");
    expect(await refusalOf(t.owner.close({ label: "lead" }))).toMatchObject({
      category: "worker_busy",
      reason: "closing",
    });
    for (const row of (await t.owner.list()).workers) expect(row).not.toHaveProperty("cleanupError");
    await children[0].exit();
    await until(() => children[1].orders.at(-1)?.kind === "stop");
    await children[1].exit();
    expect(await closing).toEqual({ label: "lead" });
  });

  test("that the end of the process interrupts leaves closed what was closed, and closing again does the rest", async () => {
    const { t, script, children } = await family();
    script.stopsAtOnce = false;
    void t.owner.close({ label: "lead" }).catch(() => undefined);
    await until(() => children[0].orders.at(-1)?.kind === "stop");
    await t.crash();
    await until(() => children[0].orders.filter(({ kind }) => kind === "stop").length === 2);
    expect((await statesOf(t)).toSorted()).toEqual(["lead working", "part closing", "part-2 working"]);
    expect(children[0].orders.filter(({ kind }) => kind === "stop")).toHaveLength(2);
    await children[0].exit();
    script.stopsAtOnce = true;
    await t.owner.close({ label: "lead" });
    expect((await t.owner.list()).workers).toEqual([]);
    expect(t.owner.results).toEqual([]);
  });
});

describe("a child", () => {
  test("of a living parent cannot be closed, or answered, by the root", async () => {
    const { t, children } = await family();
    await children[0].ask("Which?");
    await children[0].endTurn();
    const before = await statesOf(t);
    for (const call of [
      t.owner.close({ label: "part" }),
      t.owner.close({ label: "part-2" }),
      t.owner.reply({ label: "part", message: "this" }),
    ]) {
      expect(await refusalOf(call)).toMatchObject({ category: "target_not_found" });
    }
    expect(await statesOf(t)).toEqual(before);
  });
});

describe("closing a worker that asks", () => {
  test("removes its question for good, and a late reply is target_not_found", async () => {
    const t = await createTestHerd({ agents: { asks } });
    const run = await t.owner.assign({ agent: "asks", task: "A" });
    const question = await t.question();
    await t.owner.close({ label: "asks" });
    expect(await refusalOf(question.reply("late"))).toMatchObject({ category: "target_not_found", reason: "closed" });
    expect(await refusalOf(t.owner.reply({ label: "asks", message: "late" }))).toMatchObject({
      category: "target_not_found",
    });
    await t.crash();
    await t.idle();
    expect(t.owner.questions).toHaveLength(1);
    const handle = await t.herd.assignment(run.requestId);
    expect(await handle.next()).toMatchObject({ type: "result", result: { status: "closed" } });
    expect(t.owner.results).toEqual([]);
  });
});

describe("closing a worker whose question nobody has heard yet", () => {
  test("leaves nothing for a receiver that comes later", async () => {
    const t = await createTestHerd({ agents: { asks } });
    const owner = t.herd.owner("me");
    await owner.assign({ agent: "asks", task: "A" });
    await t.idle();
    await owner.close({ label: "asks" });
    const heard: string[] = [];
    const onQuestion = (question: Question) => void heard.push(question.question);
    t.herd.owner("me", { onQuestion });
    await t.idle();
    await t.crash();
    t.herd.owner("me", { onQuestion });
    await t.idle();
    expect(heard).toEqual([]);
    expect(await t.store.range({ gte: "d!", lt: "d~" })).toEqual([]);
  });
});

describe("closing the herd", () => {
  test("leaves no timer behind", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const herd = await createHerd({ store: memoryStore(), agents: { asks, does }, tickMs: 10 });
    const owner = herd.owner("me", { onResult: () => Promise.reject(new Error("not now")) });
    await owner.assign({ agent: "asks", task: "A", deadlineMs: 60_000 });
    const run = await owner.assign({ agent: "does", task: "B" });
    await new Promise<void>((resolve) => herd.on("undelivered", () => resolve()));
    expect((await run.status()).state).toBe("settling");
    expect(vi.getTimerCount()).toBeGreaterThan(0);
    await herd.close({ graceMs: 0 });
    expect(vi.getTimerCount()).toBe(0);
  });

  test("lets no callback fire afterwards and leaves its workers as they are; opening again goes on", async () => {
    const on = gate();
    let starts = 0;
    const t = await createTestHerd({
      agents: {
        does,
        slow: {
          description: "does not listen",
          run: async () => {
            if (++starts > 1) return "second time";
            await on.opened;
            return "first time";
          },
        },
      },
    });
    const script = t.scripted("does");
    const calls: string[] = [];
    for (const event of ["state", "result", "question", "dropped", "undelivered"] as const) {
      t.herd.on(event, () => calls.push(event));
    }
    t.herd.owner("moody", {
      onResult: () => {
        calls.push("onResult");
        throw new Error("not now");
      },
    });
    await t.herd.owner("moody").assign({ agent: "does", task: "B" });
    const other = await script.run();
    await other.turn();
    await other.settle("B");
    await t.owner.assign({ agent: "slow", task: "A" });
    await t.owner.assign({ agent: "does", task: "C" });
    const run = await script.run("does");
    await run.turn();
    await until(() => calls.includes("undelivered"));
    await t.herd.close({ graceMs: 0 });
    const before = [...calls];
    on.open();
    await expect(t.clock.advance("24h")).rejects.toThrow(/The herd is closed/);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(calls).toEqual(before);
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);

    await t.crash();
    expect((await t.result()).text).toBe("second time");
    await run.settle("C");
    expect((await t.result()).text).toBe("C");
  });
});

test("hundreds of workers that were assigned and closed leave no actor, no row and no listener", async () => {
  const t = await createTestHerd({ agents: { asks, does } });
  const script = t.scripted("does");
  const { signal } = new AbortController();
  const cycle = async (label: string, agent: "asks" | "does") => {
    const run = await t.owner.assign({ agent, task: "A", label, signal });
    const ended = run.result({ signal });
    if (agent === "does") await (await script.run(label)).turn();
    await t.owner.close({ label });
    expect((await ended).status).toBe("closed");
  };
  await cycle("first", "does");
  const { kernel, deliveries } = (t.herd as HerdInstance).engine;
  const leftovers = async () => ({
    actors: [...kernel.trees()].map(({ actors, paths, resting, written }) => [
      actors.size,
      paths.size,
      resting.size,
      written.size,
    ]),
    handlers: deliveries.running,
    listeners: getEventListeners(signal, "abort").length,
    // What stays is what is told of finished work until its retention ends.
    rows: (await rowsOf(t)).split("\n").filter((row) => !/^[uqknt]!/.test(row)).length,
  });
  const baseline = await leftovers();
  for (let round = 0; round < 200; round++) await cycle(`w${round}`, round % 2 === 0 ? "does" : "asks");
  expect(await leftovers()).toEqual(baseline);
  expect(baseline).toMatchObject({ actors: [[1, 0, 0, 1]], listeners: 0, handlers: 0 });
});

describe("a parent that goes before it read what its children did", () => {
  test.each(["while it works", "when it closed them itself"])("leaves no result on its way: %s", async (how) => {
    const t = await createTestHerd({
      agents: {
        does,
        lead: {
          description: "delegates",
          subagents: ["does"],
          run: async (_task, worker) => {
            const part = await worker.assign({ agent: "does", task: "x", label: "part", reusable: true });
            // A look is no reading.
            while ((await part.status()).state !== "completed") await new Promise((resolve) => setImmediate(resolve));
            if (how !== "while it works") await worker.close({ label: "part" });
            await t.owner.close({ label: "lead" });
            return "too late";
          },
        },
      },
    });
    const run = await t.owner.assign({ agent: "lead", task: "A" });
    expect((await run.result()).status).toBe("closed");
    await expectNothingLeft(t);
  });

  test("leaves none when it is a process", async () => {
    const t = await createTestHerd({ agents: { does, lead: { ...does, subagents: ["does"] } } });
    const [leads, script] = [t.scripted("lead"), t.scripted("does")];
    await t.owner.assign({ agent: "lead", task: "A" });
    const lead = await leads.run();
    await lead.turn();
    for (const label of ["kept", "closed"]) {
      await lead.subagent({ action: "assign", agent: "does", task: "x", label, reusable: true });
      const part = await script.run(label);
      await part.turn();
      await part.settle("part");
    }
    await lead.subagent({ action: "close", label: "closed" });
    expect(await t.owner.close({ label: "lead" })).toEqual({ label: "lead" });
    await expectNothingLeft(t);
  });
});
