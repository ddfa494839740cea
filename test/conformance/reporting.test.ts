import { describe, expect, test } from "vitest";
import { createTestHerd, FaultPlan, faultyStore, memoryStore } from "pi-herd/testing";
import { does, expectNothingLeft, refusalOf, statesOf, until } from "./support.ts";

const agents = { does };

async function atWork(request: object = {}) {
  const plan = new FaultPlan();
  const t = await createTestHerd({ agents, store: faultyStore(memoryStore(), plan) });
  const script = t.scripted("does");
  const handle = await t.owner.assign({ agent: "does", task: "A", ...request });
  const run = await script.run();
  await run.turn();
  await t.idle();
  return { t, plan, script, run, handle };
}

describe("what a process reports", () => {
  test("of an end without work makes no result, and twice one; activity ends with the work", async () => {
    const { t, run } = await atWork({ reusable: true });
    const dropped: unknown[] = [];
    t.herd.on("dropped", ({ why, requestId }) => dropped.push([why, requestId]));
    expect(await run.settle("done")).toBe(true);
    await run.duplicate();
    await t.result();
    await t.idle();
    expect(await run.settle("nobody asked")).toBe(false);
    expect(dropped).toEqual([["settled", run.requestId]]);
    await t.clock.advance("11m");
    const [row] = (await t.owner.list()).workers;
    expect(row).toMatchObject({ state: "ready", steerable: false });
    expect(row).not.toHaveProperty("stale");
    expect(row).not.toHaveProperty("activeRequestId");
    expect(t.owner.results).toHaveLength(1);
  });

  test("as an error after its last turn fails with that error; one that it got over does not count", async () => {
    const { t, run } = await atWork({ reusable: true });
    await run.endTurn();
    await run.turn();
    await run.settle({ code: "provider_error", message: "no more retries" });
    expect(await t.result()).toMatchObject({
      status: "failed",
      text: "",
      error: { code: "provider_error", message: "no more retries" },
    });
    await t.idle();
    // The next task knows nothing of it; a turn that came to nothing is followed by one that did.
    await t.owner.assign({ label: "does", task: "B" });
    await run.turn();
    await run.endTurn();
    await run.turn();
    await run.settle("done after all");
    expect(await t.result()).toMatchObject({ status: "completed", text: "done after all" });
  });

  test("of another assignment or another run changes nothing, and neither does a confirmation of nothing", async () => {
    const { t, run } = await atWork({ reusable: true });
    await t.owner.steer({ label: "does", message: "also this" });
    const before = await statesOf(t);
    const { orderId } = run.order("steer");
    const outcome = { status: "completed" as const, text: "not its own" };
    expect(await run.late({ type: "settled", outcome })).toBe(false);
    expect(await run.wrongIdentity({ type: "settled", outcome })).toBe(false);
    expect(await run.wrongIdentity({ type: "delivered", orderId })).toBe(false);
    expect(await run.late({ type: "delivered", orderId })).toBe(false);
    expect(await run.hear("steer.of-another")).toBe(false);
    expect(await statesOf(t)).toEqual(before);
    // Nothing was confirmed by any of that.
    await t.crash();
    await t.idle();
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "steer", "steer"]);
    expect(await run.hear()).toBe(true);
    await run.settle("its own");
    expect((await t.result()).text).toBe("its own");
  });

  test("of the assignment before does not end the next one", async () => {
    const { t, run, handle } = await atWork({ reusable: true });
    await run.settle("first");
    await t.result();
    await t.idle();
    await t.owner.assign({ label: "does", task: "B" });
    const outcome = { status: "completed" as const, text: "first again" };
    expect(await run.late({ type: "settled", outcome }, handle.requestId)).toBe(false);
    expect(await statesOf(t)).toEqual(["does working"]);
    await run.turn();
    await run.settle("second");
    expect((await t.result()).text).toBe("second");
  });
});

describe("what is reported but not on disk when the process of the herd dies", () => {
  test("as a confirmed steer is told to the worker again, and makes no second result", async () => {
    const { t, plan, run } = await atWork();
    await t.owner.steer({ label: "does", message: "also this" });
    await t.idle();
    const held = plan.holdBatch();
    void run.hear().catch(() => undefined);
    await held.reached;
    await t.crash();
    held.release();
    await t.idle();
    const steers = run.orders.filter(({ kind }) => kind === "steer");
    expect(steers).toHaveLength(2);
    expect(steers[1]).toEqual(steers[0]);
    await run.hear();
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
    await expectNothingLeft(t);
  });

  test("as an acceptance is taken when it is reported again: one worker, one request", async () => {
    const plan = new FaultPlan();
    const t = await createTestHerd({ agents, store: faultyStore(memoryStore(), plan) });
    const script = t.scripted("does");
    script.acceptsAtOnce = false;
    const request = { agent: "does", task: "A", id: "once" };
    void t.owner.assign(request).catch(() => undefined);
    const run = await script.run();
    await t.idle();
    const held = plan.holdBatch();
    void run.accept().catch(() => undefined);
    await held.reached;
    await t.crash();
    held.release();
    const again = t.owner.assign(request);
    await until(() => run.orders.length > 1);
    expect(run.orders[1]).toMatchObject({ kind: "start", orderId: run.orders[0]?.orderId, task: "A" });
    await run.accept();
    expect((await again).requestId).toBe(run.requestId);
    expect(script.runs).toHaveLength(1);
    expect(await statesOf(t)).toEqual(["does working"]);
  });

  test.each([false, true])("as a result (landed: %s) is one result when it is reported again", async (landed) => {
    const { t, plan, run } = await atWork();
    const held = plan.holdBatch({ landed });
    void run.settle("done").catch(() => undefined);
    await held.reached;
    await t.crash();
    held.release();
    await t.idle();
    expect(await run.settle("done")).toBe(!landed);
    expect((await t.result()).text).toBe("done");
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
    await expectNothingLeft(t);
  });
});

describe("a read that fails", () => {
  test("when a receiver comes loses none of what waits for it: the next pass hands it over", async () => {
    const store = memoryStore();
    const range = store.range.bind(store);
    let failures = 0;
    store.range = (bounds) =>
      bounds.gte.startsWith("d!") && failures-- > 0 ? Promise.reject(new Error("bad read")) : range(bounds);
    const t = await createTestHerd({ agents, store });
    const script = t.scripted("does");
    const owner = t.herd.owner("parks");
    for (const label of ["one", "two"]) {
      await owner.assign({ agent: "does", task: label, label });
      const run = await script.run(label);
      await run.turn();
      await run.settle(label);
    }
    await t.idle();
    failures = 1;
    const heard: string[] = [];
    t.herd.owner("parks", { onResult: (result) => void heard.push(result.text) });
    await t.idle();
    expect(heard).toEqual([]);
    await t.clock.advance("1s");
    expect(heard).toEqual(["one", "two"]);
    await t.idle();
    expect((await owner.list()).workers).toEqual([]);
  });
});

describe("a worker in a process that is refused something", () => {
  test("says so with a way out, and is refused the same again", async () => {
    const { t, run } = await atWork();
    await run.ask("Which?");
    await run.endTurn();
    await t.question();
    const steer = () => refusalOf(t.owner.steer({ label: "does", message: "x" }));
    const first = await steer();
    expect(first).toMatchObject({
      category: "worker_busy",
      reason: "already_waiting",
      nextAction: "reply to its question instead",
    });
    await t.crash();
    expect(await steer()).toMatchObject({ category: first.category, reason: first.reason, message: first.message });
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);
  });
});

describe("what belongs to an assignment that ended", () => {
  test("is not heard in the next one: a steer that nobody took in goes with its assignment", async () => {
    const { t, run } = await atWork({ reusable: true, label: "one" });
    await t.owner.steer({ label: "one", message: "old" });
    const old = run.order("steer").orderId;
    await run.settle("done");
    await t.result();
    await t.idle();
    await t.owner.assign({ label: "one", task: "B" });
    await run.turn();
    await t.owner.steer({ label: "one", message: "new" });
    const before = run.orders.length;
    await t.crash();
    await t.idle();
    expect(run.orders.slice(before)).toMatchObject([{ kind: "steer", message: "new" }]);
    expect(await run.hear(old)).toBe(false);
    await expect(run.ask("May I?")).rejects.toMatchObject({ reason: "request_unacknowledged" });
    await run.hear();
    await run.ask("May I?");
  });

  test("leaves no order behind when a worker that is used once ends without having heard it", async () => {
    const { t, run } = await atWork();
    await t.owner.steer({ label: "does", message: "old" });
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
    await expectNothingLeft(t);
  });

  test("does not ask: a question that names it is refused, and the present one asks on", async () => {
    const { t, run } = await atWork({ reusable: true, label: "one" });
    const old = run.requestId;
    await run.settle("done");
    await t.result();
    await t.idle();
    const { requestId } = await t.owner.assign({ label: "one", task: "B" });
    await run.turn();
    run.requestId = old;
    await expect(run.ask("Which?")).rejects.toMatchObject({ reason: "no_active_assignment" });
    await expect(run.ask("Which?", { batch: ["ask_owner", "read"] })).rejects.toMatchObject({
      reason: "not_sole_tool_call",
    });
    run.requestId = requestId;
    expect(await run.ask("May I?")).toMatchObject({ assignmentRequestId: requestId });
  });
});
