import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { ParkedAskRequest, Worker } from "../index.ts";
import { createTestHerd } from "../testing/index.ts";
import { modes, playIn } from "../../test/support/modes.ts";
import {
  failureOf,
  hurry,
  NOW,
  open,
  owner,
  parked,
  refusals,
  start,
  subject,
  scripts,
} from "../../test/support/asks.ts";

describe.each(modes)("$name", ({ options: mode }) => {
  beforeAll(() => playIn(mode));

  describe("a parked ask", () => {
    test("stands on its subject with what it was asked with, and nothing that is not set", async () => {
      const t = await open();
      const run = await start(t, [
        {
          question: "Which size?",
          answerFormat: "select",
          options: ["S", "M"],
          payload: { sku: 1, note: null },
          groupId: "g-1",
          expiresAt: "2026-04-01T02:00:00+02:00",
          onExpiry: "resume",
        },
      ]);
      expect(await parked(t)).toEqual([
        {
          id: `${run.requestId}.0001`,
          status: "asking",
          requestId: run.requestId,
          label: "asks",
          to: "caller",
          askedBy: ["asks"],
          question: "Which size?",
          answerFormat: "select",
          options: ["S", "M"],
          payload: { sku: 1, note: null },
          groupId: "g-1",
          createdAt: NOW,
          expiresAt: "2026-04-01T00:00:00.000Z",
          onExpiry: "resume",
        },
      ]);
    });

    test("without a deadline has one in 30 days, or in what callerAskTtl says, or none", async () => {
      const dated = async (options: object) => {
        const t = await open(options);
        await start(t, [{ question: "Go on?" }]);
        return (await parked(t))[0]?.expiresAt;
      };
      expect(await dated({})).toBe("2026-03-31T09:00:00.000Z");
      expect(await dated({ callerAskTtl: 60_000 })).toBe("2026-03-01T09:01:00.000Z");
      expect(await dated({ callerAskTtl: null })).toBeUndefined();
    });

    test.each<[ParkedAskRequest, unknown, unknown]>([
      [{ question: "Name?" }, "", ""],
      [{ question: "Go on?", answerFormat: "confirm" }, true, true],
      [{ question: "Go on?", answerFormat: "confirm" }, { answer: "no" }, false],
      [{ question: "Size?", answerFormat: "select", options: [1, { a: 2 }] }, { a: 2 }, { a: 2 }],
      [{ payload: { any: 1 }, answerFormat: "free" }, null, null],
      [
        { question: "Who?", answerFormat: "form", schema: { type: "object", properties: { n: { type: "number" } } } },
        { n: 1 },
        { n: 1 },
      ],
    ])("%j is answered with %j and resolves to %j, also after a crash", async (ask, answer, given) => {
      const t = await open();
      const run = await start(t, [ask]);
      const [entry] = await parked(t);
      await t.crash();
      await owner(t).reply({ askId: entry?.id ?? "", message: answer as string });
      await t.crash();
      const again = await t.herd.assignment(run.requestId);
      expect(JSON.parse((await again.result()).text)).toEqual([given]);
    });

    test.each<[ParkedAskRequest, unknown, string]>([
      [{ question: "Name?" }, 5, "answer_mismatch"],
      [{ question: "Go on?", answerFormat: "confirm" }, "yes", "answer_mismatch"],
      [{ question: "Size?", answerFormat: "select", options: ["S"] }, "XL", "answer_mismatch"],
      [
        { question: "Who?", answerFormat: "form", schema: { properties: { n: { type: "number" } } } },
        { n: "one" },
        "answer_mismatch n",
      ],
      [{ question: "Anything?", answerFormat: "free" }, { "pi-herd:expired": true }, "answer_mismatch"],
    ])("%j refuses %j by every way to answer, and keeps asking", async (ask, answer, reason) => {
      const t = await open();
      const heard: (() => Promise<unknown>)[] = [];
      t.herd.on("question", (question) => heard.push(() => question.reply(answer as string)));
      await start(t, [ask]);
      const [entry] = await parked(t);
      const id = entry?.id ?? "";
      expect(await failureOf(owner(t).reply({ askId: id, message: answer as string }))).toBe(reason);
      expect(await failureOf(heard[0]?.() ?? Promise.resolve())).toBe(reason);
      expect(await failureOf(t.herd.visit({ subject, resume: [{ id, payload: answer as string }] }))).toBe(reason);
      expect(await owner(t).parkedTool("resume_parked", { interaction_id: id, payload: answer })).toMatchObject({
        ok: false,
        error: { reason: "answer_mismatch" },
      });
      expect(await parked(t)).toEqual([entry]);
    });

    test("is answered by whoever shares a key with its subject, and by nobody else", async () => {
      const t = await open();
      const wide = t.herd.owner({ scope: "shop", keys: { order: "7", customer: "ada" } });
      scripts.set("wide", [{ question: "Name?" }]);
      await wide.assign({ agent: "asks", task: "wide" });
      await t.idle();
      const [{ id: askId = "" } = {}] = await parked(t);
      const others = [{ scope: "stock", keys: { order: "7" } }, { scope: "shop", keys: { order: "8" } }, "ada"];
      for (const other of others) {
        expect(await failureOf(t.herd.owner(other).reply({ askId, message: "x" }))).toBe("target_not_found");
      }
      await owner(t).reply({ askId, message: "Ada", id: "r-1" });
      expect(await wide.reply({ askId, message: "Ada", id: "r-1" })).toMatchObject({ askId });
      await t.idle();
      expect(await parked(t)).toMatchObject([{ status: "finished", result: '["Ada"]' }]);
    });

    test("that is no text cannot be answered by the label alone", async () => {
      const t = await open();
      await start(t, [{ question: "Go on?", answerFormat: "confirm" }]);
      expect(await failureOf(owner(t).reply({ label: "asks", message: "yes" }))).toBe("needs_ask_id label");
      const tool = await owner(t).subagent({ action: "reply", label: "asks", message: "yes" });
      expect(tool).toMatchObject({ ok: false, error: { reason: "needs_ask_id" } });
      expect(await parked(t)).toMatchObject([{ status: "asking" }]);
    });

    test("that is text is answered by its label too", async () => {
      const t = await open();
      const run = await start(t, [{ question: "Name?" }]);
      await owner(t).subagent({ action: "reply", label: "asks", message: "Ada" });
      expect((await run.result()).text).toBe('["Ada"]');
    });

    test.each<[object, string]>([
      [{}, "question"],
      [{ question: "q", answerFormat: "select" }, "options"],
      [{ question: "q", answerFormat: "form" }, "schema"],
      [{ question: "q", to: "user", payload: 1 }, "payload"],
      [{ question: "q", to: "user", answerFormat: "free" }, "answerFormat"],
      [{ question: "x".repeat(8_193) }, "question"],
      [{ question: "q", expiresAt: "2026-04-01T02:00:00" }, "expiresAt"],
      [{ question: "q", until: 1 }, "until"],
    ])("%j is refused in the worker, naming %s, and nothing is parked", async (request, field) => {
      const failures: unknown[] = [];
      const run = async (_task: string, worker: Worker) => {
        failures.push(await failureOf(worker.ask(request as ParkedAskRequest)));
        return "done";
      };
      const t = await createTestHerd({ agents: { one: { description: "Asks", run } } });
      onTestFinished(() => t.close());
      await (await t.herd.owner(subject).assign({ agent: "one", task: "A" })).result();
      expect(failures).toEqual([expect.stringMatching(new RegExp(`^(invalid|unknown)_field ${field}$`))]);
      expect(await t.herd.parked(subject)).toEqual([]);
    });
  });

  describe("several asks of one run", () => {
    const group = (n: number): ParkedAskRequest[] =>
      Array.from({ length: n }, (_, at) => ({ question: `${at}?`, groupId: "g" }));

    test("of one group are parked at once, and the run goes on when the last is answered", async () => {
      const t = await open();
      const run = await start(t, [group(3)]);
      const entries = await parked(t);
      expect(entries.map(({ question, groupId }) => [question, groupId])).toEqual([
        ["0?", "g"],
        ["1?", "g"],
        ["2?", "g"],
      ]);
      for (const [at, answer] of [
        [2, "c"],
        [0, "a"],
      ] as const) {
        await owner(t).reply({ askId: entries[at]?.id ?? "", message: answer });
        await t.crash();
        await t.idle();
      }
      expect((await parked(t)).map(({ status }) => status)).toEqual(["running", "asking", "running"]);
      await owner(t).reply({ askId: entries[1]?.id ?? "", message: "b" });
      const again = await t.herd.assignment(run.requestId);
      expect((await again.result()).text).toBe('[["a","b","c"]]');
    });

    test("without a group wait for each other", async () => {
      const t = await open();
      const run = await start(t, [[{ question: "first?" }, { question: "second?" }]]);
      expect(await parked(t)).toMatchObject([{ question: "first?" }]);
      await owner(t).reply({ label: "asks", message: "1" });
      await t.idle();
      expect(await parked(t)).toMatchObject([{ question: "second?", status: "asking" }]);
      await owner(t).reply({ label: "asks", message: "2" });
      expect((await run.result()).text).toBe('[["1","2"]]');
    });

    test("and a question to the owner are never open together", async () => {
      const t = await open();
      const run = await owner(t).assign({ agent: "both", task: "A" });
      await t.idle();
      expect(await parked(t)).toMatchObject([{ question: "owner?" }]);
      await owner(t).reply({ label: "both", message: "1" });
      await t.idle();
      expect(await parked(t)).toMatchObject([{ question: "caller?" }]);
      await owner(t).reply({ label: "both", message: "2" });
      expect((await run.result()).text).toBe('["1","2"]');
    });

    test("are all handed to whoever iterates over the assignment", async () => {
      const t = await open();
      const run = await start(t, [group(3)]);
      const seen: string[] = [];
      for await (const event of run) {
        if (event.type === "result") break;
        seen.push(event.question.question);
        await event.question.reply("ok");
      }
      expect(seen.toSorted()).toEqual(["0?", "1?", "2?"]);
    });
  });

  describe("an ask of a child", () => {
    test("is listed on the subject of the outermost run with its chain, and answered there", async () => {
      const t = await open();
      const run = await start(t, [{ question: "Go on?" }, { question: "Still?" }], "parent");
      const chain = { askedBy: ["parent", "asks"], label: "asks" };
      expect(await parked(t)).toMatchObject([{ question: "Go on?", status: "asking", ...chain }]);
      await t.crash();
      await owner(t).reply({ askId: (await parked(t))[0]?.id ?? "", message: "yes" });
      await t.idle();
      expect(await parked(t)).toMatchObject([{ question: "Still?", ...chain }]);
      await owner(t).reply({ askId: (await parked(t))[0]?.id ?? "", message: "sure" });
      const again = await t.herd.assignment(run.requestId);
      expect((await again.result()).text).toBe('["yes","sure"]');
    });

    test("is pushed to the receiver of that subject, which it names as its owner", async () => {
      const t = await open();
      const told: unknown[] = [];
      t.herd.receive(
        { scope: "shop" },
        { onQuestion: (question) => told.push(question.owner) && question.reply("ok") },
      );
      const run = await start(t, [{ question: "Go on?" }], "parent");
      expect((await run.result()).text).toBe('["ok"]');
      expect(told).toEqual([expect.objectContaining(subject)]);
    });
  });

  describe("an ask to a person", () => {
    const toUser: ParkedAskRequest = { question: "May I?", to: "user", answerFormat: "confirm" };

    test("waits in the inbox, is told there, and its answer goes on with the run", async () => {
      const t = await open();
      const told: unknown[] = [];
      t.herd.inbox.on("asked", ({ question }) => told.push(question));
      t.herd.inbox.on("gone", ({ why }) => told.push(why));
      const run = await start(t, [toUser]);
      const [entry] = await t.herd.inbox.list();
      expect(entry).toMatchObject({ question: "May I?", answerFormat: "confirm", label: "asks", askedBy: ["asks"] });
      expect(await t.herd.inbox.answer({ askId: entry?.askId ?? "", answer: true, id: "a" })).toMatchObject({
        assignmentRequestId: run.requestId,
      });
      expect((await run.result()).text).toBe("[true]");
      expect(await t.herd.inbox.list()).toEqual([]);
      expect(told).toEqual(["May I?", "answered"]);
      await t.herd.inbox.answer({ askId: entry?.askId ?? "", answer: true, id: "a" });
      expect(await failureOf(t.herd.inbox.answer({ askId: entry?.askId ?? "", answer: true }))).toBe(
        "already_answered",
      );
    });

    test("is no program's to answer, and a caller ask no person's", async () => {
      const t = await open();
      await start(t, [
        [
          { question: "caller?", groupId: "g" },
          { ...toUser, groupId: "g" },
        ],
      ]);
      const [caller, user] = await parked(t);
      expect([caller?.to, user?.to]).toEqual(["caller", "user"]);
      expect(await t.herd.inbox.list()).toMatchObject([{ askId: user?.id }]);
      expect(await failureOf(owner(t).reply({ askId: user?.id ?? "", message: true }))).toBe("asks_a_person");
      expect(await failureOf(t.herd.inbox.answer({ askId: caller?.id ?? "", answer: "x" }))).toBe("asks_its_caller");
      expect(await failureOf(t.herd.inbox.answer({ askId: "nothing", answer: "x" }))).toBe("target_not_found");
      await owner(t).assign({ agent: "both", task: "A" });
      const toOwner = (await t.idle(), await parked(t)).find(({ question }) => question === "owner?");
      expect(await failureOf(t.herd.inbox.answer({ askId: toOwner?.id ?? "", answer: "x" }))).toBe("asks_its_caller");
    });

    test("is pushed to no receiver and given by no handle", async () => {
      const t = await open();
      const heard: string[] = [];
      t.herd.receive({ scope: "shop" }, { onQuestion: ({ question }) => heard.push(question) });
      const run = await start(t, [toUser]);
      expect(heard).toEqual([]);
      expect((await run.status()).question).toBeUndefined();
    });
  });
});

// A function that is parked out of memory does not get this far.
test("an ask with wait: false is refused while another question is open", async () => {
  const t = await open();
  await owner(t).assign({ agent: "hasty", task: "A" });
  await t.idle();
  expect(await parked(t)).toMatchObject([{ question: "first?" }]);
  hurry.resolve();
  await t.idle();
  expect(refusals).toEqual(["already_waiting"]);
  expect(await parked(t)).toMatchObject([{ question: "first?", status: "asking" }]);
});
