import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "../functions/agent.ts";
import type { HerdError } from "../index.ts";
import { createTestHerd, type TestHerd } from "../testing/index.ts";

const does: AgentDefinition = { description: "just does it", run: async (task) => `did ${task}` };
const asks: AgentDefinition = {
  description: "asks before it answers",
  run: async (task, worker) => `${task}: ${await worker.askOwner({ question: `May I do ${task}?` })}`,
};
const agents = { does, asks };

const refusalOf = (work: Promise<unknown>) =>
  work.then(
    () => {
      throw new Error("it was not refused");
    },
    (error: unknown) => error as HerdError,
  );

const circle: { again?: unknown } = {};
circle.again = circle;

type Look = (owner: TestHerd["owner"]) => Promise<unknown>;
const LOOKS: [string, Look][] = [
  ["steers a worker that is not there", (owner) => owner.steer({ label: "nobody", message: "go on" })],
  ["closes a worker that is not there", (owner) => owner.close({ label: "nobody" })],
  ["replies to a worker that is not there", (owner) => owner.reply({ label: "nobody", message: "yes" })],
  ["lists its workers", (owner) => owner.list()],
  ["lists what is parked", (owner) => owner.parked()],
];

describe("assign", () => {
  test("under an id gives the same assignment after a crash, and after its end", async () => {
    const t = await createTestHerd({ agents });
    const run = await t.owner.assign({ id: "once", agent: "does", task: "A" });
    await t.result();
    await t.crash();
    const again = await t.owner.assign({ id: "once", agent: "does", task: "A" });
    expect(again.requestId).toBe(run.requestId);
    expect((await again.result()).text).toBe("did A");
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
  });

  test.each([
    ["another agent", { agent: "asks", task: "A" }],
    ["another task", { agent: "does", task: "B" }],
    ["other files", { agent: "does", task: "A", files: ["package.json"] }],
  ])("under a used id with %s is refused", async (_what, request) => {
    const t = await createTestHerd({ agents });
    await t.owner.assign({ id: "once", agent: "does", task: "A" });
    const error = await refusalOf(t.owner.assign({ id: "once", ...request }));
    expect(error).toMatchObject({ category: "invalid_request", reason: "id_reused", field: "id" });
  });

  test("under the id of another owner is another assignment", async () => {
    const t = await createTestHerd({ agents });
    const mine = await t.owner.assign({ id: "once", agent: "does", task: "A" });
    const theirs = await t.herd.owner("other").assign({ id: "once", agent: "does", task: "A" });
    expect(theirs.requestId).not.toBe(mine.requestId);
  });

  test("of an unknown agent suggests the nearest name and lists what is defined", async () => {
    const t = await createTestHerd({ agents });
    const error = await refusalOf(t.owner.assign({ agent: "dose", task: "A" }));
    expect(error).toMatchObject({ category: "invalid_request", reason: "unknown_agent", field: "agent" });
    expect(error.message).toBe(
      'There is no agent "dose" (did you mean "does"?). Defined here: does, asks. Next: assign one of the defined agents, or define it in createHerd({ agents }).',
    );
  });

  test("of a disabled agent, or one with a disabled subagent, is refused by name", async () => {
    const t = await createTestHerd({
      agents: { off: { ...does, enabled: false }, lead: { ...does, subagents: ["off"] } },
    });
    expect(await refusalOf(t.owner.assign({ agent: "off", task: "A" }))).toMatchObject({ reason: "disabled_agent" });
    const error = await refusalOf(t.owner.assign({ agent: "lead", task: "A" }));
    expect(error).toMatchObject({ reason: "disabled_subagent" });
    expect(error.message).toContain('"off"');
    expect((await t.owner.list()).agentDefinitions).toMatchObject([{ name: "off", enabled: false }, { name: "lead" }]);
  });

  test.each([
    ["a blank task", { task: " " }, "task"],
    ["no task", { task: undefined }, "task"],
    ["a label of 33 characters", { label: "a".repeat(33) }, "label"],
    ["a label with a capital", { label: "One" }, "label"],
    ["a timeout below its range", { timeoutMs: 5_000 }, "timeoutMs"],
    ["a timeout that is not whole", { timeoutMs: 5_001.5 }, "timeoutMs"],
    ["a deadline of zero", { deadlineMs: 0 }, "deadlineMs"],
    ["an empty id", { id: "" }, "id"],
    ["metadata beyond 16 KB", { metadata: "x".repeat(16_400) }, "metadata"],
    ["metadata with a circle", { metadata: circle }, "metadata"],
    ["a blank file", { files: [" "] }, "files"],
    ["a folder that is not there", { cwd: "./no/such/folder" }, "cwd"],
    ["an unknown field", { tsak: "A" }, "tsak"],
  ])("with %s is refused by field before anything changes", async (_what, change, field) => {
    const t = await createTestHerd({ agents });
    const error = await refusalOf(t.owner.assign({ agent: "does", task: "A", ...change } as never));
    expect(error).toMatchObject({ category: "invalid_request", field });
    expect(error.message).toMatch(/Next: /);
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("with a label of 32 characters is accepted", async () => {
    const t = await createTestHerd({ agents });
    expect((await t.owner.assign({ agent: "does", task: "A", label: "a".repeat(32) })).label).toHaveLength(32);
  });

  test("of an agent whose name cannot be a label needs one, and says so", async () => {
    const t = await createTestHerd({ agents: { Reviewer: does } });
    expect(await refusalOf(t.owner.assign({ agent: "Reviewer", task: "A" }))).toMatchObject({ reason: "bad_label" });
    expect((await t.owner.assign({ agent: "Reviewer", task: "A", label: "reviewer" })).label).toBe("reviewer");
  });

  test("beyond maxChildren is refused naming the limit", async () => {
    const t = await createTestHerd({ agents, maxChildren: 2 });
    await t.owner.assign({ agent: "asks", task: "A" });
    await t.owner.assign({ agent: "asks", task: "B" });
    await t.idle();
    const error = await refusalOf(t.owner.assign({ agent: "asks", task: "C" }));
    expect(error).toMatchObject({ category: "worker_busy", reason: "too_many_workers", details: { maxChildren: 2 } });
    // Finished ones that only wait for their owner do not count.
    await t.owner.reply({ label: "asks", message: "yes" });
    await t.idle();
    await t.owner.assign({ agent: "asks", task: "C" });
  });

  test("with a signal aborted before acceptance leaves nothing behind", async () => {
    const t = await createTestHerd({ agents });
    await expect(
      t.owner.assign({ agent: "does", task: "A", signal: AbortSignal.abort(new Error("no")) }),
    ).rejects.toThrow("no");
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("of labels is unique in a workspace, which several owners may share", async () => {
    const t = await createTestHerd({ agents });
    const a = t.herd.owner("a", { workspace: "w" });
    const b = t.herd.owner("b", { workspace: "w" });
    const c = t.herd.owner("c");
    await a.assign({ agent: "asks", task: "A", label: "one" });
    expect(await refusalOf(b.assign({ agent: "asks", task: "B", label: "one" }))).toMatchObject({
      category: "worker_label_exists",
      ids: { label: "one" },
    });
    expect((await b.assign({ agent: "asks", task: "B" })).label).toBe("asks");
    expect((await c.assign({ agent: "asks", task: "C", label: "one" })).label).toBe("one");
  });

  test.each(LOOKS)("by a new owner that %s meanwhile is one whose result comes", async (_what, look) => {
    // At every moment at which the first of the two may be.
    for (let turns = 0; turns < 5; turns++) {
      const t = await createTestHerd({ agents });
      const looked = Promise.allSettled([look(t.owner)]);
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      await t.owner.assign({ agent: "does", task: "A" });
      await looked;
      await t.idle();
      expect(t.owner.results).toMatchObject([{ text: "did A" }]);
      await t.close();
    }
  });
});
