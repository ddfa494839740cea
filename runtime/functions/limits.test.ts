import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "./agent.ts";
import { openHerd } from "../herd-instance.ts";
import { memoryStore } from "../store/memory.ts";
import { StopReason, type Worker } from "./worker.ts";
import { inMode, modes } from "../../test/support/modes.ts";

const agent = (run: AgentDefinition["run"], more: Partial<AgentDefinition> = {}): AgentDefinition => ({
  description: "under test",
  run,
  ...more,
});

/** Runs that end when the test says so, and how many execute at once. */
function turnstile() {
  const inside: { task: string; leave: (value: string) => void }[] = [];
  const arrivals: (() => void)[] = [];
  return {
    inside,
    run: (task: string) =>
      new Promise<string>((leave) => {
        inside.push({ task, leave });
        for (const arrive of arrivals.splice(0)) arrive();
      }),
    async until(count: number) {
      while (inside.length < count) await new Promise<void>((resolve) => arrivals.push(resolve));
    },
  };
}

describe.each(modes)("$name", ({ options: mode }) => {
  const createTestHerd = inMode(mode);

  describe("what a function returns", () => {
    test.each([
      ["a string", "text", { status: "completed", text: "text" }],
      ["JSON", { a: [1, null] }, { status: "completed", text: '{"a":[1,null]}', data: { a: [1, null] } }],
      ["undefined", undefined, { status: "failed", error: { code: "empty_result" } }],
      ["null", null, { status: "failed", error: { code: "empty_result" } }],
      ["blank text", " \n ", { status: "failed", error: { code: "empty_result" } }],
      ["a function", () => 1, { status: "failed", error: { code: "worker_error" } }],
      ["a bigint", 1n, { status: "failed", error: { code: "worker_error" } }],
      ["ten megabytes", "x".repeat(10 * 1024 * 1024), { status: "failed", error: { code: "result_too_large" } }],
      ["four megabytes", "é".repeat(2 * 1024 * 1024), { status: "completed" }],
    ])("%s ends the assignment accordingly", async (_what, value, expected) => {
      const t = await createTestHerd({ agents: { it: agent(async () => value as never) } });
      await t.owner.assign({ agent: "it", task: "go" });
      expect(await t.result()).toMatchObject(expected);
    });

    test("an empty result says that a worker's result is what it returns", async () => {
      const t = await createTestHerd({ agents: { it: agent(async () => undefined as never) } });
      await t.owner.assign({ agent: "it", task: "go" });
      expect((await t.result()).error?.message).toBe(
        "The worker's result was empty. A worker's result is what it returns.",
      );
    });
  });

  describe("concurrency", () => {
    test("bounds how many runs of an agent execute; the others are queued in order", async () => {
      const gate = turnstile();
      const t = await createTestHerd({ agents: { it: agent(gate.run, { concurrency: 2 }) } });
      for (const task of ["a", "b", "c", "d"]) await t.owner.assign({ agent: "it", task });
      await gate.until(2);
      const { workers } = await t.owner.list();
      expect(workers.map(({ state, queued }) => `${state} ${queued ?? false}`)).toEqual([
        "working false",
        "working false",
        "settling true",
        "settling true",
      ]);
      gate.inside[0]?.leave("A");
      await gate.until(3);
      expect(gate.inside.map(({ task }) => task)).toEqual(["a", "b", "c"]);
      gate.inside[1]?.leave("B");
      gate.inside[2]?.leave("C");
      await gate.until(4);
      gate.inside[3]?.leave("D");
      await t.idle();
      expect(t.owner.results.map(({ text }) => text).toSorted()).toEqual(["A", "B", "C", "D"]);
    });

    test("bounds all agents together", async () => {
      const gate = turnstile();
      const t = await createTestHerd({ concurrency: 1, agents: { a: agent(gate.run), b: agent(gate.run) } });
      await t.owner.assign({ agent: "a", task: "first" });
      await t.owner.assign({ agent: "b", task: "second" });
      await gate.until(1);
      expect((await t.owner.list()).workers.map(({ queued }) => queued)).toEqual([undefined, true]);
      gate.inside[0]?.leave("1");
      await gate.until(2);
      gate.inside[1]?.leave("2");
      await t.idle();
      expect(t.owner.results).toHaveLength(2);
    });

    test("a run that waits for an answer holds no place, and takes one again before it goes on", async () => {
      const gate = turnstile();
      const asking = async (task: string, worker: Worker) => {
        const answer = await worker.askOwner({ question: `${task}?` });
        return gate.run(answer);
      };
      const t = await createTestHerd({ agents: { it: agent(asking, { concurrency: 1 }) } });
      await t.owner.assign({ agent: "it", task: "a" });
      await t.owner.assign({ agent: "it", task: "b" });
      const first = await t.question();
      const second = await t.question();
      await first.reply("A");
      await second.reply("B");
      await gate.until(1);
      expect(gate.inside).toHaveLength(1);
      gate.inside[0]?.leave("one");
      await gate.until(2);
      gate.inside[1]?.leave("two");
      await t.idle();
      expect(t.owner.results.map(({ text }) => text)).toEqual(["one", "two"]);
    });

    test("a parent that looks after an asking child holds no place", async () => {
      const t = await createTestHerd({
        agents: {
          asks: agent((_task, worker) => worker.askOwner({ question: "Well?" })),
          lead: agent(
            async (_task, worker) => {
              const part = await worker.assign({ agent: "asks", task: "x", onQuestion: () => undefined });
              return (await part.result()).text;
            },
            { subagents: ["asks"], concurrency: 1 },
          ),
        },
      });
      await t.owner.assign({ agent: "lead", task: "one" });
      await t.owner.assign({ agent: "lead", task: "two" });
      await t.idle();
      expect((await t.owner.list()).workers.map(({ label, state }) => `${label} ${state}`).toSorted()).toEqual([
        "asks blocked",
        "asks-2 blocked",
        "lead blocked",
        "lead-2 blocked",
      ]);
    });

    test("queued assignments survive a crash, in their order", async () => {
      const gate = turnstile();
      const t = await createTestHerd({ agents: { it: agent(gate.run, { concurrency: 1 }) } });
      for (const task of ["a", "b", "c"]) await t.owner.assign({ agent: "it", task });
      await gate.until(1);
      await t.crash();
      await gate.until(2);
      for (let i = 1; i < 4; i++) {
        await gate.until(i + 1);
        gate.inside[i]?.leave("done");
      }
      await t.idle();
      expect(
        gate.inside
          .slice(1)
          .map(({ task }) => task)
          .toSorted(),
      ).toEqual(["a", "b", "c"]);
      expect(t.owner.results).toHaveLength(3);
    });

    test("a queued worker is closed without ever executing", async () => {
      const gate = turnstile();
      const t = await createTestHerd({ agents: { it: agent(gate.run, { concurrency: 1 }) } });
      await t.owner.assign({ agent: "it", task: "a" });
      await t.owner.assign({ agent: "it", task: "b" });
      await gate.until(1);
      await t.owner.close({ label: "it-2" });
      gate.inside[0]?.leave("done");
      await t.idle();
      expect(gate.inside).toHaveLength(1);
      expect(t.owner.results).toHaveLength(1);
    });
  });

  describe("a deadline", () => {
    test("closes the worker and fails the assignment, told once", async () => {
      const stops: string[] = [];
      const stuck = (_task: string, worker: Worker) =>
        new Promise<never>((_resolve, reject) =>
          worker.signal.addEventListener("abort", () => {
            stops.push((worker.signal.reason as StopReason).code);
            reject(worker.signal.reason as Error);
          }),
        );
      const t = await createTestHerd({ agents: { it: agent(stuck) } });
      await t.owner.assign({ agent: "it", task: "go", deadlineMs: 60_000 });
      await t.clock.advance("59s");
      expect(t.owner.results).toEqual([]);
      await t.clock.advance("2s");
      expect(await t.result()).toMatchObject({ status: "failed", error: { code: "deadline_exceeded" } });
      expect(stops).toEqual(["deadline_exceeded"]);
      expect((await t.owner.list()).workers).toEqual([]);
      await t.clock.advance("24h");
      expect(t.owner.results).toHaveLength(1);
    });

    test("stands still while the worker waits for its owner, also over a crash", async () => {
      const t = await createTestHerd({
        agents: { it: agent(async (_task, worker) => `got ${await worker.askOwner({ question: "?" })}`) },
      });
      await t.owner.assign({ agent: "it", task: "go", deadlineMs: 1_000 });
      const { askId } = await t.question();
      await t.clock.advance("24h");
      await t.crash();
      await t.clock.advance("24h");
      await t.owner.reply({ askId, message: "it" });
      expect((await t.result()).text).toBe("got it");
    });
  });

  describe("a run that ends the process again and again", () => {
    test("is given up as worker_lost after five ends without progress", async () => {
      let executions = 0;
      const t = await createTestHerd({
        agents: {
          it: agent(() => {
            executions++;
            return new Promise(() => undefined);
          }),
        },
      });
      const lost: string[] = [];
      await t.owner.assign({ agent: "it", task: "go" });
      for (let i = 0; i < 5; i++) {
        await t.crash();
        t.herd.on("lost", (event) => lost.push(event.label));
      }
      await t.store.range({ gte: "o!", lt: "o~" });
      await new Promise((resolve) => setImmediate(resolve));
      expect(await t.result()).toMatchObject({ status: "failed", error: { code: "worker_lost" } });
      expect(executions).toBeLessThanOrEqual(5);
    });

    test("goes on for ever while its journal grows", async () => {
      let wanted = 0;
      const t = await createTestHerd({
        agents: {
          it: agent(async (_task, worker) => {
            for (let i = 0; i < 8; i++) {
              await worker.step("one", () => i);
              if (i === wanted && wanted < 7) await new Promise(() => undefined);
            }
            return "made it";
          }),
        },
      });
      await t.owner.assign({ agent: "it", task: "go" });
      for (wanted = 0; wanted < 7;) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        wanted++;
        await t.crash();
      }
      expect((await t.result()).text).toBe("made it");
    });
  });

  test("only so many waiting runs stay in memory; the oldest start again when they are answered", async () => {
    let starts = 0;
    const t = await createTestHerd({
      maxParkedRuns: 2,
      agents: {
        it: agent(async (_task, worker) => {
          starts++;
          return worker.askOwner({ question: "?" });
        }),
      },
    });
    for (let i = 0; i < 5; i++) await t.owner.assign({ agent: "it", task: "go" });
    await t.idle();
    expect(starts).toBe(5);
    for (const question of [...t.owner.questions]) await question.reply("yes");
    await t.idle();
    expect(t.owner.results).toHaveLength(5);
    expect(starts).toBe(mode.parkAfter === 0 ? 10 : 8);
  });

  test("progress reports are coalesced, count as activity, and their usage adds up into the result", async () => {
    const reports: string[] = [];
    const t = await createTestHerd({
      agents: {
        it: agent(async (_task, worker) => {
          worker.report("one", { inputTokens: 1 });
          worker.report("two", { inputTokens: 2, costUsd: 0.5 });
          await worker.step("work", () => undefined);
          return "done";
        }),
      },
    });
    t.herd.on("report", (event) => reports.push(event.note));
    await t.owner.assign({ agent: "it", task: "go" });
    expect((await t.result()).usage).toEqual({ inputTokens: 3, costUsd: 0.5 });
    expect(reports).toEqual(["two"]);
  });
});

test("a run that is parked out of memory takes its owner's workers along", async () => {
  const asks = agent((_task, worker) => worker.askOwner({ question: "Go on?" }));
  const herd = await openHerd({ store: memoryStore(), agents: { asks }, parkAfter: 0, maxTrees: 3, tickMs: 0 });
  for (let number = 0; number < 20; number++) {
    await herd.owner(`owner-${number}`).assign({ agent: "asks", task: "A" });
    await herd.engine.idle();
  }
  expect([...herd.engine.kernel.trees()].length).toBeLessThanOrEqual(3);
  await herd.close();
});
