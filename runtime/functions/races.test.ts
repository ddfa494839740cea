import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "./agent.ts";
import type { TestHerd } from "../testing/index.ts";
import { inMode, modes } from "../../test/support/modes.ts";

/** Some turns of the event loop, to let commands meet at different places. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

const agent = (run: AgentDefinition["run"], subagents?: string[]): AgentDefinition => ({
  description: "under test",
  run,
  ...(subagents && { subagents }),
});

/** Assigns many, lets everything come to rest, and gives what came back. */
async function many(t: TestHerd, count: number, task: (index: number) => string = String) {
  for (let index = 0; index < count; index++) await t.owner.assign({ agent: "parent", task: task(index) });
  await t.idle();
}

describe.each(modes)("$name", ({ options: mode }) => {
  const createTestHerd = inMode(mode);

  describe("news that comes while a run is looking elsewhere", () => {
    test("reaches a question that waits for the other children to end", async () => {
      const t = await createTestHerd({
        agents: {
          child: agent(async (task, worker) => {
            if (task === "ask") return worker.askOwner({ question: "?" });
            await turns(3);
            return task;
          }),
          parent: agent(
            async (_task, worker) => {
              const one = async (task: string) =>
                (await (await worker.assign({ agent: "child", task, onQuestion: worker.escalate })).result()).text;
              return (await Promise.all([one("ask"), one("end"), one("other end")])).join();
            },
            ["child"],
          ),
        },
      });
      await many(t, 20);
      expect(t.owner.questions).toHaveLength(20);
    });

    test("reaches a result that is held until the children end", async () => {
      const t = await createTestHerd({
        agents: {
          child: agent(async () => {
            await turns(2);
            return "c";
          }),
          parent: agent(
            async (task, worker) => {
              await Promise.all(["1", "2"].map((part) => worker.assign({ agent: "child", task: part })));
              await turns(Number(task));
              return "done";
            },
            ["child"],
          ),
        },
      });
      await many(t, 30, (index) => String(index % 6));
      expect(t.owner.results.map(({ status }) => status)).toEqual(Array.from({ length: 30 }, () => "completed"));
    });

    test("keeps a held run in memory while it answers a child, whatever may be parked", async () => {
      const t = await createTestHerd({
        maxParkedRuns: 1,
        agents: {
          child: agent(async (_task, worker) => {
            await turns(20);
            return worker.askOwner({ question: "?" });
          }),
          parent: agent(
            async (_task, worker) => {
              await worker.assign({
                agent: "child",
                task: "c",
                onQuestion: async (question) => {
                  await turns(100);
                  await question.reply("yes");
                },
              });
              return "done";
            },
            ["child"],
          ),
        },
      });
      await many(t, 4);
      expect(t.owner.results).toHaveLength(4);
    });
  });

  test("a child is started beside a question of another branch, however they meet", async () => {
    const t = await createTestHerd({
      agents: {
        child: agent(async () => "c"),
        parent: agent(
          async (task, worker) => {
            const child = async () => {
              await turns(Number(task) % 4);
              return (await (await worker.assign({ agent: "child", task: "c" })).result()).text;
            };
            return (await Promise.all([worker.askOwner({ question: "?" }), child()])).join();
          },
          ["child"],
        ),
      },
    });
    const texts: string[] = [];
    const owner = t.herd.owner("quick", {
      onQuestion: (question) => question.reply("a"),
      onResult: (result) => texts.push(result.error?.message ?? result.text),
    });
    for (let index = 0; index < 40; index++) await owner.assign({ agent: "parent", task: String(index) });
    await t.idle();
    expect(texts).toEqual(Array.from({ length: 40 }, () => "a,c"));
  });

  test("a parent closed while its held result settles is closed, and nothing fails", async () => {
    const warnings: string[] = [];
    const listen = (warning: Error) => warnings.push(warning.message);
    process.on("warning", listen);
    const t = await createTestHerd({
      agents: {
        child: agent(async () => {
          await turns(6);
          return "c";
        }),
        parent: agent(
          async (task, worker) => {
            await worker.assign({ agent: "child", task });
            return "done";
          },
          ["child"],
        ),
      },
    });
    for (let index = 0; index < 30; index++) {
      const label = `p${index}`;
      await t.owner.assign({ agent: "parent", task: label, label });
      await turns(index % 10);
      await t.owner.close({ label }).catch(() => undefined);
    }
    await t.idle();
    expect((await t.owner.list()).workers).toEqual([]);
    process.off("warning", listen);
    expect(warnings).toEqual([]);
  });

  describe("overload", () => {
    test("refuses owners and never what workers and the engine have begun", async () => {
      const t = await createTestHerd({
        maxInFlight: 2,
        agents: {
          parent: agent(async (_task, worker) => {
            await turns(20);
            return worker.step("s", () => "v");
          }),
        },
      });
      const refusals = new Set<string>();
      for (let accepted = 0; accepted < 20;) {
        const attempts = await Promise.allSettled(
          [1, 2, 3, 4].map(() => t.owner.assign({ agent: "parent", task: "x" })),
        );
        for (const attempt of attempts) {
          if (attempt.status === "fulfilled") accepted++;
          else refusals.add(`${attempt.reason.reason} ${attempt.reason.operation}`);
        }
      }
      await t.idle();
      expect([...refusals]).toEqual(["overloaded assign"]);
      expect(t.owner.results.length).toBeGreaterThanOrEqual(20);
      expect(t.owner.results.every(({ text }) => text === "v")).toBe(true);
      expect((await t.owner.list()).workers).toEqual([]);
    });

    test("keeps no store from opening, however many runs were executing", async () => {
      let release: () => void = () => {};
      const gate = new Promise<void>((resolve) => (release = resolve));
      const t = await createTestHerd({ maxInFlight: 5, agents: { parent: agent(() => gate.then(() => "v")) } });
      for (let index = 0; index < 20; index++) await t.owner.assign({ agent: "parent", task: "x" });
      await t.crash();
      release();
      await t.idle();
      expect(t.owner.results).toHaveLength(20);
    });
  });

  test("a step under way when the function throws beside its open question is not done twice", async () => {
    let effects = 0;
    const t = await createTestHerd({
      agents: {
        parent: agent(async (_task, worker) => {
          const slow = worker.step("s", async () => {
            effects++;
            await turns(20);
            return 1;
          });
          await Promise.all([
            slow,
            worker.askOwner({ question: "?" }),
            turns(10).then(() => Promise.reject(new Error("no"))),
          ]);
          return "x";
        }),
      },
    });
    await t.owner.assign({ agent: "parent", task: "x" });
    const question = await t.question();
    await t.idle();
    await question.reply("a");
    expect(await t.result()).toMatchObject({ status: "failed", error: { message: "no" } });
    expect(effects).toBe(1);
  });

  test("what a backend reports after the herd was closed is not taken and never opens its store again", async () => {
    const t = await createTestHerd({ agents: { parent: agent(async () => "") } });
    const script = t.scripted("parent");
    await t.owner.assign({ agent: "parent", task: "x" });
    const run = await script.run();
    await run.turn();
    await t.herd.close({ graceMs: 0 });
    expect(await run.settle("late")).toBe(false);
    await turns(20);
    // Whoever opens it next finds it free, and the work as it was.
    await t.crash();
    expect((await t.owner.list()).workers).toMatchObject([{ state: "working" }]);
  });
});
