import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createTestHerd } from "pi-herd/testing";
import { asks, does, refusalOf, rowsOf } from "./support.ts";

/** A herd whose only backend a test plays, so that it knows of every call. */
async function scripted() {
  const t = await createTestHerd({ agents: { asks, does } });
  const script = t.scripted("does");
  return { t, calls: () => script.runs.flatMap(({ orders }) => orders) };
}

describe("assign", () => {
  test("of nothing, of blanks, without a task or with an empty one: each has its own message, and nothing is touched", async () => {
    const { t, calls } = await scripted();
    await t.owner.assign({ agent: "asks", task: "A" });
    const before = await rowsOf(t);
    const messages: string[] = [];
    for (const fields of [{}, { agent: " ", task: "\t" }, { agent: "does" }, { agent: "does", task: " \n " }]) {
      const answer = await t.owner.subagent({ action: "assign", ...fields });
      expect(answer).toMatchObject({ ok: false, error: { category: "invalid_request", operation: "assign" } });
      messages.push(answer.error.message);
    }
    expect(new Set(messages).size).toBe(4);
    expect(messages[1]).toMatch(/agent, task/);
    expect(await rowsOf(t)).toBe(before);
    expect(calls()).toEqual([]);
  });

  test.each([
    ["an unknown field", { foo: 1 }, "foo"],
    ["a blank task", { task: "  " }, "task"],
    ["a timeout out of its range", { timeoutMs: 5_000 }, "timeoutMs"],
    ["a field of another form", { label: "one", agent: undefined, reusable: true }, "reusable"],
  ])("with %s calls no backend", async (_what, change, field) => {
    const { t, calls } = await scripted();
    const request = { action: "assign", agent: "does", task: "A", ...change };
    expect(await t.owner.subagent(request)).toMatchObject({
      ok: false,
      error: { category: "invalid_request", field, rollbackOccurred: false, retryAttempted: false },
    });
    await t.idle();
    expect(calls()).toEqual([]);
  });

  test("says the range when it refuses a timeout, whatever the action", async () => {
    const { t } = await scripted();
    for (const timeoutMs of [5_000, 300_001, 5_001.5, "6000", Number.NaN]) {
      for (const action of ["assign", "list", "close"]) {
        const answer = await t.owner.subagent({ action, timeoutMs });
        expect(answer.error).toMatchObject({ category: "invalid_request", field: "timeoutMs" });
        expect(answer.error.message).toContain("5001 to 300000");
      }
    }
  });
});

describe("a label", () => {
  const requests = {
    assign: { agent: "does", task: "A" },
    steer: { message: "x" },
    reply: { message: "x" },
    close: {},
  };
  const actions = Object.entries(requests);

  test.each(actions)("that is none is refused by %s before anything happens", async (action, fields) => {
    const { t, calls } = await scripted();
    const before = await rowsOf(t);
    for (const label of ["a".repeat(33), "Worker", "a.b", "1st", "-", "ä"]) {
      expect(await t.owner.subagent({ action, label, ...fields })).toMatchObject({
        ok: false,
        error: { category: "invalid_request", field: "label", operation: action },
      });
    }
    expect(await rowsOf(t)).toBe(before);
    expect(calls()).toEqual([]);
  });

  test("of 32 characters passes and names the worker from then on", async () => {
    const { t } = await scripted();
    const label = "a".repeat(32);
    expect(await t.owner.subagent({ action: "assign", agent: "asks", task: "A", label })).toMatchObject({
      ok: true,
      label,
    });
    await t.question();
    expect(await t.owner.subagent({ action: "reply", label, message: "yes" })).toMatchObject({ ok: true, label });
    await t.owner.subagent({ action: "assign", agent: "does", task: "A", label: "b".repeat(32) });
    expect(await t.owner.subagent({ action: "close", label: "b".repeat(32) })).toMatchObject({ ok: true });
  });
});

test.each([{ action: "list" }, { action: "close", label: "one" }])(
  "files are refused by $action without a look at the disk",
  async (request) => {
    const { t } = await scripted();
    // A look at the disk would find none of them readable, and say that instead.
    const files = ["missing.md", "/dev/null", "/"];
    const { error } = await t.owner.subagent({ ...request, files });
    expect(error).toMatchObject({ category: "invalid_request", reason: "invalid_field", field: "files" });
    expect(error.message).toContain(`${request.action} does not take files`);
  },
);

test.each(["start", "resume"])("the retired action %s is answered as one that is not supported", async (action) => {
  const { t, calls } = await scripted();
  const { error } = await t.owner.subagent({ action, agent: "does", session: "x", task: "A" });
  expect(error).toMatchObject({ category: "invalid_request", field: "action", operation: action });
  expect(error.message).toContain(`The action "${action}" is not supported`);
  expect(error.message).toContain("list, assign, steer, reply, close");
  expect(calls()).toEqual([]);
});

test("five workers started at once each get their own task, and their results keep to it", async () => {
  const t = await createTestHerd({ agents: { does } });
  const script = t.scripted("does");
  const tasks = ["a", "b", "c", "d", "e"];
  const runs = await Promise.all(tasks.map((task) => t.owner.assign({ agent: "does", task })));
  const order = [3, 0, 4, 1, 2];
  const started = runs.map(({ label }) => script.runs.find((run) => run.label === label));
  for (const index of order) await started[index]?.turn();
  for (const index of order.toReversed()) {
    const start = started[index]?.orders[0];
    expect(start).toMatchObject({ kind: "start", task: tasks[index], requestId: runs[index]?.requestId });
    await started[index]?.settle(`done with ${start?.kind === "start" ? start.task : "nothing"}`);
  }
  const results = await Promise.all(runs.map(async ({ requestId }) => (await t.herd.assignment(requestId)).result()));
  expect(results.map(({ text }) => text)).toEqual(tasks.map((task) => `done with ${task}`));
});

describe("the same id again", () => {
  test("is the same assignment, also when its files and its agent are gone by then", async () => {
    const folder = await mkdtemp(join(tmpdir(), "herd-requests-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, "notes.md"), "notes");
    const t = await createTestHerd({ agents: { asks, does }, cwd: folder });
    const request = { agent: "does", task: "A", files: ["notes.md"], id: "one" };
    const { requestId } = await t.owner.assign(request);
    await t.result();
    await rm(join(folder, "notes.md"));
    expect((await t.owner.assign(request)).requestId).toBe(requestId);
    await t.crash({ agents: { asks } });
    expect((await t.owner.assign(request)).requestId).toBe(requestId);
    expect(await refusalOf(t.owner.assign({ ...request, task: "B" }))).toMatchObject({ reason: "id_reused" });
    expect(await refusalOf(t.owner.assign({ ...request, id: "two" }))).toMatchObject({ reason: "unknown_agent" });
  });

  test("is the same assignment of a session: while that goes on, in its live worker, and after its end", async () => {
    const t = await createTestHerd({ agents: { asks, does } });
    const first = await t.owner.assign({ agent: "asks", task: "A", reusable: true });
    await (await t.question()).reply("yes");
    await t.result();
    await t.idle();
    const request = { session: first.sessionId, task: "B", id: "live" };
    const live = await t.owner.assign(request);
    await (await t.question()).reply("yes");
    await t.result();
    await t.idle();
    await t.owner.close({ label: "asks" });
    expect((await t.owner.assign(request)).requestId).toBe(live.requestId);
    const saved = await t.owner.assign({ ...request, id: "saved" });
    const question = await t.question();
    expect((await t.owner.assign({ ...request, id: "saved" })).requestId).toBe(saved.requestId);
    await question.reply("yes");
    await t.result();
    await t.idle();
    expect((await t.owner.assign({ ...request, id: "saved" })).requestId).toBe(saved.requestId);
    expect(await refusalOf(t.owner.assign({ ...request, task: "C", id: "saved" }))).toMatchObject({
      reason: "id_reused",
    });
  });

  test("is the same reply, also when its files are gone by then", async () => {
    const folder = await mkdtemp(join(tmpdir(), "herd-requests-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, "answer.md");
    await writeFile(file, "yes");
    const t = await createTestHerd({ agents: { asks } });
    await t.owner.assign({ agent: "asks", task: "A" });
    const question = await t.question();
    const receipt = await question.reply("see there", { files: [file], id: "one" });
    await rm(file);
    expect(await question.reply("see there", { files: [file], id: "one" })).toEqual(receipt);
    expect(await refusalOf(question.reply("no", { files: [file], id: "one" }))).toMatchObject({ reason: "id_reused" });
  });
});

test("a typed close or reply that is not well-formed is refused by its fields, whatever workers there are", async () => {
  const { t } = await scripted();
  await t.owner.assign({ agent: "asks", task: "A" });
  await t.question();
  const before = await rowsOf(t);
  const owner = t.owner as unknown as Record<"close" | "reply", (request?: unknown) => Promise<unknown>>;
  for (const [call, field] of [
    [owner.close(), "label"],
    [owner.close({ label: "Asks" }), "label"],
    [owner.close({ label: "asks", force: true }), "force"],
    [owner.reply({ label: "Asks", message: "yes" }), "label"],
  ] as const) {
    expect(await refusalOf(call)).toMatchObject({ category: "invalid_request", field, rollbackOccurred: false });
  }
  expect(await rowsOf(t)).toBe(before);
});

test("metadata is measured in bytes", async () => {
  const { t } = await scripted();
  const error = await refusalOf(t.owner.assign({ agent: "does", task: "A", metadata: "ä".repeat(9_000) }));
  expect(error).toMatchObject({ category: "invalid_request", field: "metadata" });
});
