import { beforeAll, describe, expect, test } from "vitest";
import type { DoorRequest } from "../index.ts";
import { modes, playIn } from "../../test/support/modes.ts";
import { failureOf, gate, NOW, open, parked, resumeFirst, secret, subject } from "../../test/support/doors.ts";

describe.each(modes)("$name", ({ options: mode }) => {
  beforeAll(() => playIn(mode));

  describe("a submission", () => {
    const submit = (target: string, more: object = {}) =>
      ({ name: `submit-${target}`, kind: "submit", subject, target, ...more }) as DoorRequest;

    test("has a record that is running, and then succeeded with the result", async () => {
      const t = await open();
      const runId = await (await t.herd.door(submit("waits"))).visit({});
      await gate.begun.promise;
      const running = { run_id: runId, door: "submit-waits", agent: "waits", status: "running", started_at: NOW };
      expect(await t.herd.run(runId)).toEqual(running);
      gate.held.resolve();
      await t.idle();
      const ended = { ...running, status: "succeeded", finished_at: NOW };
      expect(await t.herd.run(runId)).toEqual({ ...ended, result: "waited", resumed_interactions: [] });
      expect(await t.herd.runs()).toEqual([ended]);
      await t.crash();
      expect(await t.herd.run(runId)).toMatchObject({ status: "succeeded", result: "waited" });
      expect(await parked(t)).toMatchObject([{ status: "finished" }]);
    });

    test("that fails has a record that says of what", async () => {
      const t = await open();
      const runId = await (await t.herd.door(submit("fails"))).visit({});
      await t.idle();
      expect(await t.herd.run(runId)).toMatchObject({
        status: "failed",
        error: { code: "worker_error", message: "it cannot be done" },
      });
    });

    test("that asks its caller ends as parked with exactly its asks, whatever comes of it later", async () => {
      const t = await open();
      const runId = await (await t.herd.door(submit("clerk"))).visit({ task: "A" });
      await t.idle();
      const record = await t.herd.run(runId);
      expect(record).toMatchObject({ status: "parked", resumed_interactions: [] });
      expect(record.result).toEqual({ asks: [expect.objectContaining({ to: "caller", question: "Refund?" })] });
      const [entry] = await parked(t);
      await t.herd.visit({ subject, resume: [{ id: entry?.id ?? "", payload: true }] });
      expect(await t.herd.run(runId)).toEqual(record);
    });

    test("that parked before a crash, and is answered before anybody looks, ends as parked all the same", async () => {
      const t = await open();
      const runId = await (await t.herd.door(submit("clerk"))).visit({ task: "A" });
      await t.crash();
      await t.idle();
      const [entry] = await parked(t);
      await t.herd.owner(subject).reply({ askId: entry?.id ?? "", message: true });
      await t.idle();
      expect(await t.herd.run(runId)).toMatchObject({ status: "parked", result: { asks: [{ id: entry?.id }] } });
    });

    test("that answers what another one asks ends with what the run comes to, and says so", async () => {
      const t = await open();
      const asked = await (await t.herd.door(submit("clerk"))).visit({ task: "A" });
      await t.idle();
      await t.crash();
      const [entry] = await parked(t);
      const answers = { name: "answers", contract: { resumeExpr: resumeFirst, startExpr: "null" } };
      const answered = await (await t.herd.door(submit("clerk", answers))).visit({});
      await t.idle();
      expect(await t.herd.run(asked)).toMatchObject({ status: "parked", result: { asks: [{ id: entry?.id }] } });
      expect(await t.herd.run(answered)).toMatchObject({
        status: "succeeded",
        result: { task: "A", answer: true },
        resumed_interactions: [entry?.id],
      });
    });

    test("that answers some of a group ends with those that are left", async () => {
      const t = await open();
      const { asks = [] } = await t.herd.visit({ subject, start: { agent: "asks-two", task: "A" } });
      const answers = asks.map(({ id }) => ({
        contract: { resumeExpr: () => ({ id, payload: "x" }), startExpr: () => null },
      }));
      const doors = await Promise.all(
        answers.map((more, at) => t.herd.door(submit("clerk", { ...more, name: `s${at}` }))),
      );
      const ids = await Promise.all(doors.map((door) => door.visit({})));
      await t.idle();
      const [first, second] = await Promise.all(ids.map((id) => t.herd.run(id)));
      expect(first).toMatchObject({ status: "parked", result: { asks: [{ id: asks[1]?.id, status: "asking" }] } });
      expect(second).toMatchObject({ status: "succeeded", result: "xx" });
    });

    test("that came to its questions in another process is listed as parked", async () => {
      const t = await open();
      const door = await t.herd.door(submit("clerk"));
      const asked = new Promise((resolve) => t.herd.on("question", resolve));
      await door.visit({ task: "A" });
      await asked;
      await t.crash();
      expect(await t.herd.runs()).toMatchObject([{ status: "parked" }]);
    });

    test("that parked is resumed by a webhook, its outcome waits, and a later run takes it", async () => {
      const t = await open();
      await (await t.herd.door(submit("clerk"))).visit({ task: "A" });
      await t.idle();
      const webhook = await t.herd.door({
        name: "hook",
        kind: "webhook",
        secret,
        subject,
        target: "clerk",
        contract: { resumeExpr: resumeFirst },
      });
      await webhook.visit({});
      await t.idle();
      const [outcome] = await parked(t);
      expect(outcome).toMatchObject({ status: "finished", result: { task: "A", answer: true } });
      const runId = await (await t.herd.door(submit("taker"))).visit({});
      await t.idle();
      expect(await t.herd.run(runId)).toMatchObject({ status: "succeeded", resumed_interactions: [outcome?.id] });
    });

    test("that asks a person alone ends with what it waits for", async () => {
      const t = await open();
      const runId = await (await t.herd.door(submit("asks-person"))).visit({});
      await t.idle();
      const [entry] = await t.herd.inbox.list();
      expect((await t.herd.run(runId)).result).toEqual({
        "pi-herd:suspended_interaction": {
          interaction_id: entry?.askId,
          expiry_at: expect.any(String),
          resume_owner: entry?.requestId,
          interaction_ids: [entry?.askId],
          caller_interaction_ids: [],
        },
      });
    });

    test("notes what its run resumed and took on its way, and a refused one leaves no record", async () => {
      const t = await open();
      const asked = await t.herd.visit({ subject, start: { agent: "clerk", task: "A" } });
      const done = await t.herd.visit({ subject, start: { agent: "echo", task: "B" }, receivesOutcome: false });
      const runId = await (await t.herd.door(submit("taker"))).visit({});
      await t.idle();
      expect(await t.herd.run(runId)).toMatchObject({
        status: "succeeded",
        resumed_interactions: [asked.asks?.[0]?.id, done.requestId],
      });
      const refusing = await t.herd.door(submit("echo", { contract: { extrasExpr: "{ locale: 1 }" } }));
      expect(await failureOf(refusing.visit({}))).toMatch(/^undeclared_extras/);
      expect(await t.herd.runs()).toHaveLength(1);
    });
  });
});
