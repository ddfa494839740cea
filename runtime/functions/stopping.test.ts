import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "./agent.ts";
import { StopReason, type Worker } from "./worker.ts";
import { memoryStore } from "../testing/index.ts";
import { inMode, modes } from "../../test/support/modes.ts";

const agent = (run: AgentDefinition["run"], more: Partial<AgentDefinition> = {}): AgentDefinition => ({
  description: "under test",
  run,
  ...more,
});

/** One step, whose first attempt fails. */
const flaky = (attempt: () => number) => (_task: string, worker: Worker) =>
  worker.step(
    "flaky",
    () => {
      const number = attempt();
      if (number === 1) throw new Error("not yet");
      return `attempt ${number}`;
    },
    { attempts: 2, backoffMs: 60_000 },
  );

describe.each(modes)("$name", ({ options: mode }) => {
  const createTestHerd = inMode(mode);

  describe("stopping the program", () => {
    test("is not failing the work: a function that throws because of it goes on at the next start", async () => {
      const store = memoryStore();
      let starts = 0;
      const run = async (_task: string, worker: Worker) => {
        if (++starts > 1) return "second start";
        await new Promise((_resolve, reject) =>
          worker.signal.addEventListener("abort", () => reject(worker.signal.reason as Error)),
        );
        return "never";
      };
      const first = await createTestHerd({ store, agents: { it: agent(run) } });
      await first.owner.assign({ agent: "it", task: "go" });
      await first.herd.close({ graceMs: 1_000 });
      expect(first.herd.status).toBe("closed");
      expect(first.owner.results).toEqual([]);
      const second = await createTestHerd({ store, agents: { it: agent(run) } });
      expect((await second.result()).text).toBe("second start");
    });

    test("does not wait for the pause before a step's next attempt", { timeout: 10_000 }, async () => {
      const store = memoryStore();
      let tries = 0;
      const first = await createTestHerd({ store, agents: { it: agent(flaky(() => ++tries)) } });
      await first.owner.assign({ agent: "it", task: "go" });
      await first.clock.advance("1s");
      await first.herd.close({ graceMs: 60_000 });
      expect(tries).toBe(1);
      const second = await createTestHerd({ store, agents: { it: agent(flaky(() => ++tries)) } });
      expect((await second.result()).text).toBe("attempt 2");
    });

    test("tells no model of it: what its tool was about to answer is asked again at the next start", async () => {
      const store = memoryStore();
      const lead = agent(
        async (_task, worker) => JSON.stringify(await worker.subagent({ action: "assign", agent: "part", task: "x" })),
        { subagents: ["part"] },
      );
      const agents = { lead, part: agent(async () => "x") };
      const first = await createTestHerd({ store, agents });
      const script = first.scripted("part");
      script.acceptsAtOnce = false;
      await first.owner.assign({ agent: "lead", task: "go" });
      await script.run();
      await first.herd.close({ graceMs: 1_000 });
      script.acceptsAtOnce = true;
      await first.crash();
      await first.idle();
      expect((await first.owner.list()).workers).toMatchObject([
        { label: "lead" },
        { label: "part", state: "working" },
      ]);
      const part = await script.run();
      await part.turn();
      await part.settle("done");
      expect(JSON.parse((await first.result()).text)).toMatchObject({ ok: true, label: "part" });
      expect(script.runs).toHaveLength(1);
    });

    test("lets a step that is under way come to its journal", async () => {
      const store = memoryStore();
      let effects = 0;
      let finish: () => void = () => {};
      const run = async (_task: string, worker: Worker) => {
        await worker.step("slow", async () => {
          effects++;
          await new Promise<void>((resolve) => (finish = resolve));
        });
        await worker.step("next", () => undefined);
        return "done";
      };
      const first = await createTestHerd({ store, agents: { it: agent(run) } });
      await first.owner.assign({ agent: "it", task: "go" });
      while (effects === 0) await new Promise((resolve) => setImmediate(resolve));
      const closing = first.herd.close({ graceMs: 5_000 });
      finish();
      await closing;
      const second = await createTestHerd({ store, agents: { it: agent(run) } });
      expect((await second.result()).text).toBe("done");
      expect(effects).toBe(1);
    });

    test("is no refusal that a model could take for its owner's: ask_owner goes on at the next start", async () => {
      const store = memoryStore();
      let finish: (() => void) | undefined;
      const run = async (_task: string, worker: Worker) => {
        await worker.step("slow", () => new Promise<void>((resolve) => (finish = resolve)));
        const asked = await worker.askOwnerTool({ question: "Why?" }, { batch: ["ask_owner"] });
        return asked.ok ? asked.answer : asked.error.message;
      };
      const first = await createTestHerd({ store, agents: { it: agent(run) } });
      await first.owner.assign({ agent: "it", task: "go" });
      while (finish === undefined) await new Promise((resolve) => setImmediate(resolve));
      const closing = first.herd.close({ graceMs: 5_000 });
      finish();
      await closing;
      const second = await createTestHerd({ store, agents: { it: agent(run) } });
      await second.owner.reply({ askId: (await second.question()).askId, message: "because" });
      expect((await second.result()).text).toBe("because");
    });

    test("does not wait longer than its grace for a worker that never returns", async () => {
      const t = await createTestHerd({ agents: { it: agent(() => new Promise(() => undefined)) } });
      await t.owner.assign({ agent: "it", task: "go" });
      await t.herd.close({ graceMs: 1 });
      expect(t.herd.status).toBe("closed");
    });

    test("every later call is refused and says what to do", async () => {
      const t = await createTestHerd({ agents: { it: agent(async () => "x") } });
      await t.herd.close();
      await expect(t.owner.assign({ agent: "it", task: "go" })).rejects.toThrow(
        /The herd is closed\. Next: open it again/,
      );
      await t.herd.close();
    });
  });

  describe("a closed worker", () => {
    test("hears it on its signal, and what it does afterwards is refused", async () => {
      const seen: string[] = [];
      let ended: () => void = () => {};
      const over = new Promise<void>((resolve) => (ended = resolve));
      const t = await createTestHerd({
        agents: {
          it: agent(async (_task, worker) => {
            await new Promise<void>((resolve) => worker.signal.addEventListener("abort", () => resolve()));
            seen.push((worker.signal.reason as StopReason).code);
            await worker.step("late", () => seen.push("never")).catch((error) => seen.push(error.reason));
            await worker.askOwner({ question: "late?" }).catch((error) => seen.push(error.reason));
            ended();
            return "late result";
          }),
        },
      });
      const run = await t.owner.assign({ agent: "it", task: "go" });
      await t.owner.close({ label: "it" });
      await over;
      await t.idle();
      expect(seen).toEqual(["closed", "closed", "closed"]);
      expect(await (await t.herd.assignment(run.requestId)).result()).toMatchObject({ status: "closed" });
      expect(t.owner.results).toEqual([]);
    });

    test("makes no further attempt of a step", async () => {
      let tries = 0;
      const t = await createTestHerd({ agents: { it: agent(flaky(() => ++tries)) } });
      await t.owner.assign({ agent: "it", task: "go" });
      await t.clock.advance("1s");
      await t.owner.close({ label: "it" });
      await t.clock.advance("60s");
      expect(tries).toBe(1);
    });

    test("waiting for its owner is told so by a rejection", async () => {
      const seen: string[] = [];
      const t = await createTestHerd({
        agents: {
          it: agent(async (_task, worker) => {
            await worker.askOwner({ question: "?" }).catch((error) => seen.push(error.reason));
            return "over";
          }),
        },
      });
      await t.owner.assign({ agent: "it", task: "go" });
      await t.question();
      await t.owner.close({ label: "it" });
      await t.idle();
      // One that was parked is not there any more to hear it.
      expect(seen).toEqual(mode.parkAfter === 0 ? [] : ["closed"]);
    });
  });
});
