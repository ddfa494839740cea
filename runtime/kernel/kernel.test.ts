import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "../functions/agent.ts";
import { createTestHerd, FaultPlan, faultyStore, memoryStore, type TestHerd } from "../testing/index.ts";
import { keys } from "../store/keys.ts";
import { ownerKeyOf } from "../owners.ts";

const asks: AgentDefinition = {
  description: "asks before it answers",
  run: async (task, worker) => `${task}: ${await worker.askOwner({ question: `May I do ${task}?` })}`,
};
const does: AgentDefinition = { description: "just does it", run: async (task) => `did ${task}` };
const agents = { asks, does };

const faulty = async (reopen = { attempts: 8, pauseMs: 0 }) => {
  const plan = new FaultPlan();
  const inner = memoryStore();
  const t = await createTestHerd({ agents, store: faultyStore(inner, plan), reopen });
  return { t, plan, inner };
};
const treeOf = (owner: string) => ownerKeyOf({ id: owner });
const rowsOf = (t: TestHerd, prefix: string) => t.store.range({ gte: prefix, lt: `${prefix}~` });

describe("a batch that the store refuses", () => {
  test("is written again after reopening, and nobody was told before it was on disk", async () => {
    const { t, plan } = await faulty();
    plan.failBatches(3);
    const run = await t.owner.assign({ agent: "asks", task: "A" });
    await (await t.question()).reply("yes");
    expect((await t.result()).text).toBe("A: yes");
    expect(
      await t.store.range({ gte: keys.request(run.requestId), lt: `${keys.request(run.requestId)}~` }),
    ).toHaveLength(1);
  });

  test("although it landed is not written twice", async () => {
    const { t, plan } = await faulty();
    plan.failBatches(1, { landed: true });
    await t.owner.assign({ agent: "asks", task: "A" });
    const sequence = await rowsOf(t, "s!");
    await (await t.question()).reply("yes");
    await t.result();
    await t.idle();
    expect(t.owner.questions).toHaveLength(1);
    expect((await rowsOf(t, "s!")).length).toBeGreaterThan(sequence.length);
    await t.crash();
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
  });

  test("with a store that cannot be reopened at first waits, and other commands wait with it", async () => {
    const { t, plan } = await faulty();
    plan.failBatches(1);
    plan.failReopens(4);
    const first = t.owner.assign({ agent: "asks", task: "A" });
    const second = t.owner.assign({ agent: "asks", task: "B" });
    expect((await first).label).toBe("asks");
    expect((await second).label).toBe("asks-2");
    await t.idle();
    expect(t.owner.questions.map(({ question }) => question)).toEqual(["May I do A?", "May I do B?"]);
  });

  test("for good, while others are taken, undoes that command alone and says so", async () => {
    const { t, plan } = await faulty({ attempts: 2, pauseMs: 0 });
    const kept = await t.owner.assign({ agent: "asks", task: "kept" });
    await t.question();
    // The batch, its two repetitions, then (after the probe) the command alone.
    plan.failBatches(3);
    plan.failBatches(1, { after: 4 });
    await expect(t.owner.assign({ agent: "does", task: "refused" })).rejects.toMatchObject({
      category: "internal_failure",
      reason: "undone",
      rollbackOccurred: true,
    });
    expect((await t.owner.list()).workers.map(({ label }) => label)).toEqual(["asks"]);
    await t.owner.assign({ agent: "does", task: "taken" });
    expect((await t.result()).text).toBe("did taken");
    await t.owner.reply({ label: kept.label, message: "yes" });
    expect((await t.result()).text).toBe("kept: yes");
  });

  test("of a result leaves the worker settling with the evidence, until its owner closes it", async () => {
    const { t, plan } = await faulty({ attempts: 2, pauseMs: 0 });
    await t.owner.assign({ agent: "asks", task: "A" });
    const question = await t.question();
    await t.idle();
    const settled = plan.batches;
    await question.reply("yes");
    plan.failBatches(3, { after: settled + 1 - plan.batches });
    plan.failBatches(1, { after: settled + 1 - plan.batches + 4 });
    await t.idle();
    const { workers } = await t.owner.list();
    expect(workers).toMatchObject([
      {
        label: "asks",
        state: "settling",
        steerable: false,
        resultError: {
          code: "write_failure",
          attempts: 2,
          retrySafe: false,
          cleanupSafe: true,
          originalStatus: "completed",
        },
      },
    ]);
    expect(t.owner.results).toEqual([]);
    await t.owner.close({ label: "asks" });
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("and so is the probe: the herd is fenced, everything is refused, workers hear it", async () => {
    const { t, plan } = await faulty({ attempts: 2, pauseMs: 0 });
    const stops: string[] = [];
    const herd = await createTestHerd({
      store: faultyStore(memoryStore(), plan),
      reopen: { attempts: 2, pauseMs: 0 },
      agents: {
        does,
        it: {
          description: "waits",
          run: (_task, worker) =>
            new Promise(() => worker.signal.addEventListener("abort", () => stops.push(worker.signal.reason.code))),
        },
      },
    });
    await herd.owner.assign({ agent: "it", task: "go" });
    plan.failBatches(1_000);
    await expect(herd.owner.assign({ agent: "does", task: "A" })).rejects.toMatchObject({ reason: "fenced" });
    await expect(herd.owner.assign({ agent: "does", task: "B" })).rejects.toThrow(
      /outcome of commands under way is unknown\. Next: make the disk writable again and reopen the herd/,
    );
    await expect(herd.owner.list()).rejects.toMatchObject({ reason: "fenced" });
    expect(await herd.owner.subagent({ action: "list" })).toMatchObject({ ok: false, error: { reason: "fenced" } });
    expect(herd.herd.status).toBe("fenced");
    expect(stops).toEqual(["fenced"]);
    await t.close();
  });
});

describe("what is told", () => {
  test("is on disk: a question is not heard while its batch is being written", async () => {
    const { t, plan } = await faulty();
    const held = plan.holdBatch({ after: 1 });
    await t.owner.assign({ agent: "asks", task: "A" });
    await held.reached;
    expect(t.owner.questions).toEqual([]);
    held.release();
    expect((await t.question()).question).toBe("May I do A?");
  });

  test("is on disk: an acceptance is not told while its batch is being written, nor is a refusal based on it", async () => {
    const { t, plan } = await faulty();
    const held = plan.holdBatch();
    const told: string[] = [];
    const first = t.owner.assign({ agent: "asks", task: "A", label: "one" }).then(() => told.push("accepted"));
    const second = t.owner.assign({ agent: "asks", task: "B", label: "one" }).catch(() => told.push("refused"));
    const listed = t.owner.list().then(() => told.push("listed"));
    await held.reached;
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual([]);
    held.release();
    await Promise.all([first, second, listed]);
    expect(told.toSorted()).toEqual(["accepted", "listed", "refused"]);
  });
});

describe("claims", () => {
  test("of one label by a hundred trees at once are won by exactly one", async () => {
    const t = await createTestHerd({ agents });
    const attempts = await Promise.allSettled(
      Array.from({ length: 100 }, (_, index) =>
        t.herd.owner(`owner-${index}`, { workspace: "shared" }).assign({ agent: "asks", task: "A", label: "one" }),
      ),
    );
    expect(attempts.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test("of automatic labels by ten parallel assigns all succeed under distinct labels", async () => {
    const t = await createTestHerd({ agents });
    const runs = await Promise.all(Array.from({ length: 10 }, () => t.owner.assign({ agent: "asks", task: "A" })));
    expect(runs.map(({ label }) => label)).toEqual([
      "asks",
      ...Array.from({ length: 9 }, (_, index) => `asks-${index + 2}`),
    ]);
  });

  test("of one caller id at once are the same assignment", async () => {
    const t = await createTestHerd({ agents });
    const runs = await Promise.all(
      Array.from({ length: 5 }, () => t.owner.assign({ id: "once", agent: "asks", task: "A" })),
    );
    expect(new Set(runs.map(({ requestId }) => requestId)).size).toBe(1);
    expect((await t.owner.list()).workers).toHaveLength(1);
  });
});

describe("overload", () => {
  test("is refused before anything changes, with when to try again", async () => {
    const plan = new FaultPlan();
    const t = await createTestHerd({ agents, maxInFlight: 3, store: faultyStore(memoryStore(), plan) });
    const held = plan.holdBatch();
    const accepted = [1, 2, 3].map((task) => t.owner.assign({ agent: "does", task: String(task) }));
    await held.reached;
    await expect(t.owner.assign({ agent: "does", task: "4" })).rejects.toMatchObject({
      category: "worker_busy",
      reason: "overloaded",
      retryAfterMs: 100,
    });
    held.release();
    await Promise.all(accepted);
    await t.idle();
    expect(t.owner.results).toHaveLength(3);
  });
});

describe("trees", () => {
  test("are dropped from memory when idle and read again when needed", async () => {
    const t = await createTestHerd({ agents, maxTrees: 2, parkAfter: 0 });
    const owners = Array.from({ length: 20 }, (_, index) => t.herd.owner(`owner-${index}`));
    const runs = await Promise.all(owners.map((owner) => owner.assign({ agent: "asks", task: "A" })));
    await t.idle();
    await Promise.all(
      owners.map((owner, index) => owner.reply({ label: runs[index]?.label ?? "", message: String(index) })),
    );
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results.map(({ text }) => text)).toEqual(owners.map((_, index) => `A: ${index}`));
  });

  test("with a row that cannot be believed show that worker as unknown and leave the others alone", async () => {
    const t = await createTestHerd({ agents });
    await t.owner.assign({ agent: "asks", task: "A", label: "good" });
    await t.owner.assign({ agent: "asks", task: "B", label: "bad" });
    await t.idle();
    const rows = await rowsOf(t, `a!${treeOf("tester")}!`);
    const [key, text] = rows.find(([, value]) => value.includes('"label":"bad"')) ?? ["", ""];
    const broken = JSON.parse(text);
    broken.context.asks = "many";
    await t.store.batch([{ type: "put", key, value: JSON.stringify(broken) }], { sync: true });
    await t.crash();
    const { workers } = await t.owner.list();
    expect(workers.map(({ label, state }) => `${label} ${state}`).toSorted()).toEqual(["bad unknown", "good blocked"]);
    expect(workers.find(({ label }) => label === "bad")).toMatchObject({
      unreadable: true,
      steerable: false,
      diagnostic: "asks: Invalid input: expected number, received string",
    });
    await expect(t.owner.reply({ label: "bad", message: "x" })).rejects.toThrow(
      /record of the worker "bad" cannot be read/,
    );
    await t.owner.reply({ label: "good", message: "yes" });
    expect((await t.result()).text).toBe("A: yes");
    // Nothing was repaired or deleted.
    expect(t.store.get(key)).toBe(JSON.stringify(broken));
  });

  test.each([
    ["text that is not JSON", () => "{"],
    ["a state that this version does not know", (row: string) => row.replace('"onOwner"', '"onNobody"')],
    ["another machine version", (row: string) => row.replace('"version":"1"', '"version":"99"')],
  ])("with %s show it as unknown", async (_what, spoil) => {
    const t = await createTestHerd({ agents });
    await t.owner.assign({ agent: "asks", task: "A" });
    await t.idle();
    const [key, text] = (await rowsOf(t, `a!${treeOf("tester")}!`)).find(([, value]) => value.includes('"asks"')) ?? [
      "",
      "",
    ];
    await t.store.batch([{ type: "put", key, value: spoil(text) }], { sync: true });
    await t.crash();
    expect((await t.owner.list()).workers).toMatchObject([{ state: "unknown", diagnostic: expect.any(String) }]);
  });
});

describe("a store", () => {
  test("with a gap in its sequence is refused, and says which batch is missing", async () => {
    const t = await createTestHerd({ agents });
    for (let i = 0; i < 5; i++) await t.owner.assign({ agent: "asks", task: String(i) });
    await t.close();
    await t.store.open();
    await t.store.batch([{ type: "del", key: keys.sequence(3) }], { sync: true });
    await t.store.close();
    await expect(createTestHerd({ agents, store: t.store })).rejects.toMatchObject({ reason: "store_damaged" });
    await expect(createTestHerd({ agents, store: t.store })).rejects.toThrow(/batch 3 of \d+ is missing/);
  });

  test("of another format is refused with what to do", async () => {
    const store = memoryStore();
    await store.open();
    await store.batch([{ type: "put", key: keys.meta("format"), value: "99" }], { sync: true });
    await store.close();
    await expect(createTestHerd({ agents, store })).rejects.toThrow(/format 99.*Next: open it with the version/);
  });
});
