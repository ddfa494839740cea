import { describe, expect, onTestFinished, test } from "vitest";
import type { AgentDefinition } from "../functions/agent.ts";
import { HerdError, type ParkedAskRequest, type VisitRequest, type Worker } from "../index.ts";
import { createTestHerd, type TestHerd } from "../testing/index.ts";

const subject = { scope: "shop", keys: { order: "7" } };
const other = { scope: "shop", keys: { order: "8" } };

type Step = ParkedAskRequest | ParkedAskRequest[];

/** Asks what its input lists, one after the other or at once; answers with all the answers. */
async function play(_task: string, worker: Worker): Promise<string> {
  const answers: unknown[] = [];
  for (const step of (worker.input ?? []) as unknown as Step[]) {
    answers.push(
      Array.isArray(step) ? await Promise.all(step.map((each) => worker.ask(each))) : await worker.ask(step),
    );
  }
  return JSON.stringify(answers);
}

let held = Promise.withResolvers<void>();
let begun = Promise.withResolvers<void>();

const agents = {
  asks: { description: "Asks what its input lists", run: play },
  fails: {
    description: "Asks, then fails",
    run: async (_task, worker) => {
      await worker.ask({ question: "Go on?" });
      throw new Error("it cannot be done");
    },
  },
  parent: {
    description: "Has a child that asks",
    subagents: ["child"],
    run: async (task, worker) => `parent: ${(await (await worker.assign({ agent: "child", task })).result()).text}`,
  },
  child: {
    description: "Asks its caller",
    run: async (task, worker) => `child: ${await worker.ask({ question: `${task}?` })}`,
  },
  owner: { description: "Asks its owner", run: async (_task, worker) => worker.askOwner({ question: "Which?" }) },
  extras: {
    description: "Reads its extras",
    extras: ["locale"],
    input: { type: "object", properties: { sku: { type: "number" } }, required: ["sku"] },
    run: async (task, worker) => JSON.stringify([task, worker.input ?? null, worker.extras]),
  },
  waits: {
    description: "Waits",
    run: async () => {
      begun.resolve();
      await held.promise;
      return "waited";
    },
  },
  resumes: {
    description: "Resumes the first ask that it finds",
    run: async (_task, worker) => {
      const entries = await worker.parkedTool("list_parked", {});
      const asking = entries.find((entry: { status: string }) => entry.status === "asking");
      return JSON.stringify(
        await worker.parkedTool("resume_parked", { interaction_id: asking?.id ?? "nothing", payload: "ok" }),
      );
    },
  },
} satisfies Record<string, AgentDefinition>;

async function open(options: object = {}): Promise<TestHerd> {
  held = Promise.withResolvers();
  begun = Promise.withResolvers();
  const t = await createTestHerd({ agents, now: "2026-03-01T09:00:00.000Z", ...options });
  onTestFinished(() => t.close());
  return t;
}

const visit = (t: TestHerd, request: Omit<VisitRequest, "subject">) => t.herd.visit({ subject, ...request });
const parked = (t: TestHerd) => t.herd.parked(subject);

/** Starts a run and gives the ids that it asks with. */
async function asking(t: TestHerd, ...steps: Step[]): Promise<string[]> {
  const outcome = await visit(t, { start: { agent: "asks", input: steps as never } });
  expect(outcome.kind).toBe("asks");
  return (outcome.asks ?? []).map(({ id }) => id);
}

const ruleOf = (call: Promise<unknown>) =>
  call.then(
    (value) => ({ done: value }),
    (error: unknown) => (error instanceof HerdError ? (error.rule ?? error.reason) : error),
  );

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
    await begun.promise;
    held.resolve();
    await t.idle();
    expect(await parked(t)).toMatchObject([{ id: outcome.requestId, status: "finished", result: "waited" }]);
    const taken = await visit(t, { take: outcome.requestId ?? "", waits: false });
    expect(taken).toMatchObject({ action: "taken", kind: "result", result: "waited" });
  });

  test("that stops waiting leaves the outcome on the subject", async () => {
    const t = await open();
    const gone = new AbortController();
    const visiting = visit(t, { start: { agent: "waits", task: "A" }, signal: gone.signal });
    await begun.promise;
    gone.abort(new Error("had enough"));
    await expect(visiting).rejects.toThrow("had enough");
    held.resolve();
    await t.idle();
    expect(await parked(t)).toMatchObject([{ status: "finished", result: "waited" }]);
  });

  test("gets the outcome instead of a receiver and of a handle that waits", async () => {
    const t = await open();
    const told: string[] = [];
    t.herd.receive({ scope: "shop" }, { onResult: ({ text }) => told.push(text) });
    const visiting = visit(t, { start: { agent: "waits", task: "A" } });
    await begun.promise;
    held.resolve();
    expect(await visiting).toMatchObject({ result: "waited" });
    await t.idle();
    expect(told).toEqual([]);
  });

  test("finds entries though it knows more keys than the run had", async () => {
    const t = await open();
    const [id = ""] = await asking(t, { question: "1?" }, { question: "2?" });
    const wider = { scope: "shop", keys: { order: "7", customer: "ada" } };
    const again = await t.herd.visit({ subject: wider, resume: [{ id, payload: "1" }] });
    expect(again).toMatchObject({ kind: "asks", asks: [{ question: "2?" }] });
  });
});

describe("a visit is refused, and nothing of it is done,", () => {
  test.each<
    [string, (ids: { ask: string; user: string; done: string; failed: string }) => Omit<VisitRequest, "subject">]
  >([
    ["resume_extras", ({ ask }) => ({ resume: [{ id: ask, payload: "x" }], extras: { locale: "es" } })],
    ["resume_extras", ({ done }) => ({ take: done, extras: { locale: "es" } })],
    ["cancel_resume_overlap", ({ ask }) => ({ cancel: [ask], resume: [{ id: ask, payload: "x" }] })],
    ["cancel_resume_overlap", ({ done }) => ({ cancel: [done], take: done })],
    ["multi_run", ({ ask, done }) => ({ resume: [{ id: ask, payload: "x" }], take: done })],
    ["multi_run", ({ done, failed }) => ({ resume: [{ id: done }, { id: failed }] })],
    [
      "duplicate_id",
      ({ ask }) => ({
        resume: [
          { id: ask, payload: "x" },
          { id: ask, payload: "y" },
        ],
      }),
    ],
    ["entry_gone", ({ ask }) => ({ cancel: [ask, "nothing"] })],
    ["entry_gone", () => ({ resume: [{ id: "nothing", payload: "x" }] })],
    ["entry_gone", () => ({ take: "nothing" })],
    ["user_ask_in_resume", ({ user }) => ({ resume: [{ id: user, payload: "x" }] })],
    ["finished_payload", ({ done }) => ({ resume: [{ id: done, payload: "x" }] })],
    ["finished_payload", ({ failed }) => ({ resume: [{ id: failed, payload: "x" }] })],
    ["finished_payload", ({ ask }) => ({ take: ask })],
    ["must be a string", ({ ask }) => ({ cancel: [], resume: [{ id: ask, payload: 5 }] })],
    ["undeclared_extras", () => ({ start: { agent: "asks", task: "A" }, extras: { locale: "es" } })],
    ["undeclared_extras", ({ ask }) => ({ cancel: [ask], start: { agent: "extras", task: "A" }, extras: { tone: 1 } })],
    ["unknown_agent", ({ ask }) => ({ cancel: [ask], start: { agent: "nobody", task: "A" } })],
    ["start.input.sku: is required", ({ ask }) => ({ cancel: [ask], start: { agent: "extras", input: {} } })],
    [
      "task: Invalid input: expected string, received undefined",
      ({ ask }) => ({ cancel: [ask], start: { agent: "asks" } }),
    ],
    ["payload must be JSON", ({ ask }) => ({ resume: [{ id: ask, payload: undefined as never }] })],
    ["unknown_field", () => ({ begin: 1 }) as never],
  ])("as %s", async (rule, request) => {
    const t = await open();
    const [ask = ""] = await asking(t, { question: "1?" });
    const user = (await visit(t, { start: { agent: "asks", input: [{ question: "u?", to: "user" }] } })).suspended;
    const done = await visit(t, { start: { agent: "asks", input: [] }, receivesOutcome: false });
    const { asks } = await visit(t, { start: { agent: "fails", task: "A" } });
    const failed = await visit(t, { resume: [{ id: asks?.[0]?.id ?? "", payload: "x" }], receivesOutcome: false });
    const before = await parked(t);
    expect(before).toHaveLength(4);
    const ids = {
      ask,
      user: user?.interactionId ?? "",
      done: done.requestId ?? "",
      failed: failed.requestId ?? "",
    };
    expect(await ruleOf(visit(t, request(ids)))).toBe(rule);
    await t.idle();
    expect(await parked(t)).toEqual(before);
  });

  test("when it resumes entries of two groups or of two runs", async () => {
    const t = await open();
    const two = [await asking(t, { question: "1?", groupId: "g" }), await asking(t, { question: "2?", groupId: "g" })];
    const resume = two.flatMap(([id = ""]) => ({ id, payload: "x" }));
    expect(await ruleOf(visit(t, { resume }))).toBe("multi_run");
    expect(await parked(t)).toMatchObject([{ status: "asking" }, { status: "asking" }]);
  });

  test("on another subject, in another scope, and for an entry that is running", async () => {
    const t = await open();
    const [id = ""] = await asking(t, { question: "1?" });
    const item = { id, payload: "x" };
    expect(await ruleOf(t.herd.visit({ subject: other, resume: [item] }))).toBe("entry_gone");
    expect(await ruleOf(t.herd.visit({ subject: { ...subject, scope: "stock" }, cancel: [id] }))).toBe("entry_gone");
    const results = await Promise.all([ruleOf(visit(t, { resume: [item] })), ruleOf(visit(t, { resume: [item] }))]);
    // Of two at once one wins.
    expect(results.filter((result) => result === "entry_gone")).toHaveLength(1);
    expect(results).toContainEqual({ done: expect.objectContaining({ result: '["x"]' }) });
  });
});

describe("cancelling", () => {
  test("an ask takes its run, everything above it and below it, and leaves nothing on the subject", async () => {
    const t = await open();
    const { asks } = await visit(t, { start: { agent: "parent", task: "A" } });
    const [id = ""] = asks?.map((entry) => entry.id) ?? [];
    expect(await visit(t, { cancel: [id] })).toEqual({ action: "none", kind: "none", cancelled: [id] });
    await t.idle();
    expect(await parked(t)).toEqual([]);
    expect(await t.herd.owners()).toEqual([]);
    await t.crash();
    expect(await parked(t)).toEqual([]);
  });

  test("tells a receiver one failure, that of the outermost run", async () => {
    const t = await open();
    const told: unknown[] = [];
    t.herd.receive({ scope: "shop" }, { onResult: (result) => told.push([result.label, result.error?.code]) });
    const { asks } = await visit(t, { start: { agent: "parent", task: "A" } });
    await visit(t, { cancel: [asks?.[0]?.id ?? ""] });
    await t.idle();
    expect(told).toEqual([["parent", "cancelled"]]);
    expect(await parked(t)).toEqual([]);
  });

  test("tells a visit that waits for the run", async () => {
    const t = await open();
    const [a = "", b = ""] = await asking(t, [
      { question: "a?", groupId: "g" },
      { question: "b?", groupId: "g" },
    ]);
    await visit(t, { resume: [{ id: a, payload: "A" }] });
    const waiting = ruleOf(visit(t, { resume: [{ id: b, payload: "B" }] }));
    expect(await waiting).toMatchObject({ done: { kind: "result" } });
    const visiting = ruleOf(visit(t, { start: { agent: "waits", task: "A" } }));
    await begun.promise;
    const { workers } = await t.herd.owner(subject).list();
    expect(workers).toMatchObject([{ label: "waits", state: "working" }]);
    await t.herd.owner(subject).close({ label: "waits" });
    expect(await visiting).toBe("run_failed");
  });

  test("an outcome drops it silently", async () => {
    const t = await open();
    const done = await visit(t, { start: { agent: "asks", input: [] }, receivesOutcome: false });
    expect(await visit(t, { cancel: [done.requestId ?? ""] })).toMatchObject({ cancelled: [done.requestId] });
    expect(await parked(t)).toEqual([]);
  });

  test("one ask of a group cancels its siblings along, and an entry of a run that is cancelled is not resumed", async () => {
    const t = await open();
    const [a = "", b = ""] = await asking(t, [
      { question: "a?", groupId: "g" },
      { question: "b?", groupId: "g" },
    ]);
    expect(await ruleOf(visit(t, { cancel: [a], resume: [{ id: b, payload: "B" }] }))).toBe("cancel_resume_overlap");
    await visit(t, { cancel: [a, b] });
    await t.idle();
    expect(await parked(t)).toEqual([]);
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
