import { describe, expect, test } from "vitest";
import type { Result } from "pi-herd";
import { createTestHerd, FaultPlan, faultyStore, memoryStore } from "pi-herd/testing";
import { does, gate, statesOf } from "./support.ts";

const agents = { does };

describe("a result", () => {
  test("whose sends fail is kept and sent again at its pauses until one succeeds, to its own owner alone", async () => {
    const t = await createTestHerd({ agents });
    const sends: string[] = [];
    const elsewhere: Result[] = [];
    const owner = t.herd.owner("mine", {
      onResult: (result) => {
        sends.push(result.text);
        if (sends.length <= 5) throw new Error("the session is reloading");
      },
    });
    t.herd.owner("theirs", { onResult: (result) => elsewhere.push(result) });
    const run = await owner.assign({ agent: "does", task: "A" });
    await t.idle();
    for (const pause of [250, 500, 1_000, 2_000, 4_000]) {
      const before = sends.length;
      expect((await owner.list()).workers).toMatchObject([
        { state: "settling", cleanupError: expect.stringContaining("reloading") },
      ]);
      await t.clock.advance(pause - 1);
      expect(sends).toHaveLength(before);
      await t.clock.advance(1);
      expect(sends).toHaveLength(before + 1);
    }
    expect((await owner.list()).workers).toEqual([]);
    await t.clock.advance("1h");
    expect(sends).toHaveLength(6);
    expect(elsewhere).toEqual([]);
    expect((await (await t.herd.assignment(run.requestId)).result()).text).toBe("did A");
  });

  test("that its receiver took, but not to the disk, is given once more after a restart", async () => {
    const plan = new FaultPlan();
    const t = await createTestHerd({ agents, store: faultyStore(memoryStore(), plan) });
    const received: number[] = [];
    const unwritten = gate();
    const onResult = (result: Result) => {
      received.push(result.attempt);
      if (received.length > 1) return;
      // The acknowledgement is the next batch. It never reaches the disk.
      void plan.holdBatch().reached.then(unwritten.open);
    };
    await t.herd.owner("me", { onResult }).assign({ agent: "does", task: "A" });
    await unwritten.opened;
    await t.crash();
    t.herd.owner("me", { onResult });
    await t.idle();
    expect(received).toEqual([1, 2]);
    await t.crash();
    t.herd.owner("me", { onResult });
    await t.idle();
    expect(received).toEqual([1, 2]);
  });

  test("whose receiver was replaced while it was sent is retried visibly, and the new receiver gets it once", async () => {
    const t = await createTestHerd({ agents });
    const [handed, replaced] = [gate(), gate()];
    const owner = t.herd.owner("me", {
      onResult: async () => {
        handed.open();
        await replaced.opened;
        throw new Error("the session was replaced");
      },
    });
    await owner.assign({ agent: "does", task: "A" });
    await handed.opened;
    const received: string[] = [];
    t.herd.owner("me", { onResult: (result) => received.push(result.text), replace: true });
    replaced.open();
    await t.idle();
    expect(received).toEqual([]);
    expect((await owner.list()).workers).toMatchObject([
      { state: "settling", cleanupError: "delivery failed, retrying: the session was replaced" },
    ]);
    await t.clock.advance("250ms");
    await t.clock.advance("1h");
    expect(received).toEqual(["did A"]);
    expect((await owner.list()).workers).toEqual([]);
  });

  test("of ten large ones at once is bounded by itself, given once, and in the order in which they ended", async () => {
    const large = (task: string) => `${task} ${"é".repeat(40_000)}`;
    const t = await createTestHerd({ agents: { large: { description: "x", run: async (task) => large(task) } } });
    const tasks = Array.from({ length: 10 }, (_, index) => `task ${index}`);
    await Promise.all(tasks.map((task) => t.owner.assign({ agent: "large", task })));
    await t.idle();
    const { results } = t.owner;
    expect(results.map(({ text }) => text)).toEqual(tasks.map(large));
    for (const { envelope, details } of results) {
      expect(details["truncated"]).toBe(true);
      expect(Buffer.byteLength(envelope)).toBeLessThan(52 * 1024);
    }
    await t.crash();
    await t.idle();
    expect(results).toHaveLength(10);
    // The same when they have waited for their receiver.
    const late = t.herd.owner("late");
    await Promise.all(tasks.map((task) => late.assign({ agent: "large", task })));
    await t.idle();
    const fetched: string[] = [];
    t.herd.owner("late", { onResult: (result) => fetched.push(result.text) });
    await t.idle();
    expect(fetched).toEqual(tasks.map(large));
  });

  test("counts a sibling that carries the same request id, and its own worker's next assignment", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    const owner = t.herd.owner("handles");
    const one = await owner.assign({ agent: "does", task: "A", label: "one", reusable: true });
    const two = await owner.assign({ agent: "does", task: "B", label: "two" });
    const run = await script.run("one");
    await run.turn();
    await (await script.run("two")).turn();
    await t.idle();
    // Nothing that the engine does leads here: the id is the key of its request.
    const rows = await t.store.range({ gte: "a!", lt: "a~" });
    const [key, text] = rows.find((row) => row[1].includes('"label":"two"')) as [string, string];
    const value = text.replace(two.requestId, one.requestId);
    await t.store.batch([{ type: "put", key, value }], { sync: true });
    await t.crash();
    await run.settle("did A");
    const countsOf = async () => {
      const { details } = await (await t.herd.assignment(one.requestId)).result();
      return [details["activeDirect"], details["pendingDirectResults"], details["delegationStatus"]];
    };
    expect(await countsOf()).toEqual([1, 0, expect.stringMatching(/^1 active direct, .*, 1 unresolved\. Partial/)]);
    await t.herd.owner("handles").assign({ label: "one", task: "C", wait: true });
    expect(await countsOf()).toEqual([2, 0, expect.stringMatching(/^2 active direct, .*, 2 unresolved\. Partial/)]);
  });

  test("is not to be seen right after acceptance; it comes by delivery alone", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    const handle = await t.owner.assign({ agent: "does", task: "A" });
    const run = await script.run();
    await run.turn();
    const { workers } = await t.owner.list();
    expect(workers).toMatchObject([{ state: "working", activeRequestId: handle.requestId }]);
    const status = await handle.status();
    for (const shown of [workers[0], status, (await t.owner.subagent({ action: "list" })).workers[0]]) {
      expect(Object.keys(shown ?? {}).filter((key) => /result|text|output|answer/i.test(key))).toEqual([]);
    }
    expect(t.owner.results).toEqual([]);
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
  });
});

test("the details of a result hold how full the context was, also when it is empty or too large", async () => {
  const contextUsage = { tokens: 120_000, contextWindow: 200_000, percent: 60 };
  const t = await createTestHerd({ agents: { does } });
  const script = t.scripted("does");
  for (const [label, end] of [
    ["whole", "done"],
    ["blank", " "],
    ["huge", "x".repeat(4 * 1024 * 1024 + 1)],
  ] as const) {
    await t.owner.assign({ agent: "does", task: "A", label });
    const run = await script.run(label);
    await run.turn();
    await run.settle(end, { contextUsage });
    expect((await t.result()).details).toMatchObject({ workerLabel: label, contextUsage });
  }
});

test("the details of a result say where its worker ran, as its backend reported it", async () => {
  const t = await createTestHerd({ agents: { does } });
  const script = t.scripted("does");
  script.acceptsAtOnce = false;
  const accepted = t.owner.subagent({ action: "assign", agent: "does", task: "A" });
  const run = await script.run();
  await run.accept({ paneId: "%7", sessionPath: "/sessions/a.jsonl" });
  expect(await accepted).toMatchObject({ pane_id: "%7" });
  await run.turn();
  await run.settle("done");
  expect((await t.result()).details).toMatchObject({ paneId: "%7", piSessionFile: "/sessions/a.jsonl" });
});

describe("a settle", () => {
  test("that comes twice gives one result, one without work none", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "does", task: "A" });
    const run = await script.run();
    await run.turn();
    expect(await run.settle("done")).toBe(true);
    expect(await run.duplicate()).toBe(false);
    expect(await run.settle("done again")).toBe(false);
    await t.result();
    await t.idle();
    // The work is over and acknowledged.
    expect(await run.settle("nobody asked")).toBe(false);
    await t.idle();
    expect(t.owner.results.map(({ text }) => text)).toEqual(["done"]);
  });

  test("of a closed worker is dropped, and the next holder of its label hears nothing of it", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "does", task: "A", label: "one" });
    const closed = await script.run();
    await closed.turn();
    await t.owner.close({ label: "one" });
    await t.owner.assign({ agent: "does", task: "B", label: "one" });
    const next = await script.run();
    await next.turn();
    expect(await closed.turn()).toBe(false);
    expect(await closed.settle("too late")).toBe(false);
    expect(await statesOf(t)).toEqual(["one working"]);
    await t.idle();
    expect(t.owner.results).toEqual([]);
    await next.settle("did B");
    expect((await t.result()).text).toBe("did B");
    await t.idle();
    await t.crash();
    expect(await closed.settle("even later")).toBe(false);
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
  });

  test.each([
    ["completed", "done"],
    ["failed", { code: "provider_error", message: "no more retries" }],
  ] as const)("as %s lets the one-shot worker go once its result is received for good", async (status, end) => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "does", task: "A", label: "one" });
    const run = await script.run();
    await run.turn();
    await run.settle(end);
    expect(await t.result()).toMatchObject({ status, ...(typeof end === "string" ? { text: end } : { error: end }) });
    await t.idle();
    expect((await t.owner.list()).workers).toEqual([]);
    await t.crash();
    await t.owner.assign({ agent: "does", task: "B", label: "one" });
    expect(await statesOf(t)).toEqual(["one working"]);
    expect(t.owner.results).toHaveLength(1);
  });
});

describe("how an assignment ended", () => {
  test("tells closed by its owner, out of time, thrown and lost apart, with the reason, also later", async () => {
    const t = await createTestHerd({
      restarts: 1,
      agents: {
        waits: { description: "never ends", run: () => new Promise<string>(() => undefined) },
        throws: { description: "throws", run: () => Promise.reject(new Error("no luck")) },
      },
    });
    const closed = await t.owner.assign({ agent: "waits", task: "A", label: "closed" });
    await t.owner.close({ label: "closed" });
    const thrown = await t.owner.assign({ agent: "throws", task: "A" });
    await t.result();
    const late = await t.owner.assign({ agent: "waits", task: "A", deadlineMs: 1_000 });
    await t.clock.advance("2s");
    await t.result();
    const lost = await t.owner.assign({ agent: "waits", task: "A" });
    await t.crash();
    await t.result();
    const endings = await Promise.all(
      [closed, thrown, late, lost].map(async ({ requestId }) => {
        const { status, error } = await (await t.herd.assignment(requestId)).result();
        return `${status}: ${error?.code}: ${error?.message}`;
      }),
    );
    expect(endings).toEqual([
      'closed: closed: "closed" was closed by its owner.',
      "failed: worker_error: no luck",
      'failed: deadline_exceeded: "waits" did not finish within its deadline.',
      expect.stringMatching(/^failed: worker_lost: The process ended 1 times in a row/),
    ]);
    // What was closed is delivered to nobody.
    expect(t.owner.results).toHaveLength(3);
  });
});
