import { describe, expect, test } from "vitest";
import type { ScriptedRun } from "pi-herd/testing";
import { does, expectNothingLeft, herdOnDisk, keysOf, refusalOf, statesOf } from "./support.ts";

const agents = { does, lead: { ...does, subagents: ["does"] } };

/** A parent in a process, at work, with children in processes; nothing is handed over until the test says so. */
async function family(children: readonly string[] = []) {
  const t = await herdOnDisk({ agents });
  const leads = t.scripted("lead");
  const script = t.scripted("does");
  const handle = await t.owner.assign({ agent: "lead", task: "A" });
  const lead = await leads.run();
  await lead.turn();
  const parts: ScriptedRun[] = [];
  for (const label of children) {
    const answer = await lead.subagent({ action: "assign", agent: "does", task: `part ${label}`, label });
    expect(answer).toMatchObject({ ok: true, label });
    const part = await script.run(label);
    await part.turn();
    parts.push(part);
  }
  return { t, leads, script, handle, lead, parts: parts as [ScriptedRun, ScriptedRun, ScriptedRun] };
}

/** What was handed over to a parent, the newest last. */
const handed = (lead: ScriptedRun) => lead.orders.filter((order) => order.kind === "deliver");

/** The counts of other workers that a handed result carries. */
function countsOf(lead: ScriptedRun): unknown[] {
  const { details } = lead.order("deliver");
  return [details["activeDirect"], details["pendingDirectResults"], details["unresolvedDirect"]];
}

test("a worker in a process that asks before a turn began has begun: neither task nor answer is told again", async () => {
  const t = await herdOnDisk({ agents });
  const script = t.scripted("does");
  await t.owner.assign({ agent: "does", task: "A" });
  const run = await script.run();
  for (const message of ["this", "that"]) {
    await run.ask("Which?");
    expect(await keysOf(t, "o")).toEqual([]);
    await (await t.question()).reply(message);
  }
  await t.crash();
  await t.idle();
  const told = run.orders.map((order) => (order.kind === "answer" ? order.message : order.kind));
  expect(told).toEqual(["start", "this", "that", "that"]);
  await run.turn();
  await run.settle("done");
  await t.result();
  await expectNothingLeft(t);
});

describe("a parent in a process", () => {
  test("lists, assigns, steers, answers and closes its own workers, and nobody else's", async () => {
    const { t, script, lead } = await family();
    await t.owner.assign({ agent: "does", task: "other", label: "roots" });
    const assigned = await lead.subagent({ action: "assign", agent: "does", task: "part", label: "mine" });
    const part = await script.run("mine");
    expect(assigned).toMatchObject({
      ok: true,
      action: "assign",
      label: "mine",
      pane_id: expect.stringContaining(part.runId),
      session_id: part.order("start").sessionId,
      request_id: part.requestId,
    });
    expect(part.order("start")).toMatchObject({ task: "part", cwd: lead.order("start").cwd });
    await part.turn();
    const listing = await lead.subagent({ action: "list" });
    expect(listing.workers).toMatchObject([
      { label: "mine", state: "working", owner_session_id: lead.order("start").sessionId },
    ]);
    expect(listing.workers).toHaveLength(1);
    expect(listing.agent_definitions).toEqual([{ name: "does", description: does.description }]);
    expect(await lead.subagent({ action: "steer", label: "mine", message: "also this" })).toMatchObject({
      ok: true,
      action: "steer",
      assignment_request_id: part.requestId,
    });
    expect(part.order("steer")).toMatchObject({ message: "also this" });
    for (const request of [
      { action: "steer", label: "roots", message: "x" },
      { action: "reply", label: "roots", message: "x" },
      { action: "close", label: "roots" },
      { action: "close", label: "lead" },
    ]) {
      expect(await lead.subagent(request)).toMatchObject({ ok: false, error: { category: "target_not_found" } });
    }
    expect(await lead.subagent({ action: "assign", agent: "lead", task: "x" })).toMatchObject({
      ok: false,
      error: { category: "invalid_request" },
    });
    expect(await lead.subagent({ action: "assign", agent: "does", task: "x", cwd: "/" })).toMatchObject({
      ok: false,
      error: { category: "invalid_request" },
    });
    expect(await lead.subagent({ action: "close", label: "mine" })).toEqual({
      ok: true,
      action: "close",
      label: "mine",
    });
    expect(part.orders.at(-1)?.kind).toBe("stop");
    expect((await statesOf(t)).toSorted()).toEqual(["lead working", "roots working"]);
  });

  test("before it has accepted its task, or under a run id that is none, gets target_not_found from every action", async () => {
    const t = await herdOnDisk({ agents });
    const leads = t.scripted("lead");
    const script = t.scripted("does");
    leads.acceptsAtOnce = false;
    const assigned = t.owner.assign({ agent: "lead", task: "A" });
    const lead = await leads.run();
    for (const request of [
      { action: "list" },
      { action: "assign", agent: "does", task: "x" },
      { action: "close", label: "x" },
    ]) {
      expect(await lead.subagent(request)).toMatchObject({
        ok: false,
        error: { category: "target_not_found", operation: request.action, rollbackOccurred: false },
      });
    }
    expect(script.runs).toEqual([]);
    expect(await statesOf(t)).toEqual(["lead settling"]);
    await lead.accept();
    await assigned;
    expect(await lead.subagent({ action: "list" })).toMatchObject({ ok: true, workers: [] });
    await t.owner.close({ label: "lead" });
    expect(await lead.subagent({ action: "list" })).toMatchObject({
      ok: false,
      error: { category: "target_not_found" },
    });
  });

  test("that waits for its owner, or is ready, still has its workers after a restart of this program", async () => {
    const { t, lead, parts } = await family(["one"]);
    await parts[0].ask("Which?");
    await parts[0].endTurn();
    await lead.take();
    await lead.ask("Which of all?");
    await lead.endTurn();
    await t.idle();
    await t.crash();
    await t.idle();
    expect(await lead.subagent({ action: "list" })).toMatchObject({
      ok: true,
      workers: [{ label: "one", state: "blocked" }],
    });
  });

  test("that is a leaf has no workers: every action is refused as the controller's", async () => {
    const { lead, parts, t } = await family(["one"]);
    for (const request of [
      { action: "list" },
      { action: "assign", agent: "does", task: "x" },
      { action: "steer", label: "one", message: "x" },
      { action: "reply", label: "one", message: "x" },
      { action: "close", label: "one" },
    ]) {
      expect(await parts[0].subagent(request)).toMatchObject({
        ok: false,
        error: { category: "invalid_request", operation: "controller" },
      });
    }
    expect((await lead.subagent({ action: "list" })).workers).toHaveLength(1);
    expect((await t.owner.list()).workers).toHaveLength(2);
  });

  test("gets its children's results one by one, each with what is still to come", async () => {
    const { t, lead, parts } = await family(["one", "two", "three"]);
    await t.owner.assign({ agent: "does", task: "not its own", label: "roots" });
    await lead.endTurn();
    await Promise.all([parts[0].settle("first"), parts[1].settle("second")]);
    const [first, next] = handed(lead);
    // The next one waits until this one was read, so that its counts are those of that moment.
    expect(next).toBeUndefined();
    expect(first).toMatchObject({ what: "result", text: expect.stringContaining("first") });
    expect(first?.text).toContain("1 active direct, 1 pending direct results, 2 unresolved");
    expect(await lead.take(first?.orderId)).toBe(true);
    expect(await lead.take(first?.orderId)).toBe(false);
    expect(await lead.take("deliver.of-another")).toBe(false);
    const second = lead.order("deliver");
    expect(second).toMatchObject({ text: expect.stringContaining("second") });
    expect(countsOf(lead)).toEqual([1, 0, 1]);
    // What is not confirmed is handed over again.
    await t.crash();
    await t.idle();
    expect(handed(lead).filter(({ orderId }) => orderId === second.orderId)).toHaveLength(2);
    expect(countsOf(lead)).toEqual([1, 0, 1]);
    await lead.take();
    await parts[2].settle("third");
    expect(lead.order("deliver")).toMatchObject({ text: expect.stringContaining("third") });
    expect(countsOf(lead)).toEqual([0, 0, 0]);
    // No message but the three results.
    expect(new Set(handed(lead).map(({ orderId }) => orderId)).size).toBe(3);
    expect(t.owner.results).toEqual([]);
    await lead.take();
    await lead.turn();
    await lead.settle("all together");
    expect((await t.result()).text).toBe("all together");
    await t.owner.close({ label: "roots" });
    await expectNothingLeft(t);
  });

  test("is handed a result within its turn when it is busy, and is woken by it when it waits", async () => {
    const { t, lead, parts } = await family(["one", "two"]);
    await parts[0].settle("while busy");
    expect((await statesOf(t)).toSorted()).toEqual(["lead working", "one settling", "two working"]);
    expect(lead.order("deliver")).toMatchObject({ text: expect.stringContaining("while busy") });
    await lead.take();
    await lead.settle("waits");
    expect((await t.owner.list()).workers[0]).toMatchObject({ state: "blocked" });
    await parts[1].settle("while idle");
    expect(lead.order("deliver")).toMatchObject({ text: expect.stringContaining("while idle") });
    // Its backend starts a turn with it.
    expect(await lead.turn()).toBe(true);
    await lead.take();
    await lead.settle("both");
    expect((await t.result()).text).toBe("both");
    await expectNothingLeft(t);
  });

  test("whose answer came before its children's results has it dropped, and blank afterwards is empty_result", async () => {
    const { t, lead, parts } = await family(["one"]);
    expect(await lead.settle("too early")).toBe(true);
    expect((await t.owner.list()).workers).toMatchObject([{ label: "lead", state: "blocked", steerable: true }, {}]);
    expect(t.owner.results).toEqual([]);
    await parts[0].settle("part");
    // Its result is there, but the parent has not read it yet.
    expect(await lead.settle("still too early")).toBe(true);
    expect(t.owner.results).toEqual([]);
    await lead.take();
    await lead.turn();
    await lead.settle("  \n");
    expect(await t.result()).toMatchObject({ status: "failed", error: { code: "empty_result" } });
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
    await expectNothingLeft(t);
  });

  test("is steered into its next turn while a child works, and into the running one once; not without either", async () => {
    const { t, lead, parts } = await family(["one"]);
    await t.owner.steer({ label: "lead", message: "during the turn" });
    expect(lead.orders.filter(({ kind }) => kind === "steer")).toHaveLength(1);
    await lead.hear();
    await lead.settle("waits");
    expect((await t.owner.list()).workers[0]).toMatchObject({ state: "blocked", steerable: true });
    await t.owner.steer({ label: "lead", message: "while idle" });
    expect(lead.order("steer")).toMatchObject({ message: "while idle" });
    expect(await statesOf(t)).toEqual(["lead working", "one working"]);
    await lead.turn();
    await lead.hear();
    await parts[0].settle("part");
    await lead.take();
    const owner = t.herd.owner("tester");
    await lead.settle("done");
    await t.result();
    expect(await refusalOf(owner.steer({ label: "lead", message: "too late" }))).toMatchObject({
      category: expect.stringMatching(/worker_busy|target_not_found/),
    });
    expect(lead.orders.filter(({ kind }) => kind === "steer")).toHaveLength(2);
    await expectNothingLeft(t);
  });

  test("answers by label only a question that was handed to it, and by its own reply alone", async () => {
    const { t, lead, parts } = await family(["one"]);
    const [part] = parts;
    await part.ask("May I?");
    await part.endTurn();
    const reply = () => lead.subagent({ action: "reply", label: "one", message: "yes" });
    expect(lead.order("deliver")).toMatchObject({
      what: "question",
      text: expect.stringContaining("May I?"),
      details: { requestId: part.requestId, label: "one", runId: part.runId, sessionId: part.order("start").sessionId },
    });
    expect(await reply()).toMatchObject({ ok: false, error: { category: "worker_busy" } });
    expect(await refusalOf(t.owner.reply({ label: "one", message: "the root's" }))).toMatchObject({
      category: "target_not_found",
    });
    await lead.take();
    expect(await reply()).toMatchObject({ ok: true, action: "reply", assignment_request_id: part.requestId });
    expect(part.order("answer")).toMatchObject({ message: "yes" });
    expect(await reply()).toMatchObject({ ok: false, error: { category: "worker_busy" } });
    await part.turn();
    // The next question is another one.
    await part.ask("And now?");
    await part.endTurn();
    expect(await reply()).toMatchObject({ ok: false, error: { category: "worker_busy" } });
    expect(t.owner.questions).toEqual([]);
    await lead.take();
    await reply();
    await part.turn();
    await part.settle("done");
    await lead.take();
    await lead.settle("all done");
    await t.result();
    await expectNothingLeft(t);
  });

  test("that was started again is handed what the one before it had not confirmed", async () => {
    const { t, lead, parts } = await family(["one", "two"]);
    await parts[0].settle("first");
    await parts[1].ask("May I?");
    await parts[1].endTurn();
    const [result, question] = handed(lead);
    await lead.die();
    expect(lead.orders.at(-1)?.kind).toBe("resume");
    await lead.turn();
    await t.idle();
    expect(
      handed(lead)
        .slice(2)
        .map(({ orderId }) => orderId)
        .toSorted(),
    ).toEqual([result?.orderId, question?.orderId].toSorted());
    await lead.take(result?.orderId);
    await lead.take(question?.orderId);
    await lead.subagent({ action: "reply", label: "two", message: "yes" });
    await parts[1].turn();
    await parts[1].settle("second");
    await lead.take();
    await lead.settle("done");
    expect((await t.result()).text).toBe("done");
    await expectNothingLeft(t);
  });

  test("that waits for its children when its process ends is started again at once", async () => {
    const { t, lead, parts } = await family(["one"]);
    await lead.settle("waits");
    await lead.die();
    expect(lead.orders.at(-1)?.kind).toBe("resume");
    await lead.turn();
    await lead.settle("waits again");
    expect(await statesOf(t)).toEqual(["lead blocked", "one working"]);
    await parts[0].settle("part");
    await lead.take();
    await lead.turn();
    await lead.settle("done");
    expect((await t.result()).text).toBe("done");
    await expectNothingLeft(t);
  });

  test("that speaks for another session is handed nothing until it speaks for its own", async () => {
    const { t, lead, parts } = await family(["one", "two"]);
    await parts[0].settle("first");
    const [first] = handed(lead);
    await lead.identify("00000000-0000-4000-8000-000000000000");
    await t.idle();
    await parts[1].settle("second");
    await t.idle();
    expect(handed(lead)).toHaveLength(1);
    // What it says to have got does not count: the result stays, and its worker too.
    expect(await lead.take(first?.orderId)).toBe(false);
    expect(await keysOf(t, "d")).toHaveLength(2);
    expect((await statesOf(t)).toSorted()).toEqual(["lead unknown", "one settling", "two settling"]);
    await lead.identify(lead.order("start").sessionId);
    await t.idle();
    expect(handed(lead).map(({ orderId }) => orderId)).toEqual([first?.orderId, first?.orderId]);
    await lead.take();
    expect(lead.order("deliver")).toMatchObject({ text: expect.stringContaining("second") });
    await lead.take();
    await lead.settle("done");
    expect((await t.result()).text).toBe("done");
    await expectNothingLeft(t);
  });
});
