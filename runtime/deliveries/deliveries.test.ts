import { describe, expect, onTestFinished, test } from "vitest";
import type { AgentDefinition } from "../functions/agent.ts";
import type { Question } from "../asks/question.ts";
import type { Result } from "./result.ts";
import { createTestHerd, memoryStore, type TestHerd } from "../testing/index.ts";

const asks: AgentDefinition = {
  description: "asks before it answers",
  run: async (task, worker) => `${task}: ${await worker.askOwner({ question: `May I do ${task}?` })}`,
};
const does: AgentDefinition = { description: "just does it", run: async (task) => `did ${task}` };
const agents = { asks, does };

/** Lets everything run that does not wait for time or people. */
const settle = async (t: TestHerd) => t.idle();

describe("a result", () => {
  test("is acknowledged by the receiver's handler resolving, and then never given again", async () => {
    const t = await createTestHerd({ agents });
    await t.owner.assign({ agent: "does", task: "A" });
    await t.result();
    await t.idle();
    await t.crash();
    await settle(t);
    expect(t.owner.results).toHaveLength(1);
  });

  test("waits for a receiver over a crash, and comes with the attempt counted", async () => {
    const t = await createTestHerd({ agents });
    const other = t.herd.owner("later");
    await other.assign({ agent: "does", task: "A" });
    await settle(t);
    await t.crash();
    const results: Result[] = [];
    t.herd.owner("later", { onResult: (result) => results.push(result) });
    await settle(t);
    expect(results).toMatchObject([{ text: "did A", attempt: 2 }]);
  });

  test("of a throwing handler is tried again after 250 ms, doubling, and the list says why", async () => {
    const t = await createTestHerd({ agents });
    const attempts: number[] = [];
    const events: string[] = [];
    t.herd.on("undelivered", (event) => events.push(`${event.attempt} ${event.retryAt}`));
    const start = t.clock.now().getTime();
    const owner = t.herd.owner("moody", {
      onResult: (result) => {
        attempts.push(result.attempt);
        if (attempts.length < 4) throw new Error("mailbox full");
      },
    });
    await owner.assign({ agent: "does", task: "A" });
    await settle(t);
    expect((await owner.list()).workers).toMatchObject([
      { label: "does", state: "settling", cleanupError: "delivery failed, retrying: mailbox full" },
    ]);
    await t.clock.advance("249ms");
    expect(attempts).toEqual([1]);
    await t.clock.advance("1ms");
    expect(attempts).toEqual([1, 2]);
    await t.clock.advance("499ms");
    expect(attempts).toEqual([1, 2]);
    await t.clock.advance("1ms");
    await t.clock.advance("1s");
    expect(attempts).toEqual([1, 2, 3, 4]);
    expect((await owner.list()).workers).toEqual([]);
    expect(events).toEqual([250, 750, 1750].map((ms, index) => `${index + 1} ${new Date(start + ms).toISOString()}`));
  });

  test("of one stuck handler holds nobody else up, sixteen at once", async () => {
    const t = await createTestHerd({ agents });
    const started: string[] = [];
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const owner = t.herd.owner("busy", {
      onResult: async (result) => {
        started.push(result.text);
        await held;
      },
    });
    await Promise.all(Array.from({ length: 20 }, (_, index) => owner.assign({ agent: "does", task: String(index) })));
    while (started.length < 16) await new Promise((resolve) => setImmediate(resolve));
    expect(started).toEqual(Array.from({ length: 16 }, (_, index) => `did ${index}`));
    release();
    await settle(t);
    expect(started).toHaveLength(20);
  });

  test("without a receiver is acknowledged by the first handle that returns it", async () => {
    const t = await createTestHerd({ agents });
    const owner = t.herd.owner("handles");
    const run = await owner.assign({ agent: "does", task: "A" });
    expect((await run.result()).text).toBe("did A");
    expect((await owner.list()).workers).toEqual([]);
    // It stays readable.
    expect((await (await t.herd.assignment(run.requestId)).result()).text).toBe("did A");
  });

  test("without a receiver is acknowledged by a status that shows it", async () => {
    const t = await createTestHerd({ agents });
    const owner = t.herd.owner("handles");
    const run = await owner.assign({ agent: "does", task: "A" });
    await settle(t);
    expect(await run.status()).toMatchObject({ state: "completed", result: { text: "did A" } });
    expect((await owner.list()).workers).toEqual([]);
  });

  test("beside a receiver is only looked at by handles, after the acknowledgement", async () => {
    const t = await createTestHerd({ agents });
    let acknowledged = false;
    const owner = t.herd.owner("both", {
      onResult: async () => {
        await new Promise((resolve) => setImmediate(resolve));
        acknowledged = true;
      },
    });
    const run = await owner.assign({ agent: "does", task: "A" });
    await run.result();
    expect(acknowledged).toBe(true);
    expect((await owner.list()).workers).toEqual([]);
  });

  test("keeps its label taken until it is acknowledged", async () => {
    const t = await createTestHerd({ agents });
    const owner = t.herd.owner("handles");
    const run = await owner.assign({ agent: "does", task: "A", label: "one" });
    await settle(t);
    expect((await owner.list()).workers).toMatchObject([{ label: "one", state: "settling", steerable: false }]);
    await expect(owner.assign({ agent: "does", task: "B", label: "one" })).rejects.toMatchObject({
      category: "worker_label_exists",
    });
    await run.result();
    await owner.assign({ agent: "does", task: "B", label: "one" });
  });

  test("of a worker that its owner closes stays on its way", async () => {
    const t = await createTestHerd({ agents });
    const owner = t.herd.owner("handles");
    const run = await owner.assign({ agent: "does", task: "A" });
    await settle(t);
    await owner.close({ label: run.label });
    expect((await owner.list()).workers).toEqual([]);
    const results: Result[] = [];
    t.herd.owner("handles", { onResult: (result) => results.push(result) });
    await settle(t);
    expect(results).toMatchObject([{ text: "did A", status: "completed" }]);
  });

  test("reaches its own owner and nobody else", async () => {
    const t = await createTestHerd({ agents });
    const seen: string[] = [];
    const a = t.herd.owner("a", { onResult: (result) => seen.push(`a ${result.text}`) });
    const b = t.herd.owner("b", { onResult: (result) => seen.push(`b ${result.text}`) });
    await a.assign({ agent: "does", task: "1" });
    await b.assign({ agent: "does", task: "2" });
    await settle(t);
    expect(seen.toSorted()).toEqual(["a did 1", "b did 2"]);
    expect(t.owner.results).toEqual([]);
  });

  test("carries the metadata it was assigned with, and the details of its completion", async () => {
    const t = await createTestHerd({ agents });
    const run = await t.owner.assign({ agent: "does", task: "A", metadata: { ticket: 7 } });
    const result = await t.result();
    expect(result).toMatchObject({ metadata: { ticket: 7 }, owner: { id: "tester" }, attempt: 1 });
    expect(result.details).toMatchObject({
      requestId: run.requestId,
      workerLabel: "does",
      agentDefinition: "does",
      status: "completed",
      truncated: false,
    });
    expect(result.envelope).toBe(`label: does | agent: does | request: ${run.requestId} | status: completed\n\ndid A`);
  });

  test("says what else its owner waits for, itself not counted", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    const owner = t.herd.owner("handles");
    const runs = await Promise.all(["a", "b", "c"].map((label) => owner.assign({ agent: "does", task: label, label })));
    for (const { label } of runs) await (await script.run(label)).turn();
    await (await script.run("a")).settle("A");
    await (await script.run("b")).settle("B");
    const counts = async (index: number) => {
      const { details, envelope } = await (runs[index] as (typeof runs)[number]).result();
      const { activeDirect, pendingDirectResults, unresolvedDirect } = details;
      return [activeDirect, pendingDirectResults, unresolvedDirect, envelope.includes("unresolved")];
    };
    expect(await counts(0)).toEqual([1, 1, 2, true]);
    expect(await counts(1)).toEqual([1, 0, 1, true]);
    await (await script.run("c")).settle("C");
    expect(await counts(2)).toEqual([0, 0, 0, false]);
  });

  test.each([
    ["more than 2,000 lines", "x\n".repeat(2_500), 2_000, 50 * 1024],
    ["more than 50 KB of one line", "é".repeat(60_000), 1, 50 * 1024],
    ["a code point across the limit", `${"x".repeat(50 * 1024 - 2)}😀😀`, 1, 50 * 1024],
  ])("with %s is whole as text and bounded for a model", async (_what, text, lines, bytes) => {
    const t = await createTestHerd({ agents: { big: { description: "big", run: async () => text } } });
    await t.owner.assign({ agent: "big", task: "go" });
    const result = await t.result();
    expect(result.text).toBe(text);
    expect(result.details["truncated"]).toBe(true);
    const visible = result.envelope.slice(result.envelope.indexOf("\n\n") + 2, result.envelope.lastIndexOf("\n\n["));
    expect(visible.split("\n").length).toBeLessThanOrEqual(lines);
    expect(Buffer.byteLength(visible)).toBeLessThanOrEqual(bytes);
    expect(text.startsWith(visible)).toBe(true);
    expect(visible.isWellFormed()).toBe(true);
  });
});

describe("a question", () => {
  test("is pushed once while it is open, and not again after its handler resolved", async () => {
    const t = await createTestHerd({ agents });
    await t.owner.assign({ agent: "asks", task: "A" });
    const question = await t.question();
    await settle(t);
    await t.crash();
    await settle(t);
    expect(t.owner.questions).toHaveLength(1);
    await t.owner.reply({ askId: question.askId, message: "yes" });
    expect((await t.result()).text).toBe("A: yes");
  });

  test("is pushed again when the process died inside the handler", async () => {
    const t = await createTestHerd({ agents });
    const seen: number[] = [];
    const stuck = (question: Question) => {
      seen.push(question.attempt);
      return new Promise(() => undefined);
    };
    const owner = t.herd.owner("stuck", { onQuestion: stuck });
    await owner.assign({ agent: "asks", task: "A" });
    while (seen.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await t.crash();
    t.herd.owner("stuck", { onQuestion: stuck });
    while (seen.length === 1) await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toEqual([1, 2]);
  });

  test("whose handler throws after its reply was accepted is not handed out again", async () => {
    const t = await createTestHerd({ agents });
    let calls = 0;
    const owner = t.herd.owner("clumsy", {
      onQuestion: async (question) => {
        calls++;
        await question.reply("yes");
        throw new Error("after the fact");
      },
    });
    const run = await owner.assign({ agent: "asks", task: "A" });
    expect((await run.result()).text).toBe("A: yes");
    await t.clock.advance("1h");
    expect(calls).toBe(1);
  });

  test("is given by the first next() of a fresh handle for as long as it is open", async () => {
    const t = await createTestHerd({ agents });
    const run = await t.herd.owner("h").assign({ agent: "asks", task: "A" });
    const first = await run.next();
    expect(first).toMatchObject({ type: "question", question: { question: "May I do A?", answerFormat: "text" } });
    await t.crash();
    const again = await t.herd.assignment(run.requestId);
    expect(await again.next()).toMatchObject({ type: "question", question: { question: "May I do A?", attempt: 2 } });
    const next = again.next();
    if (first.type === "question") await t.herd.owner("h").reply({ askId: first.question.askId, message: "yes" });
    expect(await next).toMatchObject({ type: "result", result: { text: "A: yes" } });
  });

  test("nobody hears is told to who waits for the result, with the ways to answer", async () => {
    const t = await createTestHerd({ agents });
    const unheard: string[] = [];
    t.herd.on("unheard", (event) => unheard.push(event.message));
    const run = await t.herd.owner("me").assign({ agent: "asks", task: "A" });
    const result = run.result();
    await settle(t);
    expect(unheard).toHaveLength(1);
    expect(unheard[0]).toMatch(/Worker "asks" asks "May I do A\?" and nobody here hears it/);
    const askId = /askId: "([^"]+)"/.exec(unheard[0] ?? "")?.[1] ?? "";
    await t.herd.owner("me").reply({ askId, message: "yes" });
    expect((await result).text).toBe("A: yes");
  });

  test("waiting for the result with a signal stops waiting and nothing else", async () => {
    const t = await createTestHerd({ agents });
    t.herd.on("unheard", () => undefined);
    const run = await t.herd.owner("me").assign({ agent: "asks", task: "A" });
    const controller = new AbortController();
    const waiting = run.result({ signal: controller.signal });
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    expect(await run.status()).toMatchObject({ state: "blocked", question: { question: "May I do A?" } });
  });
});

describe("a receiver", () => {
  test("of the same owner is refused while there is one, unless it takes over", async () => {
    const t = await createTestHerd({ agents });
    expect(() => t.herd.owner("tester", { onResult: () => undefined })).toThrow(
      /already has a receiver.*\{ replace: true \}/,
    );
    const results: Result[] = [];
    const taken = t.herd.owner("tester", { onResult: (result) => results.push(result), replace: true });
    await taken.assign({ agent: "does", task: "A" });
    await settle(t);
    expect(results).toHaveLength(1);
    taken.detach();
    t.herd.owner("tester", { onResult: () => undefined });
  });

  test("that takes over without hearing results leaves them open, whatever the one before did", async () => {
    const t = await createTestHerd({ agents });
    let fail: (error: Error) => void = () => {};
    const first = t.herd.owner("me", { onResult: () => new Promise((_resolve, reject) => (fail = reject)) });
    const run = await first.assign({ agent: "does", task: "A" });
    await new Promise<void>((resolve) => t.herd.on("result", () => resolve()));
    await new Promise((resolve) => setImmediate(resolve));
    t.herd.owner("me", { onQuestion: () => undefined, replace: true });
    fail(new Error("gone"));
    await settle(t);
    await t.clock.advance("1h");
    expect((await t.herd.owner("me").list()).workers).toMatchObject([{ label: "does", state: "settling" }]);
    expect((await run.result()).text).toBe("did A");
  });

  test("that takes over goes on with the count of attempts", async () => {
    const t = await createTestHerd({ agents });
    const attempts: number[] = [];
    const refuse = {
      onResult: (result: Result) => {
        attempts.push(result.attempt);
        throw new Error("no");
      },
      replace: true,
    };
    await t.herd.owner("me", refuse).assign({ agent: "does", task: "A" });
    await settle(t);
    t.herd.owner("me", refuse);
    await settle(t);
    expect(attempts).toEqual([1, 2]);
  });

  test("whose parked deliveries could not be read gets them at the next tick", async () => {
    const store = memoryStore();
    const t = await createTestHerd({ agents, store });
    await t.herd.owner("later").assign({ agent: "does", task: "A" });
    await settle(t);
    const results: Result[] = [];
    const range = store.range.bind(store);
    let failures = 1;
    store.range = async (bounds) => {
      if (bounds.gte.startsWith("d!") && failures-- > 0) throw new Error("a read failed");
      return range(bounds);
    };
    t.herd.owner("later", { onResult: (result) => results.push(result) });
    await settle(t);
    expect(results).toEqual([]);
    await t.clock.advance("1s");
    expect(results).toMatchObject([{ text: "did A" }]);
  });

  test("that throws in a listener or handler hinders nothing", async () => {
    const t = await createTestHerd({ agents });
    const warnings: string[] = [];
    const listen = (warning: Error) => void warnings.push(warning.message);
    process.on("warning", listen);
    onTestFinished(() => void process.off("warning", listen));
    t.herd.on("state", () => {
      throw new Error("listener broke");
    });
    await t.owner.assign({ agent: "does", task: "A" });
    expect((await t.result()).text).toBe("did A");
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings.some((message) => message.includes('a listener for "state" threw: listener broke'))).toBe(true);
  });

  test("gets ten results that end at once each once, in the order of their commits", async () => {
    const t = await createTestHerd({ agents });
    await Promise.all(Array.from({ length: 10 }, (_, index) => t.owner.assign({ agent: "does", task: `${index}` })));
    await settle(t);
    expect(t.owner.results.map(({ text }) => text)).toEqual(Array.from({ length: 10 }, (_, index) => `did ${index}`));
  });
});
