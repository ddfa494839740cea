import { describe, expect, test } from "vitest";
import type { ScriptedRun } from "pi-herd/testing";
import { asks, does, expectNothingLeft, herdOnDisk, keysOf, refusalOf, statesOf, until } from "./support.ts";

const agents = { asks, does, lead: { ...does, subagents: ["does"] } };

/** A worker in a process at work; its stop is carried out when the test says so. */
async function atWork(request: object = {}) {
  const t = await herdOnDisk({ agents });
  const script = t.scripted("does");
  script.stopsAtOnce = false;
  const handle = await t.owner.assign({ agent: "does", task: "A", ...request });
  const run = await script.run();
  await run.turn();
  return { t, script, run, handle, stops: () => run.orders.filter(({ kind }) => kind === "stop").length };
}

/** A parent in a process with children in processes, all at work. */
async function family(labels: readonly string[]) {
  const t = await herdOnDisk({ agents });
  const leads = t.scripted("lead");
  const script = t.scripted("does");
  await t.owner.assign({ agent: "lead", task: "A" });
  const lead = await leads.run();
  await lead.turn();
  const parts = new Map<string, ScriptedRun>();
  for (const label of labels) {
    await lead.subagent({ action: "assign", agent: "does", task: label, label });
    parts.set(label, await script.run(label));
    await parts.get(label)?.turn();
  }
  return { t, leads, script, lead, part: (label: string) => parts.get(label) as ScriptedRun };
}

describe("closing a parent in a process", () => {
  test("proves and stops its children before it, one after another", async () => {
    const { t, leads, script, lead, part } = await family(["one", "two"]);
    const order: string[] = [];
    const noting = (agent: typeof script) => {
      const receive = agent.receive.bind(agent);
      agent.receive = (given, host) => {
        if (given.kind === "stop") order.push(given.label);
        receive(given, host);
      };
    };
    noting(script);
    noting(leads);
    expect(await t.owner.close({ label: "lead" })).toEqual({ label: "lead" });
    expect(order).toEqual(["one", "two", "lead"]);
    expect(await part("one").settle("late")).toBe(false);
    expect(await lead.settle("late")).toBe(false);
    expect(t.owner.results).toEqual([]);
    await expectNothingLeft(t);
  });

  test("whose child does not stop names both, leaves the parent untouched, and what was closed stays closed", async () => {
    const { t, script, lead, part } = await family(["one", "two", "three"]);
    script.stopsAtOnce = false;
    const refusal = refusalOf(t.owner.close({ label: "lead" }));
    await until(() => part("one").orders.at(-1)?.kind === "stop");
    await part("one").exit();
    await until(() => part("two").orders.at(-1)?.kind === "stop");
    await part("two").failStop("the pane is locked");
    expect(await refusal).toMatchObject({
      category: "internal_failure",
      operation: "close",
      message: expect.stringContaining("the pane is locked"),
      ids: { label: "two", runId: part("two").runId },
      details: { parentLabel: "lead" },
      nextAction: expect.stringMatching(/\S/),
      rollbackOccurred: false,
    });
    expect(await statesOf(t)).toEqual(["lead working", "two closing", "three working"]);
    expect((await t.owner.list()).cleanupErrors).toEqual({ two: "the pane is locked" });
    expect(lead.orders.map(({ kind }) => kind)).toEqual(["start"]);
    // The parent is still at work: it may start another one meanwhile.
    expect(await lead.subagent({ action: "assign", agent: "does", task: "x", label: "four" })).toMatchObject({
      ok: true,
    });
    script.stopsAtOnce = true;
    await part("two").exit();
    await t.owner.close({ label: "lead" });
    await expectNothingLeft(t);
  });

  test("lets it start no other worker meanwhile", async () => {
    const { t, script, lead, part } = await family(["one"]);
    script.stopsAtOnce = false;
    const closed = t.owner.close({ label: "lead" });
    await until(() => part("one").orders.at(-1)?.kind === "stop");
    expect(await lead.subagent({ action: "assign", agent: "does", task: "B", label: "late" })).toMatchObject({
      ok: false,
      error: { category: "worker_busy", reason: "transition_pending" },
    });
    await part("one").exit();
    await closed;
    await expectNothingLeft(t);
  });

  test("whose child cannot be proved closes nothing", async () => {
    const { t, script, lead, part } = await family(["one"]);
    script.identities.set(part("one").runId, "unprovable");
    expect(await refusalOf(t.owner.close({ label: "lead" }))).toMatchObject({
      category: "target_not_found",
      ids: { label: "one" },
      details: { parentLabel: "lead" },
    });
    expect(await statesOf(t)).toEqual(["lead working", "one working"]);
    for (const run of [lead, part("one")]) expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);
    // It is no longer being closed: its child's result still reaches it.
    script.identities.set(part("one").runId, "present");
    await part("one").settle("done");
    expect(await lead.take()).toBe(true);
  });

  test("leaves nothing of its children's questions and results that it had not read", async () => {
    const { t, part } = await family(["one", "two"]);
    await part("one").ask("Which?");
    await part("one").endTurn();
    await part("two").settle("unread");
    await t.owner.close({ label: "lead" });
    expect(t.owner.questions).toEqual([]);
    expect(t.owner.results).toEqual([]);
    await expectNothingLeft(t);
  });
});

describe("closing a worker in a process", () => {
  test.each(["working", "asking", "ready", "lost"])("that is %s leaves nothing of it", async (how) => {
    const { t, script, run } = await atWork({ reusable: true });
    script.stopsAtOnce = true;
    if (how === "asking") await run.ask("Which?").then(() => run.endTurn());
    if (how === "ready") await run.settle("done").then(() => t.result());
    if (how === "lost") await run.die().then(() => run.die());
    await t.idle();
    await t.owner.close({ label: "does" });
    expect(await refusalOf(t.owner.close({ label: "does" }))).toMatchObject({ category: "target_not_found" });
    await expectNothingLeft(t);
  });

  test("whose process is already gone converges at once, without telling it anything", async () => {
    const { t, script, run, stops, handle } = await atWork();
    script.identities.set(run.runId, "absent");
    expect(await t.owner.close({ label: "does" })).toEqual({ label: "does" });
    expect(stops()).toBe(0);
    expect((await (await t.herd.assignment(handle.requestId)).result()).status).toBe("closed");
    await expectNothingLeft(t);
    await t.owner.assign({ agent: "does", task: "B", label: "does" });
    expect(await statesOf(t)).toEqual(["does working"]);
  });

  test("that what ends by itself while it is told to stop is closed by that", async () => {
    const { t, run, stops } = await atWork();
    const closing = t.owner.close({ label: "does" });
    await until(() => stops() > 0);
    await run.die();
    expect(await closing).toEqual({ label: "does" });
    await expectNothingLeft(t);
  });

  test("that nobody confirms for two seconds fails with what is known, is shown, and is tried until it is gone", async () => {
    const { t, script, run, stops } = await atWork();
    await run.identify(run.order("start").sessionId, { paneId: "pane-7" });
    const refusal = refusalOf(t.owner.close({ label: "does" }));
    await until(() => stops() > 0);
    await t.clock.advance(2_000);
    expect(await refusal).toMatchObject({
      category: "internal_failure",
      reason: "not_gone",
      ids: { label: "does", runId: run.runId, paneId: "pane-7" },
      message: expect.stringContaining("present"),
      retryAttempted: true,
    });
    expect((await t.owner.list()).workers).toMatchObject([
      { label: "does", state: "closing", cleanupError: expect.stringContaining("present") },
    ]);
    expect(await refusalOf(t.owner.assign({ agent: "does", task: "B", label: "does" }))).toMatchObject({
      category: "worker_label_exists",
    });
    await t.clock.advance(250);
    expect(stops()).toBe(2);
    script.identities.set(run.runId, "absent");
    await t.clock.advance(500);
    await expectNothingLeft(t);
    expect(t.owner.results).toEqual([]);
  });

  test("that leaves something behind succeeds and says so, in the answer and in the list, until it is tidied up", async () => {
    const { t, run, stops } = await atWork();
    const closing = t.owner.subagent({ action: "close", label: "does" });
    await until(() => stops() > 0);
    await run.exit("the folder of its prompts is not empty");
    expect(await closing).toEqual({
      ok: true,
      action: "close",
      label: "does",
      cleanup_error: "the folder of its prompts is not empty",
    });
    for (const again of ["now", "after a restart"]) {
      expect(await t.owner.list(), `${again}`).toMatchObject({
        workers: [],
        cleanupErrors: { does: "the folder of its prompts is not empty" },
      });
      await t.crash();
      await t.idle();
    }
    const before = stops();
    await t.clock.advance(500);
    expect(stops()).toBeGreaterThan(before);
    await run.exit();
    await expectNothingLeft(t);
    await t.clock.advance("1h");
    expect(run.orders.filter(({ kind }) => kind === "stop")).toHaveLength(stops());
  });
});

describe("the clean-up after a delivered result", () => {
  test("that fails three times is shown and tried again at its pauses, and the result is told once", async () => {
    const { t, run, stops } = await atWork();
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
    await until(() => stops() > 0);
    for (const [failed, pause] of [250, 500, 1_000].entries()) {
      await run.failStop(`busy ${failed}`);
      expect((await t.owner.list()).cleanupErrors).toEqual({ does: `busy ${failed}` });
      await t.clock.advance(pause - 1);
      expect(stops()).toBe(failed + 1);
      await t.clock.advance(1);
      expect(stops()).toBe(failed + 2);
    }
    await run.exit();
    await expectNothingLeft(t);
    await t.crash();
    await t.clock.advance("1h");
    expect(t.owner.results).toHaveLength(1);
    expect(stops()).toBe(4);
  });

  test("keeps the session from others until the process is proven gone, though the label is free at once", async () => {
    const { t, script, run } = await atWork();
    await run.identify(run.order("start").sessionId, { sessionPath: "/sessions/one.jsonl" });
    expect(await keysOf(t, "x")).toHaveLength(1);
    await run.settle("done");
    await t.result();
    await t.idle();
    expect((await t.owner.list()).workers).toEqual([]);
    expect(await keysOf(t, "lx")).toEqual([expect.stringMatching(/^x!/)]);
    await t.crash();
    await t.idle();
    await run.failStop("busy");
    expect(await keysOf(t, "x")).toHaveLength(1);
    await run.exit("a folder is left");
    expect(await keysOf(t, "x")).toEqual([]);
    await run.exit();
    await expectNothingLeft(t);
    // One whose process ends before its result is received lets go of both together.
    script.stopsAtOnce = true;
    const owner = t.herd.owner("parks");
    const handle = await owner.assign({ agent: "does", task: "B" });
    const next = script.runs.at(-1) as ScriptedRun;
    await next.identify(next.order("start").sessionId, { sessionPath: "/sessions/two.jsonl" });
    await next.turn();
    await next.settle("done");
    await t.idle();
    expect(await keysOf(t, "lx")).toHaveLength(2);
    await handle.result();
    await t.idle();
    expect(await keysOf(t, "lx")).toEqual([]);
  });

  test("goes on beside the next worker of that label, which it never touches", async () => {
    const { t, script, run } = await atWork();
    await run.settle("done");
    await t.result();
    await run.failStop("busy");
    await t.idle();
    await t.owner.assign({ agent: "does", task: "B", label: "does" });
    const next = script.runs.at(-1) as ScriptedRun;
    expect(next.runId).not.toBe(run.runId);
    await next.turn();
    await t.clock.advance(250);
    await t.crash();
    await t.idle();
    await run.exit();
    await t.idle();
    expect(next.orders.map(({ kind }) => kind)).toEqual(["start"]);
    expect(await statesOf(t)).toEqual(["does working"]);
    expect((await t.owner.list()).cleanupErrors).toBeUndefined();
    await next.settle("did B");
    expect((await t.result()).text).toBe("did B");
    await next.exit();
    await expectNothingLeft(t);
  });

  test("of a parent whose result was received takes its reusable children along", async () => {
    const { t, lead, script } = await family([]);
    await lead.subagent({ action: "assign", agent: "does", task: "x", label: "kept", reusable: true });
    const kept = await script.run("kept");
    await kept.turn();
    await kept.settle("part");
    await lead.take();
    await lead.settle("done");
    expect((await t.result()).text).toBe("done");
    await t.idle();
    expect(kept.orders.at(-1)?.kind).toBe("stop");
    await expectNothingLeft(t);
  });

  test("that waits for its proof hears of the end of the herd, and is told to stop again at the next start", async () => {
    const { t, run, stops } = await atWork();
    const refusal = refusalOf(t.owner.close({ label: "does" }));
    await until(() => stops() === 1);
    await t.herd.close({ graceMs: 0 });
    expect(await refusal).toMatchObject({ category: "internal_failure", reason: "herd_closed" });
    await t.crash();
    await until(() => stops() === 2);
    await run.exit();
    await expectNothingLeft(t);
  });
});

test("a backend that does not say within half a minute what runs proves nothing: the close is refused, and may be tried again", async () => {
  const { t, script, run, stops } = await atWork();
  script.answers = false;
  const closing = refusalOf(t.owner.close({ label: "does" }));
  await t.clock.advance("31s");
  expect(await closing).toMatchObject({ category: "target_not_found", reason: "identity_unproven" });
  expect(stops()).toBe(0);
  script.answers = true;
  script.stopsAtOnce = true;
  await t.owner.close({ label: run.label });
  await expectNothingLeft(t);
});
