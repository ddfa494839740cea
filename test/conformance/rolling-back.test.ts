import { describe, expect, onTestFinished, test } from "vitest";
import type { HerdError } from "pi-herd";
import {
  createTestHerd,
  FaultPlan,
  faultyStore,
  memoryStore,
  type TestHerdOptions,
  watchFailpoints,
} from "pi-herd/testing";
import { does, expectNothingLeft, herdOnDisk, pausesOf, refusalOf, statesOf, until } from "./support.ts";

const agents = { does };

/** On LevelDB, with a launch under a caller's id that is not accepted yet. */
async function launching(options: Partial<TestHerdOptions> = {}) {
  const t = await herdOnDisk({ agents, ...options });
  const script = t.scripted("does");
  script.acceptsAtOnce = false;
  script.stopsAtOnce = false;
  const request = { agent: "does", task: "A", id: "once" };
  const assign = () => t.owner.assign(request);
  const refusal = refusalOf(assign());
  refusal.catch(() => undefined);
  const run = await script.run();
  const failure = { stage: "agent_start", category: "target_not_found", message: "no such session" } as const;
  return { t, script, run, assign, refusal, failure };
}

/** What a caller is told, without the stack. */
const told = (error: HerdError) => JSON.parse(JSON.stringify(error)) as unknown;

describe("a rollback that cannot be proved", () => {
  test("tells both causes, keeps the label until the process is proven gone, also over a crash, then frees it", async () => {
    const { t, script, run, assign, refusal, failure } = await launching();
    await run.identify(run.order("start").sessionId, { paneId: "pane-7" });
    void run.failStart(failure);
    await until(() => run.orders.length > 1);
    await run.failStop("the pane does not answer");
    const error = await refusal;
    expect(error).toMatchObject({
      category: "rollback_failure",
      operation: "assign",
      rollbackOccurred: true,
      retryAttempted: true,
      ids: { label: "does", runId: run.runId, paneId: "pane-7" },
      primary: {
        category: "target_not_found",
        message: expect.stringContaining("no such session"),
        operation: "assign",
      },
      cleanup: { message: "the pane does not answer" },
      nextAction: expect.stringContaining("cleanup_errors"),
      details: { stage: "agent_start" },
    });
    // Both causes stand in what a model reads.
    const answer = await t.owner.subagent({ action: "assign", agent: "does", task: "B", label: "does" });
    expect(answer).toMatchObject({ ok: false, error: { category: "worker_label_exists" } });
    for (const again of ["now", "after a crash"]) {
      const listing = await t.owner.subagent({ action: "list" });
      expect(listing, `${again}`).toMatchObject({
        ok: true,
        workers: [{ label: "does", state: "closing", cleanup_error: "the pane does not answer" }],
        cleanup_errors: { does: "the pane does not answer" },
      });
      expect(told(await refusalOf(assign())), `${again}`).toEqual(told(error));
      expect(await refusalOf(t.owner.assign({ agent: "does", task: "B", label: "does" })), `${again}`).toMatchObject({
        category: "worker_label_exists",
      });
      await t.crash();
      await until(() => run.orders.filter(({ kind }) => kind === "stop").length > 1);
    }
    expect(script.runs).toHaveLength(1);
    await run.exit();
    await t.idle();
    script.acceptsAtOnce = true;
    script.stopsAtOnce = true;
    await t.owner.assign({ agent: "does", task: "B", label: "does" });
    expect(script.runs).toHaveLength(2);
    await t.owner.close({ label: "does" });
    // The answer under the caller's id stays the same.
    expect(told(await refusalOf(assign()))).toEqual(told(error));
    await expectNothingLeft(t, "i");
  });

  test("because nobody says anything for two seconds is shown and tried again until the process is gone", async () => {
    const { t, run, refusal, failure } = await launching();
    void run.failStart(failure);
    await until(() => pausesOf(t) > 0);
    await t.clock.advance(1_999);
    expect((await t.owner.list()).cleanupErrors).toBeUndefined();
    await t.clock.advance(1);
    const error = await refusal;
    expect(error).toMatchObject({
      category: "rollback_failure",
      cleanup: { message: expect.stringContaining("2000 ms") },
    });
    expect((await t.owner.list()).cleanupErrors).toEqual({ does: error.cleanup?.message });
    const stops = () => run.orders.filter(({ kind }) => kind === "stop").length;
    const before = stops();
    await t.clock.advance(250);
    expect(stops()).toBe(before + 1);
    await run.exit();
    await expectNothingLeft(t, "i");
  });

  test("ends by itself once the host proves the process absent, without another order", async () => {
    const { t, script, run, refusal, failure } = await launching();
    void run.failStart(failure);
    await until(() => run.orders.length > 1);
    await run.failStop("busy");
    await refusal;
    script.identities.set(run.runId, "absent");
    await t.clock.advance(250);
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "stop"]);
    await expectNothingLeft(t, "i");
  });

  test("when the process speaks for another session fails the launch for that reason", async () => {
    const { t, script, run, refusal } = await launching();
    script.stopsAtOnce = true;
    await run.identify("00000000-0000-4000-8000-000000000000");
    expect(await refusal).toMatchObject({
      category: "target_not_found",
      rollbackOccurred: true,
      details: { stage: "ownership_capture" },
    });
    expect(await run.accept()).toBe(false);
    await expectNothingLeft(t, "i");
  });
});

describe("a launch asked for again under its caller's id", () => {
  test("waits for the same answer while it is on its way, and starts nothing", async () => {
    const { t, script, run, assign } = await launching();
    const again = [assign(), assign()];
    await t.idle();
    expect(await refusalOf(t.owner.assign({ agent: "does", task: "other", id: "once" }))).toMatchObject({
      category: "invalid_request",
      reason: "id_reused",
    });
    await run.accept();
    for (const { requestId } of await Promise.all(again)) expect(requestId).toBe(run.requestId);
    expect((await assign()).requestId).toBe(run.requestId);
    expect(script.runs).toHaveLength(1);
  });

  test("waits for the end of a rollback too, and hears the same failure then and after a crash", async () => {
    const { t, script, run, assign, refusal, failure } = await launching();
    void run.failStart(failure);
    await until(() => run.orders.length > 1);
    let heard = false;
    const again = refusalOf(assign()).finally(() => (heard = true));
    await t.owner.list();
    expect(heard).toBe(false);
    await run.exit();
    const error = await refusal;
    expect(error).toMatchObject({ category: "target_not_found", rollbackOccurred: true });
    expect(told(await again)).toEqual(told(error));
    expect(told(await refusalOf(assign()))).toEqual(told(error));
    await t.crash();
    expect(told(await refusalOf(assign()))).toEqual(told(error));
    expect(script.runs).toHaveLength(1);
    await expectNothingLeft(t, "i");
    // As long as results are kept, and no longer.
    await t.clock.advance("31d");
    await t.idle();
    await expectNothingLeft(t);
    expect(await t.store.range({ gte: "t!", lt: "t~" })).toEqual([]);
  });

  /** Rolls a launch back; the process ends after the n-th batch of that is on disk, before anybody is told. */
  async function endingAfter(batch: number): Promise<boolean> {
    const plan = new FaultPlan();
    const { t, script, run, assign, refusal, failure } = await launching({ store: faultyStore(memoryStore(), plan) });
    script.stopsAtOnce = true;
    await t.idle();
    const held = plan.holdBatch({ after: batch, landed: true });
    void run.failStart(failure).catch(() => undefined);
    const ended = await Promise.race([held.reached.then(() => true), refusal.then(() => false)]);
    if (ended) await t.crash();
    held.release();
    await t.idle();
    const again = await refusalOf(assign());
    expect(again, `after batch ${batch}`).toMatchObject({ category: "target_not_found", rollbackOccurred: true });
    // What the process that died was waiting for.
    await t.clock.advance("2s");
    await expectNothingLeft(t, "i");
    return ended;
  }

  test("hears of a failure whichever batch of the rollback is the last before the process dies", async () => {
    let batch = 0;
    while (await endingAfter(batch)) batch++;
    expect(batch).toBeGreaterThan(1);
  });
});

describe("a launch during which this program ends", () => {
  test("before its start was even ordered is rolled back at once, as one whose process is proven absent", async () => {
    const directed = new FaultPlan();
    const passed: string[] = [];
    onTestFinished(watchFailpoints((name) => void passed.push(name)));
    const t = await createTestHerd({ agents, store: faultyStore(memoryStore(), directed) });
    const script = t.scripted("does");
    const held = directed.holdBatch({ landed: true });
    void t.owner.assign({ agent: "does", task: "A", id: "once" }).catch(() => undefined);
    await held.reached;
    expect(passed).not.toContain("launch.between");
    expect(script.runs).toEqual([]);
    await t.crash();
    held.release();
    await t.idle();
    const again = t.owner.assign({ agent: "does", task: "A", id: "once" });
    expect(await refusalOf(again)).toMatchObject({ category: "pane_not_ready", rollbackOccurred: true });
    expect(script.runs).toEqual([]);
    expect(passed).not.toContain("order.before");
    await expectNothingLeft(t, "i");
    // The point lies between the two steps of every launch.
    passed.length = 0;
    await t.owner.assign({ agent: "does", task: "B" });
    expect(passed.slice(passed.indexOf("launch.between"))).toEqual(
      expect.arrayContaining(["order.before", "order.after"]),
    );
    expect(passed).toContain("launch.between");
  });

  test("goes on with a fresh budget when its process lives", async () => {
    const { t, script, run, assign } = await launching();
    await t.clock.advance(299_000);
    await t.crash();
    await t.idle();
    const answer = assign();
    await t.clock.advance(299_000);
    expect(await statesOf(t)).toEqual(["does settling"]);
    // Told once more, as an order that nothing confirmed, with what is left of its budget.
    const starts = run.orders.filter(({ kind }) => kind === "start");
    expect(starts).toHaveLength(2);
    expect(starts[0]?.orderId).toBe(starts[1]?.orderId);
    expect(run.order("start").timeoutMs).toBe(300_000);
    await run.accept();
    expect((await answer).requestId).toBe(run.requestId);
    expect(script.runs).toHaveLength(1);
    expect(await statesOf(t)).toEqual(["does working"]);
  });

  test("is rolled back when its process is proven absent, and says so to who asks again", async () => {
    const { t, script, run, assign } = await launching();
    script.identities.set(run.runId, "absent");
    script.stopsAtOnce = true;
    await t.crash();
    await t.idle();
    expect(await refusalOf(assign())).toMatchObject({
      category: "pane_not_ready",
      rollbackOccurred: true,
      details: { stage: "agent_start" },
    });
    expect(run.orders.filter(({ kind }) => kind === "start")).toHaveLength(1);
    await expectNothingLeft(t, "i");
  });

  test("is unknown when nothing can be proved: nothing is started or stopped, and the label stays taken", async () => {
    const { t, script, run, assign } = await launching();
    script.identities.set(run.runId, "unprovable");
    await t.crash();
    await t.idle();
    const answer = assign();
    answer.catch(() => undefined);
    await t.clock.advance("1h");
    expect((await t.owner.list()).workers).toMatchObject([
      { label: "does", state: "unknown", steerable: false, diagnostic: expect.stringContaining("cannot prove") },
    ]);
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);
    expect(await refusalOf(t.owner.assign({ agent: "does", task: "B", label: "does" }))).toMatchObject({
      category: "worker_label_exists",
    });
    expect(await run.accept()).toBe(false);
    // Proved alive, it goes on with a fresh budget.
    script.identities.set(run.runId, "present");
    await t.clock.advance("30s");
    expect(await statesOf(t)).toEqual(["does settling"]);
    await run.accept();
    expect((await answer).requestId).toBe(run.requestId);
    expect(await statesOf(t)).toEqual(["does working"]);
  });

  test("that was unknown is rolled back once its process is proven absent", async () => {
    const { t, script, run, assign } = await launching();
    script.identities.set(run.runId, "unprovable");
    await t.crash();
    await t.idle();
    const answer = refusalOf(assign());
    script.identities.set(run.runId, "absent");
    script.stopsAtOnce = true;
    await t.clock.advance("30s");
    expect(await answer).toMatchObject({ category: "pane_not_ready", rollbackOccurred: true });
    await expectNothingLeft(t, "i");
  });
});

test("closing the herd during a launch answers its caller, and opening it again goes on with the launch", async () => {
  const { t, script, run, assign, refusal } = await launching();
  await t.herd.close({ graceMs: 0 });
  expect(await refusal).toMatchObject({ category: "internal_failure", reason: "herd_closed" });
  expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);
  await t.crash();
  await t.idle();
  await run.accept();
  expect((await assign()).requestId).toBe(run.requestId);
  expect(script.runs).toHaveLength(1);
});
