import { describe, expect, test } from "vitest";
import type { AgentDefinition, Question } from "pi-herd";
import { createTestHerd, FaultPlan, faultyStore, memoryStore } from "pi-herd/testing";
import { asks, does, gate, refusalOf, statesOf, until } from "./support.ts";

const agents = { asks, does };

async function faulty(options: object = {}) {
  const plan = new FaultPlan();
  const t = await createTestHerd({ agents, store: faultyStore(memoryStore(), plan), ...options });
  return { t, plan };
}

/** Hears its child's question, asks it on its own edge, and hands the answer down. */
const lead: AgentDefinition = {
  description: "delegates",
  subagents: ["asks", "does"],
  run: async (task, worker) => {
    const part = await worker.assign({
      agent: "asks",
      task,
      onQuestion: async (question) => {
        const answer = await worker.askOwner({
          name: "forwarded",
          question: `For ${question.label}: ${question.question}`,
        });
        await question.reply(answer);
      },
    });
    return { child: part.requestId, text: (await part.result()).text };
  },
};

describe("the chain from child to parent to root and back", () => {
  test("keeps both requests over a restart between every two steps", async () => {
    const t = await createTestHerd({ agents: { asks, does, lead } });
    const script = t.scripted("asks");
    const run = await t.owner.assign({ agent: "lead", task: "A" });
    const child = await script.run();
    const childRequest = child.requestId;
    const restart = async (expected: string[]) => {
      await t.idle();
      await t.crash();
      await t.idle();
      expect(await statesOf(t)).toEqual(expected);
      const { workers } = await t.owner.list();
      expect(workers.map(({ activeRequestId }) => activeRequestId)).toEqual([run.requestId, childRequest]);
    };
    await restart(["lead blocked", "asks working"]);
    await child.turn();
    await restart(["lead blocked", "asks working"]);
    await child.ask("May I?");
    await child.endTurn();
    await restart(["lead blocked", "asks blocked"]);
    const question = await t.question();
    expect(question).toMatchObject({ requestId: run.requestId, question: "For asks: May I?" });
    await restart(["lead blocked", "asks blocked"]);
    await t.owner.reply({ askId: question.askId, message: "yes" });
    await restart(["lead blocked", "asks working"]);
    expect(child.orders.at(-1)).toMatchObject({ kind: "answer", message: "yes", requestId: childRequest });
    await child.turn();
    await restart(["lead blocked", "asks working"]);
    await child.settle("child is done");
    await t.crash();
    const result = await t.result();
    expect(result).toMatchObject({
      requestId: run.requestId,
      status: "completed",
      data: { child: childRequest, text: "child is done" },
    });
    await t.idle();
    await t.crash();
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
    expect(t.owner.questions).toHaveLength(1);
    expect((await t.owner.list()).workers).toEqual([]);
  });

  /** Goes through the chain; the process ends after the n-th batch is on disk, before anybody is told. */
  async function endingAfter(batch: number): Promise<boolean> {
    const { t, plan } = await faulty({ agents: { asks, lead, does }, restarts: 100 });
    const held = plan.holdBatch({ after: batch, landed: true });
    const drive = async (): Promise<string> => {
      const { requestId } = await t.owner.assign({ id: "chain", agent: "lead", task: "A" });
      for (let look = 0; look < 5 && t.owner.results.length === 0; look++) {
        await t.idle();
        const row = (await t.owner.list()).workers.find(({ label }) => label === "lead");
        if (row?.question) await t.owner.reply({ askId: row.question.askId, message: "yes", id: "answer" });
      }
      await t.idle();
      return requestId;
    };
    const first = drive();
    first.catch(() => undefined);
    const ended = await Promise.race([held.reached.then(() => true), first.then(() => false)]);
    if (ended) {
      await t.crash();
      held.release();
      await drive();
    }
    expect(t.owner.results, `after batch ${batch}`).toMatchObject([
      { status: "completed", data: { child: expect.any(String), text: "A: yes" } },
    ]);
    expect(new Set(t.owner.questions.map(({ askId }) => askId)).size, `after batch ${batch}`).toBe(1);
    expect((await t.owner.list()).workers, `after batch ${batch}`).toEqual([]);
    return ended;
  }

  test("ends with one result whichever batch is the last before the process dies", async () => {
    let batch = 0;
    while (await endingAfter(batch)) batch++;
    expect(batch).toBeGreaterThan(6);
  });
});

describe("a process that dies with a reply", () => {
  test("just stored neither asks nor blocks again, and the worker hears it once", async () => {
    const heard: string[] = [];
    const { t, plan } = await faulty({
      agents: {
        it: {
          description: "asks",
          run: async (_task: string, worker: Parameters<AgentDefinition["run"]>[1]) => {
            const answer = await worker.askOwner({ question: "Which?" });
            return worker.step("hear", () => (heard.push(answer), answer));
          },
        },
      },
    });
    await t.owner.assign({ agent: "it", task: "A" });
    const question = await t.question();
    await t.idle();
    const held = plan.holdBatch({ landed: true });
    void question.reply("this").catch(() => undefined);
    await held.reached;
    expect(heard).toEqual([]);
    await t.crash();
    held.release();
    expect((await t.result()).text).toBe("this");
    expect(heard).toEqual(["this"]);
    expect(t.owner.questions).toHaveLength(1);
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("just given does not ask again, and a second reply is refused", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "does", task: "A" });
    const run = await script.run();
    await run.turn();
    await run.ask("Which?");
    await run.endTurn();
    const question = await t.question();
    await t.owner.reply({ askId: question.askId, message: "this" });
    await t.crash();
    await t.idle();
    expect(t.owner.questions).toHaveLength(1);
    expect(await statesOf(t)).toEqual(["does working"]);
    expect(await refusalOf(t.owner.reply({ askId: question.askId, message: "that" }))).toMatchObject({
      category: "worker_busy",
      reason: "already_answered",
    });
    expect(await refusalOf(t.owner.reply({ label: "does", message: "that" }))).toMatchObject({
      category: "worker_busy",
    });
    // The backend may be told again, under the same order: it carries it out once.
    const answers = run.orders.filter(({ kind }) => kind === "answer");
    expect(new Set(answers.map(({ orderId }) => orderId)).size).toBe(1);
    for (const answer of answers) expect(answer).toMatchObject({ message: "this" });
  });

  test("given from within a handler that never ended does not call that handler again", async () => {
    const t = await createTestHerd({ agents });
    const handed: number[] = [];
    const replied = gate();
    const onQuestion = async (question: Question) => {
      handed.push(question.attempt);
      await question.reply("yes");
      replied.open();
      await new Promise(() => undefined);
    };
    const run = await t.herd.owner("me", { onQuestion }).assign({ agent: "asks", task: "A" });
    await replied.opened;
    await t.crash();
    t.herd.owner("me", { onQuestion });
    expect((await (await t.herd.assignment(run.requestId)).result()).text).toBe("A: yes");
    await t.idle();
    expect(handed).toEqual([1]);
  });

  test("that a run works on goes on with it once after reopening", async () => {
    const begun = gate();
    let executions = 0;
    const t = await createTestHerd({
      agents: {
        it: {
          description: "asks, then works",
          run: async (_task, worker) => {
            const answer = await worker.askOwner({ question: "Which?" });
            await worker.step("first", () => void executions++);
            if (executions === 1) {
              executions++;
              begun.open();
              await new Promise(() => undefined);
            }
            return `went on with ${answer}`;
          },
        },
      },
    });
    await t.owner.assign({ agent: "it", task: "A" });
    await (await t.question()).reply("this");
    await begun.opened;
    await t.crash();
    expect((await t.result()).text).toBe("went on with this");
    await t.idle();
    await t.crash();
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
    expect(t.owner.questions).toHaveLength(1);
    expect(executions).toBe(2);
  });
});

describe("an assignment", () => {
  test("whose acceptance could not be stored never reaches a worker, and its replay is accepted", async () => {
    const { t, plan } = await faulty({ reopen: { attempts: 1, pauseMs: 0 } });
    const script = t.scripted("does");
    // The batch, its repetition, then, after a probe that lands, the command alone.
    plan.failBatches(2);
    plan.failBatches(1, { after: 3 });
    const request = { id: "once", agent: "does", task: "A" };
    expect(await refusalOf(t.owner.assign(request))).toMatchObject({
      category: "internal_failure",
      rollbackOccurred: true,
    });
    await t.idle();
    expect(script.runs).toEqual([]);
    expect((await t.owner.list()).workers).toEqual([]);
    const run = await t.owner.assign(request);
    expect((await script.run()).requestId).toBe(run.requestId);
    await t.idle();
    expect(script.runs).toHaveLength(1);
    await script.runs[0]?.turn();
    await script.runs[0]?.settle("done");
    expect((await t.result()).text).toBe("done");
  });
});

describe("a place to execute in", () => {
  /** Runs of one agent that end when the test says so, one at a time. */
  async function oneAtATime() {
    const inside: { task: string; leave: () => void }[] = [];
    const arrived = async (task: string) => {
      for (;;) {
        const found = inside.findLast((run) => run.task === task);
        if (found) return found;
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const t = await createTestHerd({
      agents: {
        one: {
          description: "one at a time",
          concurrency: 1,
          run: (task) => new Promise<string>((resolve) => inside.push({ task, leave: () => resolve(`did ${task}`) })),
        },
      },
    });
    for (const task of ["a", "b", "c"]) await t.owner.assign({ agent: "one", task, label: task });
    await arrived("a");
    return { t, inside, arrived };
  }
  const tasks = (inside: { task: string }[]) => inside.map(({ task }) => task);

  test("is given back once by a run that is closed, however late its function ends", async () => {
    const { t, inside, arrived } = await oneAtATime();
    const [first] = inside;
    await t.owner.close({ label: "a" });
    await arrived("b");
    first?.leave();
    expect((await t.owner.list()).workers.map(({ label, queued }) => [label, queued])).toEqual([
      ["b", undefined],
      ["c", true],
    ]);
    expect(tasks(inside)).toEqual(["a", "b"]);
    (await arrived("b")).leave();
    (await arrived("c")).leave();
    await t.idle();
    expect(t.owner.results.map(({ text }) => text)).toEqual(["did b", "did c"]);
  });

  test("is given back once by a run that is closed while it waits for its owner", async () => {
    const inside: string[] = [];
    const t = await createTestHerd({
      agents: {
        one: {
          description: "one at a time",
          concurrency: 1,
          run: async (task, worker) => {
            if (task === "asks") return worker.askOwner({ question: "Which?" });
            inside.push(task);
            return new Promise<string>(() => undefined);
          },
        },
      },
    });
    for (const task of ["asks", "b", "c"]) await t.owner.assign({ agent: "one", task, label: task });
    await until(() => inside.length > 0);
    await t.owner.close({ label: "asks" });
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
    expect(inside).toEqual(["b"]);
    expect((await t.owner.list()).workers.map(({ label, queued }) => [label, queued])).toEqual([
      ["b", undefined],
      ["c", true],
    ]);
  });

  test("is given back once by a process that died, whose functions may still end", async () => {
    const { t, inside } = await oneAtATime();
    const [before] = inside.splice(0);
    await t.crash();
    await new Promise((resolve) => setImmediate(resolve));
    before?.leave();
    for (let ended = 1; ended <= 3; ended++) {
      while (inside.length < ended) await new Promise((resolve) => setImmediate(resolve));
      const { workers } = await t.owner.list();
      expect(workers.filter(({ state }) => state === "working")).toHaveLength(1);
      expect(inside).toHaveLength(ended);
      inside[ended - 1]?.leave();
    }
    await t.idle();
    expect(t.owner.results.map(({ text }) => text).toSorted()).toEqual(["did a", "did b", "did c"]);
  });
});
