import { describe, expect, onTestFinished, test } from "vitest";
import type { AgentDefinition } from "../functions/agent.ts";
import { HerdError, type Herd, type Result } from "../index.ts";
import { createTestHerd, type TestHerd } from "../testing/index.ts";

/** What a worker that was told to wait waits for. */
let held = Promise.withResolvers<void>();

const agents = {
  asks: {
    description: "Asks twice",
    run: async (task, worker) => {
      const first = await worker.askOwner({ question: `${task}: first?` });
      if (first === "wait") await held.promise;
      return `${first} ${await worker.askOwner({ question: `${task}: second?` })}`;
    },
  },
  echo: { description: "Says its task", run: async (task) => task },
  data: { description: "Gives data", run: async () => ({ lines: 3 }) },
  fails: {
    description: "Fails",
    run: async () => {
      throw new Error("it cannot be done");
    },
  },
  parent: {
    description: "Has a child that asks",
    subagents: ["asks"],
    run: async (task, worker) => {
      const child = await worker.assign({ agent: "asks", task });
      for await (const event of child) if (event.type === "result") return event.result.text;
      return "";
    },
  },
} satisfies Record<string, AgentDefinition>;

const order = (number: string, more: Record<string, string> = {}) => ({
  scope: "shop",
  keys: { order: number, ...more },
});

async function open(): Promise<TestHerd> {
  held = Promise.withResolvers();
  const t = await createTestHerd({ agents, now: "2026-03-01T09:00:00.000Z" });
  onTestFinished(() => t.close());
  return t;
}

const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => "done",
    (error: unknown) => (error instanceof HerdError ? error.reason : error),
  );

describe("what is parked", () => {
  test("is the question with what its owner needs, and nothing that is not set", async () => {
    const t = await open();
    const run = await t.herd.owner(order("7")).assign({ agent: "asks", task: "A", metadata: { cart: 1 } });
    await t.idle();
    const parked = await t.herd.parked(order("7"));
    expect(parked).toEqual([
      {
        id: expect.stringContaining(run.requestId),
        status: "asking",
        requestId: run.requestId,
        label: "asks",
        to: "caller",
        askedBy: ["asks"],
        question: "A: first?",
        answerFormat: "text",
        createdAt: "2026-03-01T09:00:00.000Z",
        metadata: { cart: 1 },
      },
    ]);
    expect(Object.values(parked[0] ?? {})).not.toContain(undefined);
    expect(await t.herd.owner(order("7")).parked()).toEqual(parked);
  });

  test("goes from asking to running and to the next question, also over a crash", async () => {
    const t = await open();
    const owner = t.herd.owner(order("7"));
    await owner.assign({ agent: "asks", task: "A" });
    await t.idle();
    const [first] = await owner.parked();
    await owner.reply({ askId: first?.id ?? "", message: "wait" });
    const running = [{ id: first?.id, status: "running", question: "A: first?" }];
    expect(await owner.parked()).toMatchObject(running);
    await t.crash();
    expect(await t.herd.parked(order("7"))).toMatchObject(running);
    held.resolve();
    await t.idle();
    expect(await t.herd.parked(order("7"))).toMatchObject([{ status: "asking", question: "A: second?" }]);
  });

  test("is the outcome under the id of its assignment: text, data or error, never two of them", async () => {
    const t = await open();
    const owner = t.herd.owner(order("7"));
    const ids = [];
    for (const agent of ["echo", "data", "fails"] as const) {
      ids.push((await owner.assign({ agent, task: agent })).requestId);
      await t.clock.advance("1s");
    }
    await t.idle();
    expect(await owner.parked()).toEqual([
      { id: ids[0], status: "finished", requestId: ids[0], label: "echo", result: "echo" },
      { id: ids[1], status: "finished", requestId: ids[1], label: "data", result: { lines: 3 } },
      {
        id: ids[2],
        status: "failed",
        requestId: ids[2],
        label: "fails",
        error: { code: "worker_error", message: expect.stringContaining("it cannot be done") },
      },
    ]);
  });

  test("is listed oldest first, also over several owners, and after a restart", async () => {
    const t = await open();
    for (const number of ["3", "1", "2"]) {
      await t.herd.owner(order(number, { customer: "ada" })).assign({ agent: "asks", task: number });
      await t.clock.advance("1m");
    }
    const questions = async (herd: Herd) =>
      (await herd.parked({ scope: "shop", keys: { customer: "ada" } })).map(({ question }) => question);
    expect(await questions(t.herd)).toEqual(["3: first?", "1: first?", "2: first?"]);
    await t.crash();
    expect(await questions(t.herd)).toEqual(["3: first?", "1: first?", "2: first?"]);
  });

  test("is seen by everybody on the same scope who shares a key, once, and by nobody else", async () => {
    const t = await open();
    await t.herd.owner(order("7", { customer: "ada" })).assign({ agent: "asks", task: "A" });
    await t.idle();
    const seen = async (scope: string, keys: Record<string, string>) => (await t.herd.parked({ scope, keys })).length;
    expect(await seen("shop", { order: "7" })).toBe(1);
    expect(await seen("shop", { customer: "ada" })).toBe(1);
    expect(await seen("shop", { order: "7", customer: "ada" })).toBe(1);
    expect(await seen("shop", { order: "8", customer: "ada" })).toBe(1);
    expect(await seen("shop", { order: "ada", customer: "7" })).toBe(0);
    expect(await seen("stock", { order: "7" })).toBe(0);
    expect(await t.herd.owner("order=7").parked()).toEqual([]);
  });

  test.each([
    [{ a: "b!c" }, { "a!b": "c" }],
    [{ a: 'b","c' }, { 'a","b': "c" }],
    [{ "a=b": "c" }, { a: "b=c" }],
    [{ a: "b" }, { a: "b " }],
    [{ é: "x" }, { "e\u0301": "x" }],
  ])("on keys %j is not seen with keys %j", async (one, other) => {
    const t = await open();
    await t.herd.owner({ scope: "s", keys: one as Record<string, string> }).assign({ agent: "asks", task: "A" });
    await t.idle();
    expect(await t.herd.parked({ scope: "s", keys: one as Record<string, string> })).toHaveLength(1);
    expect(await t.herd.parked({ scope: "s", keys: other as Record<string, string> })).toEqual([]);
  });

  test("of an owner id is that of the subject which spells it, and no question to a parent is in it", async () => {
    const t = await open();
    await t.herd.owner("ada").assign({ agent: "parent", task: "A" });
    await t.herd.owner("ada").assign({ agent: "echo", task: "B" });
    await t.idle();
    const parked = await t.herd.parked({ scope: "owner", keys: { id: "ada" } });
    expect(parked).toMatchObject([{ label: "echo", status: "finished" }]);
    expect(await t.herd.owner("ada").parked()).toEqual(parked);
  });

  test("stays in the list while its question is open, also when a receiver was told", async () => {
    const t = await open();
    await t.owner.assign({ agent: "asks", task: "A" });
    await t.question();
    expect(await t.owner.parked()).toMatchObject([{ status: "asking" }]);
  });
});

describe("taking an outcome", () => {
  test("gives the oldest, a failed one too, then nothing; a taken one stays readable by its handle", async () => {
    const t = await open();
    const owner = t.herd.owner(order("7", { customer: "ada" }));
    const first = await owner.assign({ agent: "fails", task: "A" });
    await t.clock.advance("1s");
    await owner.assign({ agent: "echo", task: "B" });
    await t.idle();
    const customer = { scope: "shop", keys: { customer: "ada" } };
    expect(await t.herd.take(customer)).toMatchObject({ status: "failed", error: { code: "worker_error" } });
    expect(await t.herd.take(customer)).toMatchObject({ status: "completed", text: "B" });
    expect(await t.herd.take(customer)).toBeUndefined();
    expect((await first.result()).status).toBe("failed");
    expect((await owner.list()).workers).toEqual([]);
    await t.crash();
    expect(await t.herd.parked(customer)).toEqual([]);
  });

  test("by two at once gives it to one of them", async () => {
    const t = await open();
    await t.herd.owner(order("7")).assign({ agent: "echo", task: "A" });
    await t.idle();
    const taken = await Promise.all(Array.from({ length: 5 }, () => t.herd.take(order("7"))));
    expect(taken.filter((result) => result !== undefined)).toMatchObject([{ text: "A" }]);
  });

  test("by its id refuses what is not there, what is no outcome, and what a receiver has", async () => {
    const t = await open();
    const owner = t.herd.owner(order("7"));
    const done = await owner.assign({ agent: "echo", task: "A" });
    await owner.assign({ agent: "asks", task: "B" });
    await t.idle();
    const asking = (await owner.parked()).find(({ status }) => status === "asking");
    expect(await reasonOf(t.herd.take(order("7"), "nothing"))).toBe("entry_gone");
    expect(await reasonOf(t.herd.take(order("8"), done.requestId))).toBe("entry_gone");
    expect(await reasonOf(t.herd.take(order("7"), asking?.id))).toBe("visit_request");
    const has = Promise.withResolvers<Result>();
    const over = Promise.withResolvers<void>();
    t.herd.owner(order("7"), { onResult: (result) => (has.resolve(result), over.promise) });
    await has.promise;
    expect(await reasonOf(t.herd.take(order("7"), done.requestId))).toBe("being_delivered");
    expect(await t.herd.take(order("7"))).toBeUndefined();
    over.resolve();
    await t.idle();
    expect(await reasonOf(t.herd.take(order("7"), done.requestId))).toBe("entry_gone");
  });
});
