import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { AgentDefinition } from "../functions/agent.ts";
import { createTestHerd } from "../testing/index.ts";

const asks: AgentDefinition = {
  description: "asks before it answers",
  run: async (task, worker) => `${task}: ${await worker.askOwner({ question: `May I do ${task}?` })}`,
};
const twice: AgentDefinition = {
  description: "asks twice",
  run: async (_task, worker) =>
    `${await worker.askOwner({ question: "first?" })} ${await worker.askOwner({ question: "second?" })}`,
};
const agents = { asks, twice };

async function asking(agent: "asks" | "twice" = "asks") {
  const t = await createTestHerd({ agents });
  const run = await t.owner.assign({ agent, task: "A" });
  return { t, run, question: await t.question() };
}

describe("a reply", () => {
  test("is known by its ids, the same for the same question", async () => {
    const { run, question } = await asking();
    const receipt = await question.reply("yes", { id: "r1" });
    expect(receipt).toMatchObject({
      askId: question.askId,
      assignmentRequestId: run.requestId,
      sessionId: run.sessionId,
    });
    expect(await question.reply("yes", { id: "r1" })).toEqual(receipt);
  });

  test("under the same id succeeds quietly, also after a crash and after the end", async () => {
    const { t, question } = await asking();
    const receipt = await question.reply("yes", { id: "r1" });
    await t.result();
    await t.crash();
    expect(await t.owner.reply({ askId: question.askId, message: "yes", id: "r1" })).toEqual(receipt);
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
  });

  test("with other content under a used id is refused", async () => {
    const { question } = await asking();
    await question.reply("yes", { id: "r1" });
    await expect(question.reply("no", { id: "r1" })).rejects.toMatchObject({
      category: "invalid_request",
      reason: "id_reused",
      field: "id",
    });
  });

  test("to an answered question is refused and names the reply that won, and when", async () => {
    const { t, question } = await asking();
    await question.reply("yes", { id: "first" });
    const at = t.clock.now().toISOString();
    await expect(question.reply("no")).rejects.toMatchObject({
      category: "worker_busy",
      reason: "already_answered",
      ids: { askId: question.askId, replyId: "first" },
      details: { answeredAt: at },
    });
    await expect(question.reply("no")).rejects.toThrow(`already answered at ${at} by reply "first"`);
  });

  test("racing another one: exactly one wins", async () => {
    const { t, question } = await asking();
    const outcomes = await Promise.allSettled([question.reply("one"), question.reply("two"), question.reply("three")]);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect((await t.result()).text).toBe("A: one");
  });

  test("with the id of an earlier question never answers the next one", async () => {
    const { t, question } = await asking("twice");
    await question.reply("one");
    const second = await t.question();
    await expect(t.owner.reply({ askId: question.askId, message: "one again" })).rejects.toMatchObject({
      reason: "already_answered",
    });
    await second.reply("two");
    expect((await t.result()).text).toBe("one two");
  });

  test("by label answers what the worker asks now, and is refused when it asks nothing", async () => {
    const { t } = await asking();
    await t.owner.reply({ label: "asks", message: "yes" });
    expect((await t.result()).text).toBe("A: yes");
    await t.idle();
    await expect(t.owner.reply({ label: "asks", message: "yes" })).rejects.toMatchObject({
      category: "target_not_found",
    });
  });

  test("by label is refused while the worker's question is still on its way to the receiver", async () => {
    const t = await createTestHerd({ agents });
    const busy: (() => void)[] = [];
    const owner = t.herd.owner("slow", { onQuestion: () => new Promise<void>((resolve) => busy.push(resolve)) });
    await Promise.all(
      Array.from({ length: 17 }, (_, index) =>
        owner.assign({ agent: "asks", task: String(index), label: `w${index}` }),
      ),
    );
    while (busy.length < 16) await new Promise((resolve) => setImmediate(resolve));
    await expect(owner.reply({ label: "w16", message: "yes" })).rejects.toMatchObject({
      category: "worker_busy",
      reason: "newer_question",
    });
    await owner.reply({ label: "w0", message: "yes" });
  });

  test("that is no text, to a question of nobody or of another owner, finds nothing", async () => {
    const t = await createTestHerd({ agents: { asks } });
    const call = t.owner.reply({ askId: "nothing", message: true });
    await expect(call).rejects.toMatchObject({ reason: "target_not_found" });
  });

  test("of another owner finds nothing", async () => {
    const { t, question } = await asking();
    await expect(t.herd.owner("stranger").reply({ askId: question.askId, message: "x" })).rejects.toMatchObject({
      category: "target_not_found",
    });
    await expect(t.herd.owner("stranger").reply({ label: "asks", message: "x" })).rejects.toMatchObject({
      category: "target_not_found",
    });
  });

  test("after the worker was closed learns that, and nothing is resurrected", async () => {
    const { t, question } = await asking();
    await t.owner.close({ label: "asks" });
    await expect(question.reply("late")).rejects.toMatchObject({ category: "target_not_found", reason: "closed" });
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("with a field that it does not have is refused, so that nobody answers in another's name", async () => {
    const { t, question } = await asking();
    const owner = "someone-else";
    await expect(question.reply("x", { owner } as never)).rejects.toMatchObject({
      reason: "unknown_field",
      field: "owner",
    });
    await expect(
      t.herd.owner("stranger").reply({ askId: question.askId, message: "x", owner: "tester" } as never),
    ).rejects.toMatchObject({ category: "invalid_request", reason: "unknown_field" });
    await expect(t.owner.reply({ askId: question.askId, label: "asks", message: "x" } as never)).rejects.toMatchObject({
      category: "invalid_request",
      field: "askId, label",
    });
    await question.reply("mine");
    expect((await t.result()).text).toBe("A: mine");
  });

  test("by label under its id again, after the next question, is the same reply", async () => {
    const { t } = await asking("twice");
    const receipt = await t.owner.reply({ label: "twice", message: "one", id: "r1" });
    await t.question();
    expect(await t.owner.reply({ label: "twice", message: "one", id: "r1" })).toEqual(receipt);
    await t.owner.reply({ label: "twice", message: "two" });
    expect((await t.result()).text).toBe("one two");
  });

  test.each([
    ["blank", "  "],
    ["no text", 7],
    ["null", null],
  ])("that is %s is refused by field", async (_what, message) => {
    const { question } = await asking();
    await expect(question.reply(message)).rejects.toMatchObject({ category: "invalid_request", field: "message" });
  });

  test("waits for its owner without any timeout, and is never stale", async () => {
    const { t, question } = await asking();
    const stale: unknown[] = [];
    t.herd.on("stale", (event) => stale.push(event));
    await t.clock.advance("365d");
    const { workers } = await t.owner.list();
    expect(workers).toMatchObject([{ state: "blocked", steerable: false }]);
    expect(workers[0]).not.toHaveProperty("stale");
    await question.reply("at last");
    expect((await t.result()).text).toBe("A: at last");
    expect(stale).toEqual([]);
  });

  test("keeps markdown, separators, emoji and right-to-left text byte for byte", async () => {
    const t = await createTestHerd({
      agents: { echo: { description: "e", run: (task, worker) => worker.askOwner({ question: task }) } },
    });
    const text = "---\nTask:\n**x** 😀 שלום \u0007 `code`\n\n---";
    await t.owner.assign({ agent: "echo", task: text });
    const question = await t.question();
    expect(question.question).toBe(text);
    await question.reply(text);
    expect((await t.result()).text).toBe(text);
  });
});

describe("a worker played by a script", () => {
  test("is blocked only when the turn that asked has ended", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("asks");
    await t.owner.assign({ agent: "asks", task: "A" });
    const run = await script.run();
    await run.turn();
    await run.ask("May I?");
    const stateOf = async () => (await t.owner.list()).workers[0]?.state;
    expect(await stateOf()).toBe("working");
    await run.endTurn();
    expect(await stateOf()).toBe("blocked");
  });

  test("replied to before its turn ended goes on in the next turn and is never blocked", async () => {
    const t = await createTestHerd({ agents });
    const states: string[] = [];
    t.herd.on("state", (event) => states.push(event.to));
    const script = t.scripted("asks");
    await t.owner.assign({ agent: "asks", task: "A" });
    const run = await script.run();
    await run.turn();
    await run.ask("May I?");
    await (await t.question()).reply("yes");
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);
    await run.endTurn();
    await t.idle();
    expect(run.orders.at(-1)).toMatchObject({ kind: "answer", message: "yes" });
    await run.turn();
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
    expect(states).not.toContain("blocked");
  });

  test("asking beside another tool call is refused, and nothing is stored", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("asks");
    await t.owner.assign({ agent: "asks", task: "A" });
    const run = await script.run();
    await run.turn();
    await expect(run.ask("May I?", { batch: ["read", "ask_owner"] })).rejects.toMatchObject({
      category: "invalid_request",
      reason: "not_sole_tool_call",
    });
    await expect(run.ask("May I?", { files: ["missing.md"] })).rejects.toThrow(/Cannot read file "missing.md"/);
    expect((await t.owner.list()).workers).toMatchObject([{ state: "working" }]);
    await run.ask("May I?");
    await expect(run.ask("And this?")).rejects.toMatchObject({ reason: "already_waiting" });
  });

  test("that settles while its question is open ends nothing", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("asks");
    await t.owner.assign({ agent: "asks", task: "A" });
    const run = await script.run();
    await run.turn();
    await run.ask("May I?");
    await run.endTurn();
    await run.settle("guessed");
    await t.idle();
    expect(t.owner.results).toEqual([]);
    await (await t.question()).reply("yes");
    await run.turn();
    await run.settle("asked");
    await run.settle("twice");
    await run.duplicate();
    expect((await t.result()).text).toBe("asked");
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
  });

  test("hears nothing that is late or under another identity", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("asks");
    await t.owner.assign({ agent: "asks", task: "A" });
    const run = await script.run();
    await run.turn();
    const outcome = { status: "completed" as const, text: "not mine" };
    expect(await run.late({ type: "settled", outcome })).toBe(false);
    expect(await run.wrongIdentity({ type: "settled", outcome })).toBe(false);
    await t.owner.close({ label: "asks" });
    expect(await run.settle("after the close")).toBe(false);
    await t.idle();
    expect(t.owner.results).toEqual([]);
  });

  test("is told again after a crash what it has not confirmed", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("asks");
    await t.owner.assign({ agent: "asks", task: "A" });
    const run = await script.run();
    await t.crash();
    await t.idle();
    expect(run.orders.map(({ kind, orderId }) => `${kind} ${orderId}`)).toEqual(["start start", "start start"]);
    await run.turn();
    await t.crash();
    await t.idle();
    expect(run.orders).toHaveLength(2);
  });

  test("asks after a restart that came when its start was confirmed", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("asks");
    await t.owner.assign({ agent: "asks", task: "A" });
    const run = await script.run();
    await run.turn();
    await t.crash();
    await run.ask("May I?");
    await run.endTurn();
    expect((await t.owner.list()).workers).toMatchObject([{ state: "blocked", question: { question: "May I?" } }]);
  });

  test("is stopped when its result is durable, and no order is left behind", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("asks");
    script.stopsAtOnce = false;
    const owner = t.herd.owner("parks");
    const first = await owner.assign({ agent: "asks", task: "A" });
    const run = await script.run();
    await run.turn();
    await run.settle("done");
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "stop"]);
    await t.crash();
    await t.idle();
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start", "stop", "stop"]);
    expect(await run.exit()).toBe(true);
    expect((await (await t.herd.assignment(first.requestId)).result()).text).toBe("done");
    // One that never began its turn leaves nothing either.
    script.stopsAtOnce = true;
    await t.herd.owner("parks").assign({ agent: "asks", task: "B" });
    await t.herd.owner("parks").close({ label: "asks" });
    await t.idle();
    expect(await t.store.range({ gte: "o!", lt: "o~" })).toEqual([]);
  });

  test("whose backend throws at an order gets it again, and hinders nobody", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("asks");
    const receive = script.receive.bind(script);
    let failures = 1;
    script.receive = (...order) => {
      if (failures-- > 0) throw new Error("no pane");
      receive(...order);
    };
    const assigned = t.owner.assign({ agent: "asks", task: "A" });
    await t.owner.assign({ agent: "twice", task: "B" });
    expect((await t.question()).question).toBe("first?");
    expect(script.runs).toHaveLength(0);
    await t.clock.advance("1s");
    await assigned;
    expect((await script.run()).orders.map(({ kind }) => kind)).toEqual(["start"]);
  });

  test("is closed only when the proof that it is gone has come", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("asks");
    script.stopsAtOnce = false;
    await t.owner.assign({ agent: "asks", task: "A" });
    const run = await script.run();
    await run.turn();
    const closing = t.owner.close({ label: "asks" });
    while (run.orders.length < 2) await new Promise((resolve) => setImmediate(resolve));
    expect((await t.owner.list()).workers).toMatchObject([{ state: "closing" }]);
    await expect(t.owner.close({ label: "asks" })).rejects.toMatchObject({
      category: "worker_busy",
      reason: "closing",
    });
    await run.exit();
    expect(await closing).toEqual({ label: "asks" });
    expect((await t.owner.list()).workers).toEqual([]);
  });
});

test("a reply's files are looked up where its owner works", async () => {
  const folder = await mkdtemp(join(tmpdir(), "herd-reply-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "answer.md"), "yes");
  const t = await createTestHerd({ agents, cwd: folder });
  await t.owner.assign({ agent: "asks", task: "A" });
  await (await t.question()).reply("see there", { files: ["answer.md"] });
  expect((await t.result()).text).toBe("A: see there");
});
