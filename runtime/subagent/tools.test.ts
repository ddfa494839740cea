import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "../functions/agent.ts";
import { tools } from "../index.ts";
import { createTestHerd, type TestHerd } from "../testing/index.ts";

const asks: AgentDefinition = { description: "asks", run: (task, worker) => worker.askOwner({ question: `${task}?` }) };
const agents = { asks, lead: { ...asks, subagents: ["asks"] }, off: { ...asks, enabled: false } };

async function rowsOf(t: TestHerd): Promise<string> {
  await t.idle();
  return JSON.stringify(await t.store.range({ gte: "a", lt: "r" }));
}

describe("the subagent tool", () => {
  test("lists, assigns, replies and closes in the tool's JSON", async () => {
    const t = await createTestHerd({ agents });
    expect(await t.owner.subagent({ action: "list" })).toEqual({
      ok: true,
      workers: [],
      agent_definitions: [
        { name: "asks", description: "asks" },
        { name: "lead", description: "asks", subagents: ["asks"] },
        { name: "off", description: "asks", enabled: false },
      ],
    });
    const assigned = await t.owner.subagent({ action: "assign", agent: "asks", task: "A", label: "one" });
    expect(assigned).toEqual({
      ok: true,
      action: "assign",
      label: "one",
      pane_id: expect.stringMatching(/^function:/),
      session_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      request_id: expect.any(String),
    });
    const question = await t.question();
    const listed = await t.owner.subagent({ action: "list" });
    expect(listed.workers).toMatchObject([
      {
        label: "one",
        kind: "pi-herd",
        state: "blocked",
        steerable: false,
        managed: true,
        agent_definition: "asks",
        active_request_id: assigned.request_id,
        pi_session_id: assigned.session_id,
        owner_session_id: "tester",
        workspace_id: "tester",
        tokens: {},
      },
    ]);
    expect(await t.owner.subagent({ action: "reply", label: "one", message: "yes" })).toEqual({
      ok: true,
      action: "reply",
      label: "one",
      request_id: expect.any(String),
      ask_id: question.askId,
      assignment_request_id: assigned.request_id,
      session_id: assigned.session_id,
    });
    expect((await t.result()).text).toBe("yes");
    await t.owner.subagent({ action: "assign", agent: "asks", task: "B", label: "two" });
    expect(await t.owner.subagent({ action: "close", label: "two" })).toEqual({
      ok: true,
      action: "close",
      label: "two",
    });
    expect(await t.owner.subagent({ action: "close", label: "two" })).toMatchObject({
      ok: false,
      error: { category: "target_not_found", operation: "close", ids: { label: "two" }, rollbackOccurred: false },
    });
  });

  test.each<[string, unknown, string]>([
    ["no object", "list", "request"],
    ["no action", {}, "action"],
    ["an action of old", { action: "start", agent: "asks", task: "x" }, "action"],
    ["another action of old", { action: "resume", session: "x", task: "x" }, "action"],
    ["an unknown field", { action: "list", foo: 1 }, "foo"],
    ["several unknown fields", { action: "assign", agent: "asks", task: "x", foo: 1, bar: 2 }, "foo, bar"],
    ["blank strings, all named at once", { action: "assign", agent: " ", task: "" }, "agent, task"],
    [
      "a blank label, cwd and fork",
      { action: "assign", agent: "asks", task: "x", label: "", cwd: " ", fork: "" },
      "label, cwd, fork",
    ],
    ["a label of 33 characters", { action: "close", label: "a".repeat(33) }, "label"],
    ["a label with a capital", { action: "reply", label: "One", message: "x" }, "label"],
    ["a label with a dot", { action: "assign", agent: "asks", task: "x", label: "a.b" }, "label"],
    ["a timeout of 5000", { action: "assign", agent: "asks", task: "x", timeoutMs: 5_000 }, "timeoutMs"],
    ["a timeout of 300001", { action: "assign", agent: "asks", task: "x", timeoutMs: 300_001 }, "timeoutMs"],
    ["a timeout that is a string", { action: "assign", agent: "asks", task: "x", timeoutMs: "6000" }, "timeoutMs"],
    ["a bad timeout on an action without one", { action: "list", timeoutMs: 1 }, "timeoutMs"],
    ["nothing to assign to", { action: "assign", task: "x" }, "agent"],
    ["agent and session", { action: "assign", agent: "asks", session: "x", task: "x" }, "session"],
    [
      "session and fork and message",
      { action: "assign", session: "x", fork: "y", message: "z", task: "x" },
      "fork, message",
    ],
    ["a message on assign", { action: "assign", agent: "asks", task: "x", message: "y" }, "message"],
    [
      "reusable on the label form",
      { action: "assign", label: "one", task: "x", reusable: true, cwd: "/" },
      "reusable, cwd",
    ],
    ["a timeout on the label form", { action: "assign", label: "one", task: "x", timeoutMs: 6_000 }, "timeoutMs"],
    ["files on list", { action: "list", files: ["missing"] }, "files"],
    ["files on close", { action: "close", label: "one", files: ["missing"] }, "files"],
    ["no task", { action: "assign", agent: "asks" }, "task"],
    ["a steer without a message", { action: "steer", label: "one" }, "message"],
    ["a steer without a label", { action: "steer", message: "x" }, "label"],
    ["a close without a label", { action: "close" }, "label"],
    ["files that are not paths", { action: "assign", agent: "asks", task: "x", files: [1] }, "files"],
    ["reusable that is no boolean", { action: "assign", agent: "asks", task: "x", reusable: "yes" }, "reusable"],
  ])("refuses %s, naming every field, and changes nothing", async (_what, request, field) => {
    const t = await createTestHerd({ agents });
    await t.owner.assign({ agent: "asks", task: "A", label: "one" });
    const before = await rowsOf(t);
    const answer = await t.owner.subagent(request);
    expect(answer).toMatchObject({ ok: false, error: { category: "invalid_request", field, rollbackOccurred: false } });
    expect(answer.error.message).toMatch(/Next: /);
    expect(await rowsOf(t)).toBe(before);
  });

  test.each<[string, object, string]>([
    ["an unknown agent", { agent: "nobody" }, "invalid_request"],
    ["a disabled agent", { agent: "off" }, "invalid_request"],
    ["a taken label", { agent: "asks", label: "one" }, "worker_label_exists"],
    ["a missing file", { agent: "asks", files: ["missing.md"] }, "invalid_request"],
  ])("answers %s with its category and changes nothing", async (_what, change, category) => {
    const t = await createTestHerd({ agents });
    await t.owner.assign({ agent: "asks", task: "A", label: "one" });
    const before = await rowsOf(t);
    expect(await t.owner.subagent({ action: "assign", task: "x", ...change })).toMatchObject({
      ok: false,
      error: { category },
    });
    expect(await rowsOf(t)).toBe(before);
  });

  test("is described for models with its name and schema", () => {
    expect(tools.subagent.name).toBe("subagent");
    expect(tools.askOwner.name).toBe("ask_owner");
    expect(tools.askOwner.inputSchema).toMatchObject({ required: ["question"], additionalProperties: false });
  });
});

describe("the ask_owner tool of a function worker", () => {
  const tool = async (
    input: unknown,
    batch: string[],
    around?: (worker: Parameters<AgentDefinition["run"]>[1]) => Promise<unknown>,
  ) => {
    const answers: any[] = [];
    const t = await createTestHerd({
      agents: {
        it: {
          description: "x",
          run: async (_task, worker) => {
            const beside = around?.(worker);
            answers.push(await worker.askOwnerTool(input, { batch }));
            await beside;
            return "done";
          },
        },
      },
    });
    await t.owner.assign({ agent: "it", task: "go" });
    await t.idle();
    return { t, answers };
  };

  test("gives the answer with its ids", async () => {
    const { t, answers } = await tool({ question: "Which?" }, ["ask_owner"]);
    const question = await t.question();
    await question.reply("this");
    await t.idle();
    expect(answers).toEqual([
      { ok: true, askId: question.askId, assignmentRequestId: question.requestId, answer: "this" },
    ]);
  });

  test.each<[string, unknown, string[], string]>([
    ["beside another call", { question: "Which?" }, ["read", "ask_owner"], "not_sole_tool_call"],
    ["a blank question", { question: " " }, ["ask_owner"], "invalid_field"],
    ["no question", {}, ["ask_owner"], "invalid_field"],
    ["an unknown field", { question: "x", to: "user" }, ["ask_owner"], "unknown_field"],
    ["a missing file", { question: "x", files: ["missing"] }, ["ask_owner"], "unreadable_file"],
  ])("refuses %s and stores nothing", async (_what, input, batch, reason) => {
    const { t, answers } = await tool(input, batch);
    expect(answers).toMatchObject([{ ok: false, error: { category: "invalid_request", reason } }]);
    expect(t.owner.questions).toEqual([]);
    expect((await t.result()).text).toBe("done");
  });

  test("is refused while a step is pending", async () => {
    let finish: () => void = () => {};
    const { t, answers } = await tool({ question: "Which?" }, ["ask_owner"], async (worker) => {
      setTimeout(() => finish(), 0);
      return worker.step("slow", () => new Promise<void>((resolve) => (finish = resolve)));
    });
    await t.result();
    expect(answers).toMatchObject([{ ok: false, error: { reason: "not_sole_tool_call" } }]);
  });
});
