import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "./agent.ts";
import type { Worker } from "./worker.ts";
import { createTestHerd } from "../testing/index.ts";
import { modes } from "../../test/support/modes.ts";

const agent = (run: AgentDefinition["run"], more: Partial<AgentDefinition> = {}): AgentDefinition => ({
  description: "under test",
  run,
  ...more,
});

/** Counts how often each effect really happened. */
function effects() {
  const log: string[] = [];
  return {
    log,
    do: (what: string) => void log.push(what),
    count: (what: string) => log.filter((entry) => entry === what).length,
  };
}

describe.each(modes)("a function worker, $name", ({ options }) => {
  const start = (run: AgentDefinition["run"]) => createTestHerd({ ...options, agents: { it: agent(run) } });

  test("gets back what it did before a crash instead of doing it again", async () => {
    const done = effects();
    const t = await start(async (_task, worker) => {
      const loaded = await worker.step("load", () => {
        done.do("load");
        return { rows: 3 };
      });
      const answer = await worker.askOwner({ question: `Book ${loaded.rows} rows?` });
      await worker.step("book", () => done.do("book"));
      return answer;
    });
    await t.owner.assign({ agent: "it", task: "go" });
    const { askId } = await t.question();
    await t.crash();
    await t.owner.reply({ askId, message: "yes" });
    const result = await t.result();
    await t.crash();
    await t.idle();
    expect(result.text).toBe("yes");
    expect(done.log).toEqual(["load", "book"]);
    expect(t.owner.results).toHaveLength(1);
  });

  test("is asked for by name and occurrence, so a loop's steps are told apart", async () => {
    const done = effects();
    const t = await start(async (_task, worker) => {
      const values: number[] = [];
      for (let i = 0; i < 3; i++) values.push(await worker.step("roll", () => (done.do("roll"), i * 10)));
      await worker.askOwner({ question: "Go on?" });
      return values;
    });
    await t.owner.assign({ agent: "it", task: "go" });
    const { askId } = await t.question();
    await t.crash();
    await t.owner.reply({ askId, message: "yes" });
    expect((await t.result()).data).toEqual([0, 10, 20]);
    expect(done.count("roll")).toBe(3);
  });

  test("may finish its parallel branches in another order on the re-run", async () => {
    const done = effects();
    let first = true;
    const gate = { slow: () => {} };
    const branches = async (_task: string, worker: Worker) => {
      const slow = (async () => {
        if (first) await new Promise<void>((resolve) => (gate.slow = resolve));
        const a = await worker.step("a", () => (done.do("a"), "A"));
        return `${a}:${await worker.askOwner({ question: "Is A right?" })}`;
      })();
      const fast = (async () => {
        const b = await worker.step("b", () => (done.do("b"), "B"));
        return `${b}:${await worker.askOwner({ question: "Is B right?" })}`;
      })();
      return (await Promise.all([slow, fast])).join(" ");
    };
    const t = await createTestHerd({ agents: { it: agent(branches) } });
    await t.owner.assign({ agent: "it", task: "go" });
    const b = await new Promise<string>((resolve) => t.herd.on("question", (question) => resolve(question.askId)));
    gate.slow();
    await new Promise((resolve) => setImmediate(resolve));
    first = false;
    // This time the branch that came second is first at its question.
    await t.crash();
    await t.owner.reply({ askId: b, message: "B!" });
    await t.idle();
    const a = t.owner.questions.find((question) => question.question === "Is A right?");
    await t.owner.reply({ askId: a?.askId ?? "", message: "A!" });
    expect((await t.result()).text).toBe("A:A! B:B!");
    expect(done.count("b")).toBe(1);
  });

  test("keeps a running step's journal when branches run beside an open question", async () => {
    const t = await start(async (_task, worker) => {
      let finish: () => void = () => {};
      const slow = worker.step("slow", () => new Promise<string>((resolve) => (finish = () => resolve("slow"))));
      const asked = worker.askOwner({ question: "Now?" });
      setImmediate(() => setImmediate(finish));
      return `${await slow} ${await asked}`;
    });
    await t.owner.assign({ agent: "it", task: "go" });
    const { askId } = await t.question();
    await t.owner.reply({ askId, message: "now" });
    expect((await t.result()).text).toBe("slow now");
  });

  test("asks one question at a time, first come first asked", async () => {
    const t = await start(async (_task, worker) => {
      const answers = await Promise.all(["one?", "two?", "three?"].map((question) => worker.askOwner({ question })));
      return answers.join(",");
    });
    await t.owner.assign({ agent: "it", task: "go" });
    for (const [expected, answer] of [
      ["one?", "1"],
      ["two?", "2"],
      ["three?", "3"],
    ] as const) {
      const question = await t.question();
      expect(question.question).toBe(expected);
      await question.reply(answer);
    }
    expect((await t.result()).text).toBe("1,2,3");
  });

  test("returning while its question is open ends nothing: the reply starts it again", async () => {
    const dropped: unknown[] = [];
    let runs = 0;
    const t = await createTestHerd({
      ...options,
      agents: {
        it: agent(async (_task, worker) => {
          runs++;
          const asked = worker.askOwner({ question: "Really?" });
          if (runs === 1) {
            await new Promise((resolve) => setImmediate(resolve));
            await new Promise((resolve) => setImmediate(resolve));
            void asked.catch(() => undefined);
            return "guessed";
          }
          return `answered ${await asked}`;
        }),
      },
    });
    t.herd.on("dropped", (event) => dropped.push(event.why));
    await t.owner.assign({ agent: "it", task: "go" });
    const question = await t.question();
    await t.idle();
    await question.reply("yes");
    expect((await t.result()).text).toBe("answered yes");
    // A run that is parked may be stopped before it can return.
    const stopped = options.parkAfter !== undefined && dropped.length === 0;
    expect(dropped).toEqual(stopped ? [] : ["asking"]);
  });
});

describe.each(modes)("new code while a question is open, $name", ({ options }) => {
  /** Runs `before` until its question is open, then goes on with `after`. */
  async function redeploy(
    before: AgentDefinition["run"],
    after: AgentDefinition["run"],
    more: Partial<AgentDefinition> = {},
  ) {
    const held: string[] = [];
    const t = await createTestHerd({ ...options, agents: { it: agent(before) } });
    await t.owner.assign({ agent: "it", task: "go" });
    const question = await t.question();
    await t.crash({ agents: { it: agent(after, more) } });
    t.herd.on("held", (event) => held.push(event.diagnostic));
    await t.owner.reply({ askId: question.askId, message: "yes" });
    await t.idle();
    return { t, held, status: async () => (await t.herd.assignment(question.requestId)).status() };
  }

  const book = async (_task: string, worker: Worker) => {
    const load = await worker.step("load", () => "v1");
    return `${load} ${await worker.askOwner({ name: "book?", question: "Book?" })}`;
  };

  test("a step added runs when the run gets there", async () => {
    const { t } = await redeploy(book, async (_task, worker) => {
      const load = await worker.step("load", () => "never again");
      const checked = await worker.step("check", () => "checked");
      return `${load} ${checked} ${await worker.askOwner({ name: "book?", question: "Book?" })}`;
    });
    expect((await t.result()).text).toBe("v1 checked yes");
  });

  test("a step removed is simply not asked for", async () => {
    const { t } = await redeploy(
      book,
      async (_task, worker) => `only ${await worker.askOwner({ name: "book?", question: "Book?" })}`,
    );
    expect((await t.result()).text).toBe("only yes");
  });

  test("a step moved behind the question gets its recorded value", async () => {
    const { t } = await redeploy(book, async (_task, worker) => {
      const answer = await worker.askOwner({ name: "book?", question: "Book?" });
      return `${answer} ${await worker.step("load", () => "never again")}`;
    });
    expect((await t.result()).text).toBe("yes v1");
  });

  test("a step renamed runs again under its new name", async () => {
    const { t } = await redeploy(book, async (_task, worker) => {
      const load = await worker.step("load everything", () => "v2");
      return `${load} ${await worker.askOwner({ name: "book?", question: "Book?" })}`;
    });
    expect((await t.result()).text).toBe("v2 yes");
  });

  test("a question with a name may be reworded", async () => {
    const { t } = await redeploy(book, async (_task, worker) =>
      worker.askOwner({ name: "book?", question: "Do I book it?" }),
    );
    expect((await t.result()).text).toBe("yes");
  });

  test("a question without a name, reworded, holds the run and shows both texts", async () => {
    const { t, held, status } = await redeploy(
      (_task, worker) => worker.askOwner({ question: "Book?" }),
      (_task, worker) => worker.askOwner({ question: "Do I book it?" }),
    );
    expect(held).toHaveLength(1);
    expect(held[0]).toContain('"Book?"');
    expect(held[0]).toContain('"Do I book it?"');
    expect(await status()).toMatchObject({ state: "blocked", diagnostic: held[0] });
    // A program that fits goes on, with the answer that was given meanwhile.
    await t.crash({ agents: { it: agent((_task, worker) => worker.askOwner({ question: "Book?" })) } });
    expect((await t.result()).text).toBe("yes");
  });

  test("a name that meant something else holds the run", async () => {
    const { held } = await redeploy(book, async (_task, worker) => {
      await worker.step("book?", () => "now a step");
      return "done";
    });
    expect(held[0]).toMatch(/book\?#1.*a step named "book\?"/);
  });

  test("an agent that this program does not define holds the run until one does", async () => {
    const t = await createTestHerd({
      ...options,
      agents: { audit: agent((_task, worker) => worker.askOwner({ question: "Book?" })) },
    });
    await t.owner.assign({ agent: "audit", task: "go" });
    const question = await t.question();
    await t.crash({ agents: { other: agent(async () => "other") } });
    const held: string[] = [];
    t.herd.on("held", (event) => held.push(event.diagnostic));
    await question.reply("lost herd").catch(() => undefined);
    await t.owner.reply({ askId: question.askId, message: "yes" });
    await t.idle();
    expect(held[0]).toMatch(/"audit" is not defined.*other/);
    const renamed = agent((_task, worker) => worker.askOwner({ question: "Book?" }), { formerly: ["audit"] });
    await t.crash({ agents: { "ledger-audit": renamed } });
    expect((await t.result()).text).toBe("yes");
  });

  test("a held run is closed by its owner like any other", async () => {
    const { t } = await redeploy(
      (_task, worker) => worker.askOwner({ question: "Book?" }),
      (_task, worker) => worker.askOwner({ question: "Do I book it?" }),
    );
    await t.owner.close({ label: "it" });
    expect((await t.owner.list()).workers).toEqual([]);
  });
});

test("a second question with wait: false is refused at once while the first is open", async () => {
  const refusals: string[] = [];
  const t = await createTestHerd({
    agents: {
      it: agent(async (_task, worker) => {
        const first = worker.askOwner({ question: "first?" });
        await new Promise<void>((resolve) => t.herd.on("question", () => resolve()));
        await worker.askOwner({ question: "second?", wait: false }).catch((error) => refusals.push(error.reason));
        return first;
      }),
    },
  });
  await t.owner.assign({ agent: "it", task: "go" });
  await (await t.question()).reply("ok");
  expect((await t.result()).text).toBe("ok");
  expect(refusals).toEqual(["already_waiting"]);
});

describe("a step", () => {
  const run = async (fn: AgentDefinition["run"]) => {
    const t = await createTestHerd({ agents: { it: agent(fn) } });
    await t.owner.assign({ agent: "it", task: "go" });
    return t;
  };

  test("that throws is tried again as often as it says, with growing pauses", async () => {
    let tries = 0;
    const t = await run((_task, worker) =>
      worker.step(
        "flaky",
        () => {
          if (++tries < 3) throw new Error("not yet");
          return "third time";
        },
        { attempts: 3, backoffMs: 100 },
      ),
    );
    await t.clock.advance("100ms");
    expect(tries).toBe(2);
    await t.clock.advance("199ms");
    expect(tries).toBe(2);
    await t.clock.advance("1ms");
    expect((await t.result()).text).toBe("third time");
  });

  test("that keeps throwing fails the worker and is not journalled", async () => {
    const t = await run((_task, worker) => worker.step("broken", () => Promise.reject(new Error("no disk"))));
    expect(await t.result()).toMatchObject({ status: "failed", error: { code: "worker_error", message: "no disk" } });
  });

  test.each([
    ["something that is not JSON", () => (() => "function") as never, "step_not_json"],
    ["more than a mebibyte", () => "x".repeat(1024 * 1024), "step_too_large"],
  ])("returning %s is refused by name", async (_what, value, reason) => {
    const t = await run(async (_task, worker) => worker.step("bad", value).catch((error) => error.reason));
    expect((await t.result()).text).toBe(reason);
  });

  test.each([
    ["a blank name", " ", {}],
    ["no attempts", "a", { attempts: 0 }],
    ["a negative backoff", "a", { backoffMs: -1 }],
  ])("with %s is refused", async (_what, name, options) => {
    const t = await run(async (_task, worker) => worker.step(name, () => 1, options).catch((error) => error.reason));
    expect((await t.result()).text).toBe("invalid_field");
  });
});
