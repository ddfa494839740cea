import { describe, expect, test } from "vitest";
import { createTestHerd, FaultPlan, faultyStore, memoryStore } from "pi-herd/testing";
import { does, expectNothingLeft, herdOnDisk, keysOf, refusalOf, statesOf } from "./support.ts";

const agents = { does };

/** A worker in a process that has begun its first turn. */
async function atWork(request: object = {}) {
  const t = await herdOnDisk({ agents });
  const script = t.scripted("does");
  const lost: string[] = [];
  t.herd.on("lost", ({ label }) => lost.push(label));
  const handle = await t.owner.assign({ agent: "does", task: "A", ...request });
  const run = await script.run();
  await run.turn();
  const kinds = () => run.orders.map(({ kind }) => kind);
  return { t, script, run, handle, lost, kinds };
}

/** The two ways in which the end of a process comes to be known. */
const ways = [
  ["while the herd is open", false],
  ["when the store is opened again", true],
] as const;

/** Ends the worker's process, known at once or after a restart of this program. */
async function die({ t, script, run }: Awaited<ReturnType<typeof atWork>>, later: boolean): Promise<void> {
  if (later) {
    script.identities.set(run.runId, "absent");
    await t.crash();
  } else {
    await run.die();
  }
  await t.idle();
}

describe.each(ways)("a process that ends unasked, found out %s,", (_when, later) => {
  test("is started again from its session under the same run, request and label, and told to go on", async () => {
    const it = await atWork();
    const { t, run, handle, kinds } = it;
    await die(it, later);
    expect(kinds()).toEqual(["start", "resume"]);
    expect(run.order("resume")).toMatchObject({
      runId: run.runId,
      requestId: handle.requestId,
      label: "does",
      agent: "does",
      sessionId: handle.sessionId,
      cwd: run.order("start").cwd,
    });
    expect(await statesOf(t)).toEqual(["does working"]);
    expect(t.owner.results).toEqual([]);
    await run.turn();
    await run.settle("done after all");
    expect(await t.result()).toMatchObject({ requestId: handle.requestId, text: "done after all" });
    await expectNothingLeft(t);
  });

  test("is told what its session may not hold yet: the task, and the last answer once there is one", async () => {
    const before = await atWork();
    await die(before, later);
    const { task } = before.run.order("start");
    expect(before.run.order("resume")).toMatchObject({ task, files: [] });
    expect(before.run.order("resume")).not.toHaveProperty("answer");

    const it = await atWork();
    const { t, run } = it;
    for (const [question, reply] of [
      ["Which?", "this"],
      ["How?", "slowly"],
    ] as const) {
      await run.ask(question);
      await run.endTurn();
      await (await t.question()).reply(reply);
      await t.idle();
      await run.turn();
    }
    await die(it, later);
    const { askId } = t.owner.questions.at(-1) ?? {};
    expect(run.order("resume")).toMatchObject({ task, answer: { askId, message: "slowly", files: [] } });
  });

  test("before it began its task is given that task again", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "does", task: "A" });
    const run = await script.run();
    await die({ t, script, run } as never, later);
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "start"]);
    expect(run.order("start")).toMatchObject({ task: "A", timeoutMs: 300_000 });
    await run.turn();
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
    await expectNothingLeft(t);
  });

  test("after it asked and ended its turn is started only when the reply comes, with the answer", async () => {
    const it = await atWork();
    const { t, run, kinds } = it;
    await run.ask("Which?");
    await run.endTurn();
    const question = await t.question();
    await die(it, later);
    await t.clock.advance("1h");
    expect(kinds()).toEqual(["start"]);
    expect(await statesOf(t)).toEqual(["does blocked"]);
    await t.owner.reply({ askId: question.askId, message: "this" });
    await t.idle();
    expect(kinds()).toEqual(["start", "answer"]);
    expect(run.order("answer")).toMatchObject({ message: "this", launch: { sessionId: run.order("start").sessionId } });
    await run.turn();
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
    expect(t.owner.questions).toHaveLength(1);
    await expectNothingLeft(t);
  });

  test("in the turn that asks is blocked at once, and started only when the reply comes", async () => {
    const it = await atWork();
    const { t, run, kinds } = it;
    await run.ask("Which?");
    await die(it, later);
    expect(await statesOf(t)).toEqual(["does blocked"]);
    expect(kinds()).toEqual(["start"]);
    await (await t.question()).reply("this");
    await t.idle();
    expect(run.orders.at(-1)).toMatchObject({ kind: "answer", message: "this", launch: { agent: "does" } });
    await run.turn();
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
  });

  test("in the turn whose question is answered already is started again with that answer", async () => {
    const it = await atWork();
    const { t, run, kinds } = it;
    await run.ask("Which?");
    await (await t.question()).reply("this");
    expect(kinds()).toEqual(["start"]);
    await die(it, later);
    expect(kinds()).toEqual(["start", "answer"]);
    expect(run.orders.at(-1)).toMatchObject({ message: "this", launch: { agent: "does" } });
    expect(await statesOf(t)).toEqual(["does working"]);
    await run.turn();
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
  });

  test("with a steer that it did not confirm has it repeated to the next one, once that is at work", async () => {
    const it = await atWork();
    const { t, run, kinds } = it;
    const { steerId } = await t.owner.steer({ label: "does", message: "also this" }).then(({ requestId }) => ({
      steerId: requestId,
    }));
    await t.idle();
    expect(kinds()).toEqual(["start", "steer"]);
    await die(it, later);
    expect(kinds()).toEqual(["start", "steer", "resume"]);
    await run.turn();
    await t.idle();
    expect(kinds()).toEqual(["start", "steer", "resume", "steer"]);
    expect(run.orders.at(-1)).toMatchObject({ message: "also this", orderId: run.orders[1]?.orderId });
    expect(steerId).toMatch(/\S/);
    await run.hear();
    await run.settle("done");
    await t.result();
    await expectNothingLeft(t);
  });

  test("twice before a turn is over ends its assignment as worker_lost, told once", async () => {
    const it = await atWork();
    const { t, handle, lost, run, kinds } = it;
    await die(it, false);
    await run.turn();
    t.herd.on("lost", ({ label }) => lost.push(label));
    if (later) lost.length = 0;
    await die(it, later);
    expect(kinds().filter((kind) => kind === "resume")).toHaveLength(1);
    const result = await t.result();
    expect(result).toMatchObject({ requestId: handle.requestId, status: "failed", error: { code: "worker_lost" } });
    await t.idle();
    await t.crash();
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
    expect(await run.turn()).toBe(false);
    expect(await run.settle("resurrected")).toBe(false);
    await expectNothingLeft(t);
    await t.owner.assign({ agent: "does", task: "B", label: "does" });
    expect(await statesOf(t)).toEqual(["does working"]);
  });

  test("while its worker is ready makes it unknown: it takes no task, is not started, and can be closed", async () => {
    const it = await atWork({ reusable: true });
    const { t, run, script, kinds } = it;
    await run.settle("done");
    await t.result();
    await t.idle();
    expect(await statesOf(t)).toEqual(["does ready"]);
    script.identities.set(run.runId, "absent");
    await die(it, later);
    expect((await t.owner.list()).workers).toMatchObject([
      { label: "does", state: "unknown", steerable: false, diagnostic: expect.stringContaining("process is gone") },
    ]);
    expect(await refusalOf(t.owner.assign({ label: "does", task: "B" }))).toMatchObject({ category: "worker_busy" });
    await t.clock.advance("1h");
    expect(kinds()).toEqual(["start"]);
    expect(await t.owner.close({ label: "does" })).toEqual({ label: "does" });
    expect(t.owner.results).toHaveLength(1);
    await expectNothingLeft(t);
  });
});

describe("a process that was started again", () => {
  test("and reached a turn's end is started again when it ends the next time", async () => {
    const it = await atWork();
    const { t, run, lost, kinds } = it;
    for (let round = 1; round <= 3; round++) {
      await die(it, false);
      await run.turn();
      await run.endTurn();
    }
    expect(kinds().filter((kind) => kind === "resume")).toHaveLength(3);
    expect(new Set(run.orders.map(({ orderId }) => orderId)).size).toBe(4);
    expect(lost).toEqual([]);
    expect(await statesOf(t)).toEqual(["does working"]);
  });

  test.each([{ stage: "agent_start" as const, message: "the session file is gone" }])(
    "but could not be ends its assignment as worker_lost at once: %j",
    async (failure) => {
      const it = await atWork();
      const { t, run, lost, script } = it;
      await die(it, false);
      await run.failStart(failure);
      expect((await t.result()).error?.code).toBe("worker_lost");
      expect(lost).toEqual(["does"]);
      expect(script.looks).toBe(0);
      await expectNothingLeft(t);
    },
  );

  test("and whose order nobody confirmed is ordered again when the store is opened, and not lost for that", async () => {
    const it = await atWork();
    const { t, run, kinds } = it;
    await die(it, false);
    run.orders.length = 0;
    await die(it, true);
    expect(kinds()).toEqual(["resume"]);
    await run.turn();
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
  });

  test("with an answer keeps that answer over a restart of this program", async () => {
    const it = await atWork();
    const { t, script, run } = it;
    await run.ask("Which?");
    await run.endTurn();
    await run.die();
    await (await t.question()).reply("this");
    await t.idle();
    script.identities.set(run.runId, "absent");
    await t.crash();
    await t.idle();
    expect(run.orders.at(-1)).toMatchObject({ kind: "answer", message: "this", launch: { agent: "does" } });
    await run.turn();
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
  });
});

describe("a reusable worker", () => {
  test("that is lost with its work tells that once, is unknown afterwards, and can be closed", async () => {
    const it = await atWork({ reusable: true });
    const { t, run, lost } = it;
    await die(it, false);
    await run.die();
    expect((await t.result()).error?.code).toBe("worker_lost");
    expect(lost).toEqual(["does"]);
    await t.idle();
    expect(await statesOf(t)).toEqual(["does unknown"]);
    expect(await refusalOf(t.owner.assign({ label: "does", task: "B" }))).toMatchObject({ category: "worker_busy" });
    await t.owner.close({ label: "does" });
    await expectNothingLeft(t);
  });

  test("whose process ends while its result is on its way keeps the result, and is unknown then", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    const owner = t.herd.owner("parks");
    const handle = await owner.assign({ agent: "does", task: "A", reusable: true });
    const run = await script.run();
    await run.turn();
    await run.settle("done");
    script.identities.set(run.runId, "absent");
    await t.crash();
    await t.idle();
    expect((await (await t.herd.assignment(handle.requestId)).result()).text).toBe("done");
    await t.idle();
    expect((await t.herd.owner("parks").list()).workers).toMatchObject([{ state: "unknown" }]);
  });
});

describe("a one-shot worker", () => {
  test("whose process ends by itself after its result needs no stop, and nothing is left of it", async () => {
    const it = await atWork();
    const { t, script, run } = it;
    script.stopsAtOnce = false;
    await run.settle("done");
    await run.die();
    expect((await t.result()).text).toBe("done");
    await expectNothingLeft(t);
  });

  test("whose label is taken keeps it while its process is gone, and a generated label moves on", async () => {
    const it = await atWork();
    const { t, run } = it;
    await run.ask("Which?");
    await run.endTurn();
    await run.die();
    const rows = await keysOf(t, "qka");
    expect(await refusalOf(t.owner.assign({ agent: "does", task: "B", label: "does" }))).toMatchObject({
      category: "worker_label_exists",
    });
    expect(await keysOf(t, "qka")).toEqual(rows);
    expect((await t.owner.assign({ agent: "does", task: "B" })).label).toBe("does-2");
    expect(await statesOf(t)).toEqual(["does blocked", "does-2 working"]);
    await (await t.question()).reply("this");
    expect(run.orders.at(-1)).toMatchObject({ kind: "answer", message: "this" });
  });
});

test("what a worker never heard goes with it, also when this program ends as it settles", async () => {
  const it = await atWork();
  const { t, run } = it;
  await t.owner.steer({ label: "does", message: "also this" });
  await t.idle();
  await run.settle("done");
  await t.crash();
  await t.idle();
  expect((await t.result()).text).toBe("done");
  expect(await keysOf(t, "o")).toEqual([]);
  await expectNothingLeft(t);
});

describe("a result that cannot be stored for a worker in a process", () => {
  test("is kept as an error after eight attempts: it settles, takes no task, and can be closed", async () => {
    const plan = new FaultPlan();
    const t = await createTestHerd({ agents, store: faultyStore(memoryStore(), plan), reopen: { pauseMs: 0 } });
    const script = t.scripted("does");
    const handle = await t.owner.assign({ agent: "does", task: "A", reusable: true });
    const run = await script.run();
    await run.turn();
    await t.idle();
    const before = plan.batches;
    // The batch and its eight repetitions; a probe lands between, then the command alone fails too.
    plan.failBatches(9);
    plan.failBatches(1, { after: 10 });
    expect(await run.settle("done")).toBe(false);
    expect(plan.batches).toBeGreaterThan(before + 9);
    expect((await t.owner.list()).workers).toMatchObject([
      {
        state: "settling",
        steerable: false,
        resultError: {
          code: "write_failure",
          requestId: handle.requestId,
          originalStatus: "completed",
          attempts: 8,
          retrySafe: false,
          cleanupSafe: true,
          nextAction: expect.stringContaining("close"),
        },
      },
    ]);
    for (const call of [
      t.owner.assign({ label: "does", task: "B" }),
      t.owner.steer({ label: "does", message: "x" }),
      t.owner.reply({ label: "does", message: "x" }),
    ]) {
      expect(await refusalOf(call)).toMatchObject({ category: "worker_busy", nextAction: expect.stringMatching(/\S/) });
    }
    await t.crash();
    await t.idle();
    expect((await t.owner.list()).workers).toMatchObject([{ state: "settling", resultError: { attempts: 8 } }]);
    expect(t.owner.results).toEqual([]);
    await t.owner.close({ label: "does" });
    expect(run.orders.at(-1)?.kind).toBe("stop");
    await expectNothingLeft(t);
  });
});
