import { describe, expect, test } from "vitest";
import { does, expectNothingLeft, herdOnDisk, keysOf, refusalOf, statesOf } from "./support.ts";

const agents = { does };
const foreign = "00000000-0000-4000-8000-000000000000";

async function atWork(request: object = {}) {
  const t = await herdOnDisk({ agents });
  const script = t.scripted("does");
  await t.owner.assign({ agent: "does", task: "A", ...request });
  const run = await script.run();
  await run.turn();
  const { sessionId } = run.order("start");
  return { t, script, run, sessionId };
}

describe("a process that speaks for another session", () => {
  test("makes its worker unknown: nothing that it reports counts, and nothing is said to it", async () => {
    const { t, run } = await atWork({ reusable: true });
    expect(await run.identify(foreign)).toBe(false);
    await t.idle();
    expect((await t.owner.list()).workers).toMatchObject([
      { label: "does", state: "unknown", steerable: false, diagnostic: expect.stringContaining(foreign) },
    ]);
    for (const report of [
      run.turn(),
      run.tool("read"),
      run.endTurn(),
      run.settle("not mine"),
      run.late({ type: "activity" }, run.requestId),
    ]) {
      expect(await report).toBe(false);
    }
    await expect(run.ask("Which?")).rejects.toMatchObject({ reason: "state_not_eligible" });
    expect(await run.subagent({ action: "list" })).toMatchObject({
      ok: false,
      error: { category: "target_not_found", operation: "list" },
    });
    for (const call of [
      t.owner.steer({ label: "does", message: "x" }),
      t.owner.reply({ label: "does", message: "x" }),
      t.owner.assign({ label: "does", task: "B" }),
    ]) {
      expect(await refusalOf(call)).toMatchObject({ category: "worker_busy" });
    }
    // However often and however long after it is looked at, and after a restart.
    await t.clock.advance("1h");
    await t.crash();
    await t.clock.advance("1h");
    expect(await statesOf(t)).toEqual(["does unknown"]);
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);
    expect(t.owner.results).toEqual([]);
  });

  test("is not stopped by a close: that needs proof of what runs", async () => {
    const { t, script, run, sessionId } = await atWork();
    await run.identify(foreign, { paneId: "pane-of-another" });
    await t.idle();
    for (const identity of ["present", "unprovable"] as const) {
      script.identities.set(run.runId, identity);
      expect(await refusalOf(t.owner.close({ label: "does" }))).toMatchObject({
        category: "target_not_found",
        reason: "identity_unproven",
        ids: { label: "does", runId: run.runId },
        nextAction: expect.stringMatching(/\S/),
      });
    }
    expect(await statesOf(t)).toEqual(["does unknown"]);
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);
    script.identities.set(run.runId, "present");
    await run.identify(sessionId);
    await t.owner.close({ label: "does" });
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "stop"]);
    await expectNothingLeft(t);
  });

  test("that speaks for its own session later is that worker again, and its work goes on", async () => {
    const { t, run, sessionId } = await atWork();
    await t.owner.steer({ label: "does", message: "also this" });
    await run.identify(foreign);
    await t.idle();
    run.orders.length = 0;
    expect(await run.identify(sessionId, { paneId: "pane-7", model: "m" })).toBe(true);
    await t.idle();
    expect((await t.owner.list()).workers).toMatchObject([
      { label: "does", state: "working", steerable: true, paneId: "pane-7", model: "m" },
    ]);
    expect((await t.owner.list()).workers[0]).not.toHaveProperty("diagnostic");
    // What is not confirmed is said again.
    expect(run.orders.map(({ kind }) => kind)).toEqual(["steer"]);
    await run.hear();
    expect(await run.settle("done")).toBe(true);
    expect((await t.result()).text).toBe("done");
    await expectNothingLeft(t);
  });

  test("and is then proven gone is started again, as itself", async () => {
    const { t, run } = await atWork();
    await run.identify(foreign);
    await t.idle();
    await run.die();
    await t.idle();
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "resume"]);
    expect(await statesOf(t)).toEqual(["does working"]);
    await run.turn();
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
  });

  test("and is gone when the store is opened, having begun nothing, is started again a second time", async () => {
    const t = await herdOnDisk({ agents });
    const script = t.scripted("does");
    const { requestId } = await t.owner.assign({ agent: "does", task: "A" });
    const run = await script.run();
    await run.die();
    await run.identify(foreign);
    await t.idle();
    script.identities.set(run.runId, "absent");
    await t.crash();
    await t.idle();
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "start", "start"]);
    expect(await statesOf(t)).toEqual(["does working"]);
    await run.turn();
    await run.settle("done");
    expect(await t.result()).toMatchObject({ requestId, text: "done" });
    await expectNothingLeft(t);
  });

  test.each(["absent", "present"] as const)(
    "while it waits for its owner, and is %s when the store is opened, takes the reply in the end",
    async (identity) => {
      const { t, script, run, sessionId } = await atWork();
      await run.ask("Which?");
      await run.endTurn();
      const question = await t.question();
      await run.identify(foreign);
      await t.idle();
      script.identities.set(run.runId, identity);
      await t.crash();
      await t.idle();
      expect(await statesOf(t)).toEqual([identity === "present" ? "does unknown" : "does blocked"]);
      if (identity === "present") await run.identify(sessionId);
      await t.idle();
      expect(await statesOf(t)).toEqual(["does blocked"]);
      expect(await keysOf(t, "o")).toEqual([]);
      await t.owner.reply({ askId: question.askId, message: "this" });
      await t.idle();
      expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "answer"]);
      expect("launch" in run.order("answer")).toBe(identity === "absent");
      await run.turn();
      await run.settle("done");
      expect((await t.result()).text).toBe("done");
      await expectNothingLeft(t);
    },
  );

  test("never makes a reusable worker ready", async () => {
    const { t, run, sessionId } = await atWork({ reusable: true });
    await run.settle("done");
    await t.result();
    await t.idle();
    await run.identify(foreign);
    await t.idle();
    expect(await statesOf(t)).toEqual(["does unknown"]);
    expect(await refusalOf(t.owner.assign({ label: "does", task: "B" }))).toMatchObject({ category: "worker_busy" });
    await run.identify(sessionId);
    await t.owner.assign({ label: "does", task: "B" });
    expect(run.order("task")).toMatchObject({ task: "B" });
  });
});

describe("a process of which nothing can be proved", () => {
  test("when the store is opened is left alone until it can be, and is looked for every thirty seconds", async () => {
    const { t, script, run } = await atWork();
    script.identities.set(run.runId, "unprovable");
    await t.crash();
    await t.idle();
    expect(await statesOf(t)).toEqual(["does unknown"]);
    expect(await run.settle("unproved")).toBe(false);
    expect(await refusalOf(t.owner.close({ label: "does" }))).toMatchObject({ category: "target_not_found" });
    await t.clock.advance("29s");
    script.identities.set(run.runId, "present");
    expect(await statesOf(t)).toEqual(["does unknown"]);
    await t.clock.advance("30s");
    expect(await statesOf(t)).toEqual(["does working"]);
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
  });

  test("is never stale, and its silence is told to nobody", async () => {
    const { t, run } = await atWork();
    const stale: string[] = [];
    t.herd.on("stale", ({ label }) => stale.push(label));
    await run.identify(foreign);
    await t.clock.advance("11m");
    expect(stale).toEqual([]);
    expect((await t.owner.list()).workers[0]).not.toHaveProperty("stale");
  });
});

describe("the signs of life of a process", () => {
  test("are written every five seconds at most, and whenever the clock went backwards", async () => {
    const { t, run } = await atWork();
    const activity = () => run.late({ type: "activity" }, run.requestId);
    const lastSign = async () => Date.parse((await t.owner.list()).workers[0]?.lastActivityAt ?? "");
    const start = t.clock.now().getTime();
    await t.clock.advance(4_999);
    expect(await activity()).toBe(true);
    expect(await run.tool("read")).toBe(true);
    expect(await lastSign()).toBe(start);
    await t.clock.advance(1);
    await activity();
    expect(await lastSign()).toBe(start + 5_000);
    for (let second = 1; second <= 20; second++) {
      await t.clock.advance(1_000);
      await activity();
      expect(await lastSign()).toBe(start + 5_000 + Math.floor(second / 5) * 5_000);
    }
    await t.clock.advance("-1h");
    const back = t.clock.now().getTime();
    await activity();
    expect(await lastSign()).toBe(back);
    // The start of a turn is written at once.
    await run.endTurn();
    await t.clock.advance(1_000);
    await run.turn();
    expect(await lastSign()).toBe(back + 1_000);
    await run.settle("done");
    await t.result();
    await expectNothingLeft(t);
  });
});

test("a refusal names the state that the list shows: a lost worker is unknown, not ready", async () => {
  const { t, run } = await atWork({ reusable: true, label: "one" });
  await run.settle("done");
  await t.result();
  await t.idle();
  await run.die();
  expect(await statesOf(t)).toEqual(["one unknown"]);
  const error = await refusalOf(t.owner.assign({ label: "one", task: "B" }));
  expect(error).toMatchObject({ category: "worker_busy", details: { state: "unknown" } });
  expect(error.message).toContain("it is unknown");
  expect(error.nextAction).toContain("close it");
  expect((await refusalOf(t.owner.steer({ label: "one", message: "x" }))).message).toContain('"one" is unknown');
  expect((await refusalOf(t.owner.reply({ label: "one", message: "x" }))).message).toContain('"one" is unknown');
});
