import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "../functions/agent.ts";
import { inMode, modes } from "../../test/support/modes.ts";

/** Works until the test lets it read what came. */
function reader() {
  const gates: (() => void)[] = [];
  const agent: AgentDefinition = {
    description: "reads its steers",
    run: async (_task, worker) => {
      const seen: string[] = [];
      for (;;) {
        await new Promise<void>((resolve) => gates.push(resolve));
        const steers = worker.steers();
        seen.push(...steers.map(({ message }) => message));
        if (seen.includes("stop")) return seen.join(",");
      }
    },
  };
  const next = async () => {
    while (gates.length === 0) await new Promise((resolve) => setImmediate(resolve));
    gates.shift()?.();
  };
  /** What a crash takes along. */
  const forget = () => void gates.splice(0);
  return { agent, next, forget };
}

describe.each(modes)("$name", ({ options: mode }) => {
  const createTestHerd = inMode(mode);

  describe("a steer", () => {
    test("reaches the function at its next look, in the order of acceptance, and makes no second result", async () => {
      const it = reader();
      const t = await createTestHerd({ agents: { it: it.agent } });
      const run = await t.owner.assign({ agent: "it", task: "go" });
      const receipts = await Promise.all(
        ["one", "two", "three"].map((message) => t.owner.steer({ label: "it", message })),
      );
      expect(receipts[0]).toEqual({
        requestId: expect.any(String),
        sessionId: run.sessionId,
        assignmentRequestId: run.requestId,
      });
      await it.next();
      await t.owner.steer({ label: "it", message: "stop" });
      await it.next();
      expect((await t.result()).text).toBe("one,two,three,stop");
      await t.idle();
      expect(t.owner.results).toHaveLength(1);
    });

    test("is kept over a crash and given again", async () => {
      const it = reader();
      const t = await createTestHerd({ agents: { it: it.agent } });
      await t.owner.assign({ agent: "it", task: "go" });
      await t.owner.steer({ label: "it", message: "before" });
      await it.next();
      await new Promise((resolve) => setImmediate(resolve));
      it.forget();
      await t.crash();
      await t.owner.steer({ label: "it", message: "stop" });
      await it.next();
      expect((await t.result()).text).toBe("before,stop");
    });

    test("that was never read is counted in the result", async () => {
      let finish: () => void = () => {};
      const t = await createTestHerd({
        agents: {
          it: { description: "deaf", run: () => new Promise<string>((resolve) => (finish = () => resolve("done"))) },
        },
      });
      await t.owner.assign({ agent: "it", task: "go" });
      await t.owner.steer({ label: "it", message: "listen" });
      finish();
      expect((await t.result()).details).toMatchObject({ unreadSteers: 1 });
    });

    test("is refused with the state and the reason where it cannot be taken", async () => {
      const t = await createTestHerd({
        agents: {
          asks: { description: "a", run: (_task, worker) => worker.askOwner({ question: "?" }) },
          does: { description: "d", run: async () => "done" },
        },
      });
      const quiet = t.herd.owner("quiet");
      await t.owner.assign({ agent: "asks", task: "go" });
      await t.question();
      await expect(t.owner.steer({ label: "asks", message: "x" })).rejects.toMatchObject({
        category: "worker_busy",
        reason: "already_waiting",
        message: expect.stringMatching(/"asks" is blocked.*reply to its question instead/),
      });
      await quiet.assign({ agent: "does", task: "go" });
      await t.idle();
      await expect(quiet.steer({ label: "does", message: "x" })).rejects.toMatchObject({
        reason: "assignment_settling",
      });
      await expect(quiet.steer({ label: "nobody", message: "x" })).rejects.toMatchObject({
        category: "target_not_found",
      });
      await expect(quiet.steer({ label: "does", message: " " })).rejects.toMatchObject({ field: "message" });
    });

    test("wakes a parent that waits for its children", async () => {
      const t = await createTestHerd({
        agents: {
          lead: {
            description: "lead",
            subagents: ["does"],
            run: async (_task, worker) => {
              const part = await worker.assign({ agent: "does", task: "x" });
              const { text } = await part.result();
              return `${text} ${worker
                .steers()
                .map(({ message }) => message)
                .join()}`;
            },
          },
          does: { description: "d", run: async () => "done" },
        },
      });
      const script = t.scripted("does");
      await t.owner.assign({ agent: "lead", task: "go" });
      const child = await script.run();
      await child.turn();
      await t.idle();
      expect((await t.owner.list()).workers).toMatchObject([{ label: "lead", state: "blocked", steerable: true }, {}]);
      await t.owner.steer({ label: "lead", message: "hurry" });
      await t.idle();
      expect((await t.owner.list()).workers).toMatchObject([{ label: "lead", state: "blocked" }, {}]);
      await child.settle("played");
      expect((await t.result()).text).toBe("played hurry");
    });

    test("through the tool speaks the tool's JSON", async () => {
      const it = reader();
      const t = await createTestHerd({ agents: { it: it.agent } });
      const run = await t.owner.assign({ agent: "it", task: "go" });
      expect(await t.owner.subagent({ action: "steer", label: "it", message: "stop" })).toEqual({
        ok: true,
        action: "steer",
        label: "it",
        request_id: expect.any(String),
        session_id: run.sessionId,
        assignment_request_id: run.requestId,
      });
      await it.next();
      expect((await t.result()).text).toBe("stop");
    });

    test("to a backend is ordered at least once, until it says that it was heard", async () => {
      const t = await createTestHerd({ agents: { it: { description: "x", run: async () => "" } } });
      const script = t.scripted("it");
      await t.owner.assign({ agent: "it", task: "go" });
      const run = await script.run();
      await run.turn();
      await t.owner.steer({ label: "it", message: "left" });
      await t.crash();
      await t.idle();
      expect(
        run.orders.filter(({ kind }) => kind === "steer").map((order) => (order as { message: string }).message),
      ).toEqual(["left", "left"]);
      expect(await run.hear()).toBe(true);
      expect(await run.hear()).toBe(false);
      await t.crash();
      await t.idle();
      expect(run.orders.filter(({ kind }) => kind === "steer")).toHaveLength(2);
    });
  });
});
