import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "../functions/agent.ts";
import { inMode, modes } from "../../test/support/modes.ts";

const does: AgentDefinition = { description: "does", run: async (task) => `did ${task}` };
const asks: AgentDefinition = {
  description: "asks",
  run: async (task, worker) => `${task}: ${await worker.askOwner({ question: `${task}?` })}`,
};
const agents = { does, asks };

describe.each(modes)("$name", ({ options: mode }) => {
  const createTestHerd = inMode(mode);

  describe("a reusable worker", () => {
    test("is ready after its result was delivered and takes the next task in the same session", async () => {
      const t = await createTestHerd({ agents });
      const first = await t.owner.assign({ agent: "does", task: "one", label: "w", reusable: true });
      await first.result();
      expect((await t.owner.list()).workers).toMatchObject([{ label: "w", state: "ready", steerable: false }]);
      expect((await t.owner.list()).workers[0]).not.toHaveProperty("activeRequestId");
      const second = await t.owner.assign({ label: "w", task: "two" });
      expect(second.requestId).not.toBe(first.requestId);
      expect(second.sessionId).toBe(first.sessionId);
      expect((await second.result()).text).toBe("did two");
      expect(t.owner.results.map(({ text }) => text)).toEqual(["did one", "did two"]);
      // Earlier results stay their own.
      expect((await (await t.herd.assignment(first.requestId)).result()).text).toBe("did one");
    });

    test("is busy until its result is acknowledged: delivery, not idleness, opens the gate", async () => {
      const t = await createTestHerd({ agents });
      const owner = t.herd.owner("slow");
      const run = await owner.assign({ agent: "does", task: "one", label: "w", reusable: true });
      await t.idle();
      await expect(owner.assign({ label: "w", task: "two" })).rejects.toMatchObject({
        category: "worker_busy",
        reason: "not_ready",
        details: { state: "settling" },
        message: expect.stringMatching(/"w" takes no task now: it is settling.*wait for its result/),
      });
      await run.result();
      expect((await (await owner.assign({ label: "w", task: "two" })).result()).text).toBe("did two");
    });

    test("with wait: true is waited for", async () => {
      const t = await createTestHerd({ agents });
      await t.owner.assign({ agent: "asks", task: "one", label: "w", reusable: true });
      const question = await t.question();
      const waiting = t.owner.assign({ label: "w", task: "two", wait: true });
      await t.idle();
      await question.reply("yes");
      const second = await waiting;
      await (await t.question()).reply("no");
      expect((await second.result()).text).toBe("two: no");
    });

    test("with wait: true stops waiting when its signal says so", async () => {
      const t = await createTestHerd({ agents });
      await t.owner.assign({ agent: "asks", task: "one", label: "w", reusable: true });
      await t.question();
      const controller = new AbortController();
      const waiting = t.owner.assign({ label: "w", task: "two", wait: true, signal: controller.signal });
      await t.idle();
      controller.abort(new Error("enough"));
      await expect(waiting).rejects.toThrow("enough");
    });

    test("that fails is ready again, and one that asks keeps its questions apart by assignment", async () => {
      let fail = true;
      const moody: AgentDefinition = {
        description: "moody",
        run: async (task, worker) => {
          if (fail) throw new Error("not today");
          return worker.askOwner({ question: `${task}?` });
        },
      };
      const t = await createTestHerd({ agents: { moody } });
      const first = await t.owner.assign({ agent: "moody", task: "one", label: "w", reusable: true });
      expect(await first.result()).toMatchObject({ status: "failed" });
      fail = false;
      const second = await t.owner.assign({ label: "w", task: "two" });
      const question = await t.question();
      expect(question.requestId).toBe(second.requestId);
      await t.crash();
      await t.owner.reply({ askId: question.askId, message: "yes" });
      expect((await (await t.herd.assignment(second.requestId)).result()).text).toBe("yes");
    });

    test("is kept over a crash and never started by itself", async () => {
      let runs = 0;
      const counted: AgentDefinition = { description: "counts", run: async (task) => `${task} ${++runs}` };
      const t = await createTestHerd({ agents: { counted } });
      await (await t.owner.assign({ agent: "counted", task: "one", label: "w", reusable: true })).result();
      await t.crash();
      await t.idle();
      expect((await t.owner.list()).workers).toMatchObject([{ label: "w", state: "ready" }]);
      expect(runs).toBe(1);
      await (await t.owner.assign({ label: "w", task: "two" })).result();
      await t.owner.close({ label: "w" });
      expect((await t.owner.list()).workers).toEqual([]);
    });

    test.each([
      ["cwd", { cwd: "/" }],
      ["reusable", { reusable: true }],
      ["an unknown field", { tsak: "x" }],
    ])("assigned by its label refuses %s", async (_what, more) => {
      const t = await createTestHerd({ agents });
      await (await t.owner.assign({ agent: "does", task: "one", label: "w", reusable: true })).result();
      await expect(t.owner.assign({ label: "w", task: "two", ...more } as never)).rejects.toMatchObject({
        category: "invalid_request",
      });
    });

    test("that is not reusable never takes a second task", async () => {
      const t = await createTestHerd({ agents });
      await t.owner.assign({ agent: "asks", task: "one", label: "w" });
      await expect(t.owner.assign({ label: "w", task: "two", wait: true })).rejects.toMatchObject({
        reason: "not_ready",
        message: expect.stringMatching(/was not assigned with reusable: true.*assign a fresh worker/),
      });
      await expect(t.owner.assign({ label: "nobody", task: "two" })).rejects.toMatchObject({
        category: "target_not_found",
      });
    });

    test("of a parent takes tasks one after another, over a crash, and ends with its parent", async () => {
      const lead: AgentDefinition = {
        description: "leads",
        subagents: ["does"],
        run: async (_task, worker) => {
          const one = await worker.assign({ agent: "does", task: "one", label: "w", reusable: true });
          const first = (await one.result()).text;
          const answer = await worker.askOwner({ question: "More?" });
          const two = await worker.assign({ label: "w", task: answer });
          return `${first} ${(await two.result()).text}`;
        },
      };
      const t = await createTestHerd({ agents: { does, lead } });
      await t.owner.assign({ agent: "lead", task: "go" });
      const question = await t.question();
      await t.crash();
      await t.owner.reply({ askId: question.askId, message: "two" });
      expect((await t.result()).text).toBe("did one did two");
      await t.idle();
      expect((await t.owner.list()).workers).toEqual([]);
      // Its label is free again.
      await t.owner.assign({ agent: "does", task: "x", label: "w" });
    });

    test("that is waited for until it is ready is not waited for any longer when the herd closes", async () => {
      const t = await createTestHerd({ agents });
      await t.owner.assign({ agent: "asks", task: "one", label: "w", reusable: true });
      await t.question();
      const waiting = t.owner.assign({ label: "w", task: "two", wait: true });
      waiting.catch(() => undefined);
      await t.idle();
      await t.herd.close({ graceMs: 0 });
      await expect(waiting).rejects.toMatchObject({ reason: "herd_closed" });
    });

    test("through the tool speaks the tool's JSON", async () => {
      const t = await createTestHerd({ agents });
      const first = await t.owner.subagent({
        action: "assign",
        agent: "does",
        task: "one",
        label: "w",
        reusable: true,
      });
      expect(first).toMatchObject({ ok: true, label: "w" });
      await t.result();
      await t.idle();
      const second = await t.owner.subagent({ action: "assign", label: "w", task: "two" });
      expect(second).toMatchObject({ ok: true, action: "assign", label: "w", session_id: first.session_id });
      expect((await t.result()).text).toBe("did two");
    });
  });
});
