import { beforeAll, describe, expect, test } from "vitest";
import type { VisitRequest } from "../index.ts";
import { FaultPlan, faultyStore } from "../store/faulty.ts";
import { memoryStore } from "../store/memory.ts";
import { modes, playIn } from "../../test/support/modes.ts";
import { asking, gate, open, parked, ruleOf, visit } from "../../test/support/visits.ts";

describe.each(modes)("$name", ({ options: mode }) => {
  beforeAll(() => playIn(mode));

  describe("a visit", () => {
    test("that only starts comes to the run's result, and leaves nothing", async () => {
      const t = await open();
      expect(await visit(t, { start: { agent: "asks", input: [] } })).toEqual({
        action: "started",
        kind: "result",
        cancelled: [],
        requestId: expect.any(String),
        result: "[]",
      });
      await t.idle();
      expect(await parked(t)).toEqual([]);
      expect(await t.herd.owners()).toEqual([]);
    });

    test("without any part does nothing and says so", async () => {
      const t = await open();
      expect(await visit(t, {})).toEqual({ action: "none", kind: "none", cancelled: [] });
    });

    test("that starts a run which asks comes to its asks and to what resumes it", async () => {
      const t = await open();
      const outcome = await visit(t, {
        start: {
          agent: "asks",
          input: [
            [
              { question: "a?", groupId: "g", expiresAt: "2026-03-02T00:00:00Z" },
              { question: "b?", groupId: "g", expiresAt: "2026-03-01T12:00:00Z" },
            ],
          ],
        },
      });
      const entries = await parked(t);
      const ids = entries.map(({ id }) => id);
      expect(outcome).toEqual({
        action: "started",
        kind: "asks",
        cancelled: [],
        requestId: entries[0]?.requestId,
        asks: entries,
        suspended: {
          interactionId: ids[0],
          interactionIds: ids,
          callerInteractionIds: ids,
          resumeOwner: entries[0]?.requestId,
          expiresAt: "2026-03-01T12:00:00.000Z",
        },
      });
    });

    test("that starts a run which asks a person alone comes to parked, and both kinds are told apart", async () => {
      const t = await open();
      const person = await visit(t, { start: { agent: "asks", input: [{ question: "May I?", to: "user" }] } });
      expect(person).toMatchObject({ kind: "parked", suspended: { callerInteractionIds: [] } });
      expect(person).not.toHaveProperty("asks");
      const both = await visit(t, {
        start: {
          agent: "asks",
          input: [
            [
              { question: "program?", groupId: "g" },
              { question: "person?", groupId: "g", to: "user" },
            ],
          ],
        },
      });
      expect(both.asks).toMatchObject([{ question: "program?" }]);
      expect(both.suspended?.interactionIds).toHaveLength(2);
      expect(both.suspended?.callerInteractionIds).toEqual([both.asks?.[0]?.id]);
    });

    test("that resumes drives the run inline: to its next ask, then to its result", async () => {
      const t = await open();
      const [first = ""] = await asking(t, { question: "1?" }, { question: "2?" });
      const again = await visit(t, { resume: [{ id: first, payload: "one" }] });
      expect(again).toMatchObject({ action: "resumed", kind: "asks", asks: [{ question: "2?", askedBy: ["asks"] }] });
      await t.crash();
      const end = await visit(t, { resume: [{ id: again.asks?.[0]?.id ?? "", payload: "two" }] });
      expect(end).toMatchObject({ action: "resumed", kind: "result", result: '["one","two"]' });
      await t.idle();
      expect(await parked(t)).toEqual([]);
    });

    test("that answers some of a group comes to those that are left, and one that answers the rest to the result", async () => {
      const t = await open();
      const [a = "", b = "", c = ""] = await asking(t, [
        { question: "a?", groupId: "g" },
        { question: "b?", groupId: "g" },
        { question: "c?", groupId: "g" },
      ]);
      const partly = await visit(t, { resume: [{ id: b, payload: "B" }] });
      expect(partly).toMatchObject({ kind: "asks", asks: [{ id: a }, { id: c }] });
      const rest = [
        { id: a, payload: "A" },
        { id: c, payload: "C" },
      ];
      expect(await visit(t, { resume: rest })).toMatchObject({ kind: "result", result: '[["A","B","C"]]' });
    });

    test("answers a question to the owner with text", async () => {
      const t = await open();
      const { asks } = await visit(t, { start: { agent: "owner", task: "A" } });
      const id = asks?.[0]?.id ?? "";
      expect(await ruleOf(visit(t, { resume: [{ id, payload: 5 }] }))).toBe("must be a string");
      expect(await ruleOf(visit(t, { resume: [{ id, payload: " " }] }))).toBe("answer_mismatch");
      expect(await visit(t, { resume: [{ id, payload: "this" }] })).toMatchObject({ result: "this" });
    });

    test("drives what waits above the ask too, and comes to what the outermost run comes to", async () => {
      const t = await open();
      const { asks, requestId } = await visit(t, { start: { agent: "parent", task: "A" } });
      expect(asks).toMatchObject([{ question: "A?", askedBy: ["parent", "child"] }]);
      const end = await visit(t, { resume: [{ id: asks?.[0]?.id ?? "", payload: "yes" }] });
      expect(end).toMatchObject({ action: "resumed", kind: "result", result: "parent: child: yes" });
      expect(end.requestId).not.toBe(requestId);
    });

    test("that cancels and resumes does both, and that resumes never starts", async () => {
      const t = await open();
      const [one = ""] = await asking(t, { question: "1?" });
      const [two = ""] = await asking(t, { question: "2?" });
      const outcome = await visit(t, {
        cancel: [one, one],
        resume: [{ id: two, payload: "ok" }],
        start: { agent: "waits", task: "never" },
      });
      expect(outcome).toMatchObject({ action: "resumed", cancelled: [one], result: '["ok"]' });
      await t.idle();
      expect(await t.herd.owners()).toEqual([]);
    });

    test("raises what the run failed of, which is gone then", async () => {
      const t = await open();
      const { asks } = await visit(t, { start: { agent: "fails", task: "A" } });
      const failure = await visit(t, { resume: [{ id: asks?.[0]?.id ?? "", payload: "go" }] }).catch((e: unknown) => e);
      expect(failure).toMatchObject({
        category: "internal_failure",
        reason: "run_failed",
        details: { error: { code: "worker_error", message: "it cannot be done" } },
      });
      await t.idle();
      expect(await parked(t)).toEqual([]);
      const next = await visit(t, { start: { agent: "fails", task: "A" } });
      const resume = [{ id: next.asks?.[0]?.id ?? "", payload: "go" }];
      const { requestId: take = "" } = await visit(t, { resume, receivesOutcome: false });
      const taken = await visit(t, { take }).catch((e: unknown) => e);
      expect(taken).toMatchObject({ reason: "run_failed", message: expect.stringContaining('The run "fails" failed') });
      expect(await parked(t)).toEqual([]);
    });

    test("with receivesOutcome: false comes to nothing, and the outcome waits", async () => {
      const t = await open();
      const [id = ""] = await asking(t, { question: "1?" });
      const outcome = await visit(t, { resume: [{ id, payload: "ok" }], receivesOutcome: false });
      expect(outcome).toMatchObject({ action: "resumed", kind: "none" });
      expect(await parked(t)).toMatchObject([{ id: outcome.requestId, status: "finished", result: '["ok"]' }]);
      expect(await visit(t, { take: outcome.requestId ?? "" })).toMatchObject({ action: "taken", result: '["ok"]' });
      expect(await parked(t)).toEqual([]);
    });

    test("with waits: false comes to nothing as soon as it is on disk, and the outcome waits", async () => {
      const t = await open();
      const start = { agent: "waits", task: "A" };
      const outcome = await visit(t, { start, waits: false, id: "v" });
      expect(outcome).toEqual({ action: "started", kind: "none", cancelled: [], requestId: expect.any(String) });
      expect(await visit(t, { start, waits: false, id: "v" })).toEqual(outcome);
      await gate.begun.promise;
      gate.held.resolve();
      await t.idle();
      expect(await parked(t)).toMatchObject([{ id: outcome.requestId, status: "finished", result: "waited" }]);
      const taken = await visit(t, { take: outcome.requestId ?? "", waits: false });
      expect(taken).toMatchObject({ action: "taken", kind: "result", result: "waited" });
    });

    test("that stops waiting leaves the outcome on the subject", async () => {
      const t = await open();
      const gone = new AbortController();
      const visiting = visit(t, { start: { agent: "waits", task: "A" }, signal: gone.signal });
      await gate.begun.promise;
      gone.abort(new Error("had enough"));
      await expect(visiting).rejects.toThrow("had enough");
      gate.held.resolve();
      await t.idle();
      expect(await parked(t)).toMatchObject([{ status: "finished", result: "waited" }]);
    });

    test("gets the outcome instead of a receiver and of a handle that waits", async () => {
      const t = await open();
      const told: string[] = [];
      t.herd.receive({ scope: "shop" }, { onResult: ({ text }) => told.push(text) });
      const visiting = visit(t, { start: { agent: "waits", task: "A" } });
      await gate.begun.promise;
      gate.held.resolve();
      expect(await visiting).toMatchObject({ result: "waited" });
      await t.idle();
      expect(told).toEqual([]);
    });

    test("that was told an outcome has consumed it, whatever dies right then", async () => {
      const t = await open();
      expect(await visit(t, { start: { agent: "asks", input: [] } })).toMatchObject({ result: "[]" });
      await t.crash();
      expect(await parked(t)).toEqual([]);
      expect(await t.herd.owners()).toEqual([]);
    });

    test("finds entries though it knows more keys than the run had", async () => {
      const t = await open();
      const [id = ""] = await asking(t, { question: "1?" }, { question: "2?" });
      const wider = { scope: "shop", keys: { order: "7", customer: "ada" } };
      const again = await t.herd.visit({ subject: wider, resume: [{ id, payload: "1" }] });
      expect(again).toMatchObject({ kind: "asks", asks: [{ question: "2?" }] });
    });

    test("that cancels and starts does both and tells both", async () => {
      const t = await open();
      const [id = ""] = await asking(t, { question: "1?" });
      const outcome = await visit(t, { cancel: [id], start: { agent: "says", task: "A" } });
      expect(outcome).toMatchObject({
        action: "started",
        kind: "result",
        cancelled: [id],
        result: { status: "failed" },
      });
      await t.idle();
      expect(await parked(t)).toEqual([]);
    });

    test("that resumes a run which then asks a person comes to parked, under a new id", async () => {
      const t = await open();
      const [id = ""] = await asking(t, { question: "1?" }, { question: "May I?", to: "user" });
      const outcome = await visit(t, { resume: [{ id, payload: "x" }] });
      expect(outcome).toMatchObject({ action: "resumed", kind: "parked" });
      expect(outcome.suspended?.interactionId).not.toBe(id);
      expect(await t.herd.inbox.list()).toMatchObject([{ askId: outcome.suspended?.interactionId }]);
    });
  });

  describe("a started run", () => {
    test.each<[VisitRequest["start"], unknown]>([
      [{ agent: "extras", task: "T", input: { sku: 1 } }, ["T", { sku: 1 }, {}]],
      [{ agent: "extras", input: { sku: 1, task: "from input" } }, ["from input", { sku: 1, task: "from input" }, {}]],
      [{ agent: "extras", input: { sku: 1 } }, ['{"sku":1}', { sku: 1 }, {}]],
      [{ agent: "extras", task: "T" }, ["T", null, {}]],
    ])("of %j reads %j", async (start, read) => {
      const t = await open();
      const { result } = await visit(t, { start: start as never });
      expect(JSON.parse(String(result))).toEqual(read);
    });

    test("reads the extras that its definition declares, and its children inherit none", async () => {
      const t = await open();
      const { result } = await visit(t, { start: { agent: "extras", task: "T" }, extras: { locale: "es" } });
      expect(JSON.parse(String(result))).toEqual(["T", null, { locale: "es" }]);
      const heir = await visit(t, { start: { agent: "heir", task: "T" }, extras: { locale: "es" } });
      expect(JSON.parse(String(heir.result))).toEqual([{ locale: "es" }, ["T", null, {}]]);
    });

    test("without a task and without input is refused by that name", async () => {
      const t = await open();
      await expect(visit(t, { start: { agent: "asks" } })).rejects.toMatchObject({
        reason: "invalid_field",
        field: "start.task",
      });
    });

    test("carries metadata to its questions and its outcome", async () => {
      const t = await open();
      const metadata = { cart: 1 };
      const start = { agent: "asks", input: [{ question: "1?" }], metadata } as const;
      const { asks } = await visit(t, { start: start as never });
      expect(asks).toMatchObject([{ metadata }]);
      await visit(t, { resume: [{ id: asks?.[0]?.id ?? "", payload: "x" }], receivesOutcome: false });
      expect(await parked(t)).toMatchObject([{ status: "finished", metadata }]);
    });

    test("has a label of its own however many there are", async () => {
      const t = await open();
      for (let n = 0; n < 3; n++) await asking(t, { question: `${n}?` });
      expect((await parked(t)).map(({ label }) => label)).toEqual(["asks", "asks", "asks"]);
    });
  });

  describe("with an id", () => {
    test("the same visit is made once, and gives the same outcome, also after a crash", async () => {
      const t = await open();
      const start = { agent: "asks", input: [{ question: "1?" }] };
      const first = await visit(t, { start, id: "v-1" });
      await t.crash();
      expect(await visit(t, { start, id: "v-1" })).toEqual(first);
      expect(await parked(t)).toHaveLength(1);
      const resume = [{ id: first.asks?.[0]?.id ?? "", payload: "x" }];
      const end = await visit(t, { resume, id: "v-2" });
      expect(await visit(t, { resume, id: "v-2" })).toEqual(end);
      expect(await ruleOf(visit(t, { cancel: ["x"], id: "v-2" }))).toBe("id_reused");
      const done = await visit(t, { start: { agent: "asks", input: [] }, receivesOutcome: false });
      const took = await visit(t, { take: done.requestId ?? "", id: "v-3" });
      expect(await visit(t, { take: done.requestId ?? "", id: "v-3" })).toEqual(took);
    });

    test("two at once are one", async () => {
      const t = await open();
      const start = { agent: "asks", input: [{ question: "1?" }] };
      const [one, two] = await Promise.all([visit(t, { start, id: "v" }), visit(t, { start, id: "v" })]);
      expect(two).toEqual(one);
      expect(await parked(t)).toHaveLength(1);
    });

    test("of two at once the second is made when the first cannot be stored", async () => {
      const plan = new FaultPlan();
      const store = faultyStore(memoryStore(), plan);
      const t = await open({ store, reopen: { attempts: 1, pauseMs: 0 } });
      await t.idle();
      const batch = plan.holdBatch();
      const request = { id: "v", start: { agent: "asks", input: [] } };
      const first = ruleOf(visit(t, request));
      await batch.reached;
      const second = visit(t, request);
      await new Promise((resolve) => setImmediate(resolve));
      // It fails, again at its second try, and alone; what is empty can be written in between.
      plan.failBatches(2, { after: -1 });
      plan.failBatches(1, { after: 2 });
      batch.release();
      expect(await first).toBe("undone");
      expect(await second).toMatchObject({ kind: "result", result: "[]" });
    });
  });
});
