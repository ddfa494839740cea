import { beforeAll, describe, expect, test } from "vitest";
import type { TestHerd } from "../testing/index.ts";
import { modes, playIn } from "../../test/support/modes.ts";
import { asking, open, parked, ruleOf, subject, visit } from "../../test/support/visits.ts";

describe.each(modes)("$name", ({ options: mode }) => {
  beforeAll(() => playIn(mode));

  describe("an outcome that no visit receives", () => {
    const ended = async (t: TestHerd, agent: "says" | "fails") => {
      const outcome = await visit(t, { start: { agent, task: "A" }, receivesOutcome: false });
      if (agent === "says") return outcome;
      const [{ id = "" } = {}] = await parked(t);
      return visit(t, { resume: [{ id, payload: "go" }], receivesOutcome: false });
    };

    test("waits as finished with what was returned, whatever that looks like", async () => {
      const t = await open();
      const { requestId } = await ended(t, "says");
      await t.crash();
      const result = { status: "failed", error: "no" };
      expect(await parked(t)).toEqual([{ id: requestId, status: "finished", requestId, label: "says", result }]);
    });

    test("waits as failed, once, and whoever takes it fails with it, a worker's tool as well", async () => {
      const t = await open();
      const { requestId = "" } = await ended(t, "fails");
      const error = { code: "worker_error", message: "it cannot be done" };
      expect(await parked(t)).toEqual([{ id: requestId, status: "failed", requestId, label: "fails", error }]);
      await expect(visit(t, { take: requestId })).rejects.toMatchObject({ reason: "run_failed", details: { error } });
      expect(await parked(t)).toEqual([]);
      expect(await ruleOf(visit(t, { take: requestId }))).toBe("entry_gone");
      await ended(t, "fails");
      const { result } = await visit(t, { start: { agent: "takes", task: "A" } });
      expect(JSON.parse(String(result))).toMatchObject({
        ok: false,
        error: { reason: "run_failed", details: { error } },
      });
      expect(await parked(t)).toEqual([]);
    });

    test("goes to the receiver of its scope, once, and leaves the subject with that", async () => {
      const t = await open();
      const [id = ""] = await asking(t, { question: "1?" });
      const told: unknown[] = [];
      t.herd.receive(
        { scope: "shop" },
        { onResult: ({ requestId, text, owner }) => told.push([requestId, text, owner.keys]) },
      );
      const { requestId } = await visit(t, { resume: [{ id, payload: "x" }], receivesOutcome: false });
      await t.idle();
      expect(told).toEqual([[requestId, '["x"]', subject.keys]]);
      expect(await parked(t)).toEqual([]);
    });

    test("is dropped when nobody took it for the whole retention, once, with one event, and its place is free", async () => {
      const t = await open({ retention: { outcomesMs: 60_000 }, maxConcurrentCaller: 2, tickMs: 0 });
      const told: unknown[] = [];
      const listen = () => t.herd.on("dropped", (event) => told.push(event));
      const { requestId } = await ended(t, "says");
      const { requestId: taken = "" } = await ended(t, "says");
      await visit(t, { take: taken });
      const after = (ms: number) => t.herd.tick(new Date(t.clock.now().getTime() + ms));
      await after(59_000);
      expect(await parked(t)).toHaveLength(1);
      await t.crash();
      listen();
      await after(60_000);
      await after(120_000);
      expect(told).toEqual([
        { label: "says", requestId, why: "untaken", owner: { id: expect.any(String), ...subject } },
      ]);
      expect(await parked(t)).toEqual([]);
      await asking(t, { question: "1?" });
      await asking(t, { question: "2?" });
      expect(await parked(t)).toHaveLength(2);
    });

    test("is taken once, also when two take at once", async () => {
      const t = await open();
      const { requestId = "" } = await ended(t, "says");
      const both = await Promise.all([0, 1].map(() => ruleOf(visit(t, { take: requestId }))));
      expect(both).toContain("entry_gone");
      expect(both).toContainEqual({ done: expect.objectContaining({ action: "taken" }) });
    });
  });

  describe("the tools", () => {
    test("list with the names of the public contract, resume, take and cancel", async () => {
      const t = await open();
      const owner = t.herd.owner(subject);
      const [id = ""] = await asking(t, { question: "1?", options: ["a"], groupId: "g" });
      expect(await owner.parkedTool("list_parked", {})).toEqual([
        {
          id,
          status: "asking",
          to: "caller",
          asked_by: ["asks"],
          question: "1?",
          answer_format: "text",
          format_payload: { options: ["a"] },
          group_id: "g",
          created_at: "2026-03-01T09:00:00.000Z",
          expiry_at: "2026-03-31T09:00:00.000Z",
          on_expiry: "kill",
          request_id: id.split(".")[0],
          label: "asks",
        },
      ]);
      const end = await owner.parkedTool("resume_parked", { interaction_id: id, payload: "a" });
      expect(end).toMatchObject({ ok: true, action: "resumed", kind: "result", result: '["a"]' });
      const done = await visit(t, { start: { agent: "asks", input: [] }, receivesOutcome: false });
      expect(await owner.parkedTool("resume_parked", { interaction_id: done.requestId, payload: null })).toMatchObject({
        action: "taken",
        result: "[]",
      });
      const [next = ""] = await asking(t, { question: "2?" });
      expect(await owner.parkedTool("cancel_parked", { ids: [next] })).toEqual({
        ok: true,
        action: "none",
        kind: "none",
        cancelled: [next],
      });
      expect(await owner.parkedTool("list_parked", {})).toEqual([]);
      expect(await owner.parkedTool("cancel_parked", { ids: [next] })).toMatchObject({
        ok: false,
        error: { category: "target_not_found", reason: "entry_gone" },
      });
    });

    test.each([{ concurrency: 1 }, { parkAfter: 0 }, {}])(
      "let a worker resume another run of its subject inline, with %j",
      async (options) => {
        const t = await open(options);
        const [id = ""] = await asking(t, { question: "1?" });
        const { result } = await visit(t, { start: { agent: "resumes", task: "A" } });
        expect(JSON.parse(String(result))).toMatchObject({ ok: true, action: "resumed", result: '["ok"]' });
        expect(id).not.toBe("");
        await t.idle();
        expect(await parked(t)).toEqual([]);
      },
    );

    test("fail the worker's call for a wrong id, and leave the real ask alone", async () => {
      const t = await open();
      const { result } = await visit(t, { start: { agent: "resumes", task: "A" } });
      expect(JSON.parse(String(result))).toMatchObject({ ok: false, error: { reason: "entry_gone" } });
    });
  });
});
