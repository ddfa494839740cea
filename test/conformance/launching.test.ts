import { describe, expect, test } from "vitest";
import { createTestHerd, type ScriptedRun } from "pi-herd/testing";
import { does, expectNothingLeft, gate, keysOf, pausesOf, refusalOf, rowsOf, statesOf, until } from "./support.ts";

const agents = { does };

/** A launch that its backend has not accepted yet. */
async function launching(request: object = {}) {
  const t = await createTestHerd({ agents });
  const script = t.scripted("does");
  script.acceptsAtOnce = false;
  const assigned = t.owner.assign({ agent: "does", task: "A", ...request });
  assigned.catch(() => undefined);
  return { t, script, assigned, run: await script.run() };
}

/** The whole life of a worker that does its task. */
async function finish(run: ScriptedRun, text: string): Promise<void> {
  await run.turn();
  await run.settle(text);
}

describe("a launch", () => {
  test("answers its caller when its backend has accepted, and tells nothing of a request before", async () => {
    const { t, assigned, run } = await launching();
    let answered = false;
    void assigned.then(() => (answered = true));
    await t.idle();
    expect(answered).toBe(false);
    const requestId = run.requestId as string;
    await expect(t.herd.assignment(requestId)).rejects.toMatchObject({ category: "target_not_found" });
    expect(await keysOf(t, "q")).toEqual([]);
    const rows = (await t.owner.list()).workers;
    expect(rows).toMatchObject([{ label: "does", state: "settling", steerable: false }]);
    expect(await run.accept({ paneId: "pane-7" })).toBe(true);
    const handle = await assigned;
    expect(handle.requestId).toBe(requestId);
    expect((await (await t.herd.assignment(requestId)).status()).state).toBe("working");
    expect(await keysOf(t, "qt")).toEqual([`q!${requestId}`]);
    expect((await t.owner.list()).workers).toMatchObject([{ label: "does", state: "working", paneId: "pane-7" }]);
    // Accepting again changes nothing.
    expect(await run.accept({ paneId: "pane-8" })).toBe(false);
    await finish(run, "done");
    expect((await t.result()).text).toBe("done");
    await expectNothingLeft(t);
  });

  test("takes no steer, no reply, no close and no other task before it is accepted, and loses none of them", async () => {
    const { t, assigned, run } = await launching({ reusable: true });
    for (const call of [
      t.owner.steer({ label: "does", message: "hurry" }),
      t.owner.reply({ label: "does", message: "yes" }),
      t.owner.close({ label: "does" }),
      t.owner.assign({ label: "does", task: "B" }),
    ]) {
      expect(await refusalOf(call)).toMatchObject({ category: "worker_busy", nextAction: expect.stringMatching(/\S/) });
    }
    // A result, a question and a call of the tool need an accepted task too.
    expect(await run.turn()).toBe(false);
    expect(await run.settle("early")).toBe(false);
    await expect(run.ask("Which?")).rejects.toMatchObject({ category: "worker_busy" });
    await run.accept();
    await assigned;
    await run.turn();
    await t.owner.steer({ label: "does", message: "hurry" });
    await t.idle();
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "steer"]);
    expect(t.owner.results).toEqual([]);
  });

  test("lets its deadline begin with the acceptance; once that is over its process is stopped and its owner told", async () => {
    const { t, assigned, run } = await launching({ deadlineMs: 60_000 });
    await t.clock.advance("2m");
    expect(await statesOf(t)).toEqual(["does settling"]);
    await run.accept();
    const { requestId } = await assigned;
    await run.turn();
    await t.clock.advance(59_999);
    expect(await statesOf(t)).toEqual(["does working"]);
    await t.clock.advance(1);
    expect(await t.result()).toMatchObject({ requestId, status: "failed", error: { code: "deadline_exceeded" } });
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "stop"]);
    await expectNothingLeft(t, "e");
  });

  test("of twenty at once gives every worker its own task and every caller its own answer", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    script.acceptsAtOnce = false;
    const tasks = Array.from({ length: 20 }, (_, index) => `task ${index}`);
    const assigned = tasks.map((task) => t.owner.assign({ agent: "does", task }));
    await t.idle();
    expect(script.runs).toHaveLength(20);
    expect(new Set(script.runs.map(({ label }) => label)).size).toBe(20);
    for (const run of script.runs.toReversed()) await run.accept();
    const handles = await Promise.all(assigned);
    for (const [index, { requestId, label }] of handles.entries()) {
      const run = script.runs.find((candidate) => candidate.requestId === requestId) as ScriptedRun;
      expect(run.order("start")).toMatchObject({ task: tasks[index], label });
      await finish(run, `did ${run.order("start").task}`);
    }
    await t.idle();
    expect(t.owner.results.map(({ text }) => text)).toEqual(tasks.map((task) => `did ${task}`));
    expect(t.owner.results.map(({ requestId }) => requestId)).toEqual(handles.map(({ requestId }) => requestId));
    await expectNothingLeft(t);
  });
});

describe("the budget of a launch", () => {
  test.each([
    [{ timeoutMs: 6_000 }, 4_000],
    [{ timeoutMs: 5_001 }, 3_001],
    [{}, 300_000],
  ])("of %j leaves its start %d ms, then it fails with its stage and is rolled back", async (request, budget) => {
    const { t, script, assigned, run } = await launching(request);
    script.screen = "still loading";
    expect(run.order("start").timeoutMs).toBe(budget);
    await t.clock.advance(budget - 1);
    expect(await statesOf(t)).toEqual(["does settling"]);
    await t.clock.advance(1);
    expect(await refusalOf(assigned)).toMatchObject({
      category: "pane_not_ready",
      operation: "assign",
      rollbackOccurred: true,
      retryAttempted: false,
      ids: { label: "does", runId: run.runId },
      details: { stage: "agent_result", paneSnapshot: "still loading" },
      message: expect.stringContaining(`${budget} ms`),
    });
    expect(script.looks).toBe(1);
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "stop"]);
    // What comes too late is not heard.
    expect(await run.accept()).toBe(false);
    await expectNothingLeft(t);
  });

  test("ends with the acceptance: a worker that takes its time afterwards is left alone", async () => {
    const { t, assigned, run } = await launching({ timeoutMs: 6_000 });
    await t.clock.advance(3_999);
    await run.accept();
    await assigned;
    await t.clock.advance("1h");
    expect(await statesOf(t)).toEqual(["does working"]);
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);
  });
});

describe("a start", () => {
  const screen = Array.from({ length: 60 }, (_, line) => `line ${line} ${"é".repeat(200)}`).join("\n");

  test.each(["empty", "malformed"] as const)(
    "that answers something %s gets one bounded look, is rolled back with proof, and tried again makes one worker",
    async (output) => {
      const { t, script, assigned, run } = await launching();
      script.screen = screen;
      await run.failStart({ stage: "agent_start", output });
      const failure = await refusalOf(assigned);
      expect(failure).toMatchObject({
        category: "pane_not_ready",
        rollbackOccurred: true,
        retryAttempted: false,
        details: { stage: "agent_start", classification: output },
      });
      const { paneSnapshot } = failure.details as { paneSnapshot: string };
      expect(Buffer.byteLength(paneSnapshot)).toBeLessThanOrEqual(8_192);
      expect(Buffer.byteLength(paneSnapshot)).toBeGreaterThan(8_000);
      expect(paneSnapshot.split("\n").length).toBeLessThanOrEqual(40);
      expect(screen.endsWith(paneSnapshot)).toBe(true);
      expect(script.looks).toBe(1);
      expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "stop"]);
      await expectNothingLeft(t);
      script.acceptsAtOnce = true;
      await t.owner.assign({ agent: "does", task: "A", label: "does" });
      await t.idle();
      expect(script.runs).toHaveLength(2);
      expect(await statesOf(t)).toEqual(["does working"]);
      // The first start has nothing more to say.
      expect(await run.failStart({ stage: "agent_start", output })).toBe(false);
      expect(await statesOf(t)).toEqual(["does working"]);
    },
  );

  test("is looked at for forty lines at most", async () => {
    const { script, assigned, run } = await launching();
    script.screen = Array.from({ length: 60 }, (_, line) => `line ${line}`).join("\n");
    await run.failStart({ stage: "pane_readiness", output: "empty" });
    const { paneSnapshot } = (await refusalOf(assigned)).details as { paneSnapshot: string };
    expect(paneSnapshot.split("\n")).toEqual(Array.from({ length: 40 }, (_, line) => `line ${line + 20}`));
  });

  test.each([
    "not_running_inside_herdr",
    "target_not_found",
    "target_ambiguous",
    "worker_busy",
    "invalid_request",
    "internal_failure",
    "pane_not_ready",
  ] as const)("that failed as %s says so to the caller, without a look", async (category) => {
    const { t, script, assigned, run } = await launching();
    await run.failStart({ stage: "topology", category, message: "no such session file" });
    expect(await refusalOf(assigned)).toMatchObject({
      category,
      message: expect.stringContaining("no such session file"),
      rollbackOccurred: true,
      details: { stage: "topology" },
    });
    expect(script.looks).toBe(0);
    await expectNothingLeft(t);
  });

  test("that failed as nothing known, or whose process ends, is pane_not_ready", async () => {
    const first = await launching();
    await first.run.failStart({ stage: "ownership_capture", category: "EPERM", message: "denied" });
    expect(await refusalOf(first.assigned)).toMatchObject({
      category: "pane_not_ready",
      details: { stage: "ownership_capture" },
    });
    const second = await launching();
    await second.run.die();
    expect(await refusalOf(second.assigned)).toMatchObject({
      category: "pane_not_ready",
      rollbackOccurred: true,
      details: { stage: "agent_start" },
    });
    await expectNothingLeft(second.t);
  });

  test("whose look never ends is answered when the reserve is over, and leaves no pause behind", async () => {
    const { t, script, assigned, run } = await launching();
    Object.defineProperty(script, "screen", { get: () => new Promise(() => undefined) });
    void run.failStart({ stage: "agent_start", output: "empty" });
    await t.clock.advance(2_000);
    expect((await refusalOf(assigned)).details).toEqual({ stage: "agent_start", classification: "empty" });
    expect(pausesOf(t)).toBe(0);
  });

  test("at which the backend throws is tried again within the budget", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    const receive = script.receive.bind(script);
    let busy = 2;
    script.receive = (...order) => {
      if (busy-- > 0) throw new Error("pane busy");
      receive(...order);
    };
    const assigned = t.owner.assign({ agent: "does", task: "A", timeoutMs: 6_000 });
    await t.clock.advance("2s");
    const { requestId } = await assigned;
    expect(script.runs.map((run) => run.requestId)).toEqual([requestId]);
    expect(script.runs[0]?.orders.map(({ kind }) => kind)).toEqual(["start"]);
  });

  test("at which the backend throws for ever is pane_not_ready, and nothing is started afterwards", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    const receive = script.receive.bind(script);
    let busy = true;
    script.receive = (order, host) => {
      if (!busy) return receive(order, host);
      script.identities.set(order.runId, "absent");
      throw new Error("pane busy");
    };
    const { signal, abort } = abortable();
    const assigned = t.owner.assign({ agent: "does", task: "A", timeoutMs: 6_000 });
    const refusal = refusalOf(assigned);
    await t.clock.advance("4s");
    await t.clock.advance("2s");
    expect(await refusal).toMatchObject({ category: "pane_not_ready", details: { stage: "agent_result" } });
    await expectNothingLeft(t);
    // Nor when the caller gives up while the start waits to be tried again.
    const aborted = t.owner.assign({ agent: "does", task: "B", signal });
    aborted.catch(() => undefined);
    await t.idle();
    abort();
    busy = false;
    await t.clock.advance("2s");
    await t.clock.advance("2s");
    await expect(aborted).rejects.toThrow("enough");
    expect(script.runs.flatMap(({ orders }) => orders.map(({ kind }) => kind))).not.toContain("start");
    await expectNothingLeft(t);
  });
});

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort(new Error("enough")) };
}

describe("a caller that gives up", () => {
  test("before the acceptance has the launch rolled back on a signal of its own, and hears its own reason", async () => {
    const { signal, abort } = abortable();
    const { t, script, assigned, run } = await launching({ signal });
    script.stopsAtOnce = false;
    abort();
    await until(() => run.orders.length > 1);
    // The stop goes on although the caller's signal is over.
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "stop"]);
    expect(await statesOf(t)).toEqual(["does closing"]);
    await run.exit();
    await expect(assigned).rejects.toThrow("enough");
    expect(script.looks).toBe(0);
    expect(pausesOf(t)).toBe(0);
    await t.clock.advance("10m");
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "stop"]);
    await expectNothingLeft(t);
  });

  test("before it began starts nothing", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    const before = await rowsOf(t);
    await expect(
      t.owner.assign({ agent: "does", task: "A", signal: AbortSignal.abort(new Error("no")) }),
    ).rejects.toThrow("no");
    expect(script.runs).toEqual([]);
    expect(await rowsOf(t)).toBe(before);
  });

  test("after the acceptance only stops waiting: the worker keeps running", async () => {
    const { signal, abort } = abortable();
    const { t, assigned, run } = await launching({ signal });
    await run.accept();
    const handle = await assigned;
    const ended = handle.result({ signal });
    abort();
    await expect(ended).rejects.toThrow("enough");
    await t.idle();
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);
    await finish(run, "done");
    expect((await t.result()).text).toBe("done");
    await expectNothingLeft(t);
  });

  test("in the moment of the acceptance keeps the accepted worker", async () => {
    const { signal, abort } = abortable();
    const { t, assigned, run } = await launching({ signal });
    const accepted = run.accept();
    abort();
    expect(await accepted).toBe(true);
    expect((await assigned).requestId).toBe(run.requestId);
    await t.idle();
    expect(await statesOf(t)).toEqual(["does working"]);
  });

  test("does not roll back what another caller waits for under the same id", async () => {
    const { signal, abort } = abortable();
    const { t, assigned, run } = await launching({ id: "once" });
    const again = t.owner.assign({ agent: "does", task: "A", id: "once", signal });
    again.catch(() => undefined);
    await t.idle();
    abort();
    await expect(again).rejects.toThrow("enough");
    await t.idle();
    expect(await statesOf(t)).toEqual(["does settling"]);
    await run.accept();
    expect((await assigned).requestId).toBe(run.requestId);
  });
});

test("a launch that comes while the herd closes is refused, and nothing of it is stored", async () => {
  const held = gate();
  const t = await createTestHerd({
    agents: { does, waits: { description: "waits", run: () => held.opened.then(() => "x") } },
  });
  const script = t.scripted("does");
  await t.owner.assign({ agent: "waits", task: "x" });
  // Its file is still being read when the herd begins to close.
  const refusal = refusalOf(t.owner.assign({ agent: "does", task: "A", files: [import.meta.filename] }));
  await t.herd.close({ graceMs: 50 });
  expect(await refusal).toMatchObject({ category: "internal_failure", reason: "herd_closed" });
  held.open();
  await t.crash();
  expect(await keysOf(t, "lwx")).toEqual([]);
  expect(script.runs).toEqual([]);
});
