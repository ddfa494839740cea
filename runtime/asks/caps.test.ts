import { describe, expect, test } from "vitest";
import { faultyStore, FaultPlan } from "../store/faulty.ts";
import { memoryStore } from "../store/memory.ts";
import { open, owner, parked, scripts, start, subject } from "../../test/support/asks.ts";

describe("the cap", () => {
  test("refuses one ask more by name, whichever kind, and an answer makes room", async () => {
    const t = await open({ maxConcurrentCaller: 2 });
    await start(t, [{ question: "1?" }]);
    await owner(t).assign({ agent: "both", task: "A" });
    const third = await start(t, [{ question: "3?" }]);
    expect(await third.result()).toMatchObject({
      status: "failed",
      error: { message: expect.stringMatching(/maxConcurrentCaller.*max_concurrent_caller.*2/) },
    });
    expect((await parked(t)).map(({ question }) => question)).toEqual(["1?", "owner?"]);
    await owner(t).reply({ label: "asks", message: "x" });
    await t.idle();
    await start(t, [{ question: "4?" }]);
    // What runs came to waits, counts, and was never refused.
    expect((await parked(t)).map(({ question, status }) => question ?? status)).toEqual([
      "owner?",
      "finished",
      "failed",
    ]);
    while (await t.herd.take(subject));
    await start(t, [{ question: "5?" }]);
    expect((await parked(t)).map(({ question }) => question)).toEqual(["owner?", "5?"]);
  });

  test("holds after a restart, and counts no ask that has expired but was not dealt with", async () => {
    const t = await open({ maxConcurrentCaller: 1, tickMs: 0 });
    await start(t, [{ question: "1?", expiresAt: "2026-03-01T08:00:00Z" }]);
    await t.crash();
    await start(t, [{ question: "2?" }]);
    expect((await parked(t)).map(({ question }) => question)).toEqual(["1?", "2?"]);
    await t.crash();
    expect((await (await start(t, [{ question: "3?" }])).result()).status).toBe("failed");
  });

  test("counts nothing of what was asked and closed before either could be stored", async () => {
    const plan = new FaultPlan();
    const store = faultyStore(memoryStore(), plan);
    const t = await open({ store, maxConcurrentCaller: 1, reopen: { attempts: 1, pauseMs: 0 } });
    await start(t, [{ question: "0?" }]);
    await owner(t).reply({ label: "asks", message: "x" });
    await t.herd.take(subject);
    await t.idle();
    // The first batch is the assignment, the second the ask.
    const batch = plan.holdBatch({ after: 1 });
    scripts.set("1", [{ question: "1?" }]);
    await owner(t).assign({ agent: "asks", task: "1" });
    await batch.reached;
    const closed = owner(t)
      .close({ label: "asks" })
      .catch((error: unknown) => error);
    await new Promise((resolve) => setImmediate(resolve));
    // Each fails, also at its second try and alone; what is empty can be written in between.
    plan.failBatches(2, { after: -1 });
    plan.failBatches(1, { after: 2 });
    batch.release();
    expect(await closed).toMatchObject({ reason: "undone" });
    await t.idle();
    while (await t.herd.take(subject));
    await start(t, [{ question: "2?" }]);
    expect(await parked(t)).toMatchObject([{ question: "2?" }]);
  });

  test("is one for programs and one for people, and none for owner ids", async () => {
    const t = await open({ maxConcurrentCaller: 1, maxConcurrent: 1 });
    await start(t, [{ question: "1?" }]);
    await start(t, [{ question: "2?", to: "user" }]);
    expect((await (await start(t, [{ question: "3?", to: "user" }])).result()).error?.message).toMatch(
      /maxConcurrent /,
    );
    scripts.set("mine", [{ question: "mine?" }]);
    await t.herd.owner("ada").assign({ agent: "asks", task: "mine" });
    await t.herd.owner("ada").assign({ agent: "asks", task: "mine" });
    await t.idle();
    expect(await t.herd.owner("ada").parked()).toHaveLength(2);
  });
});
