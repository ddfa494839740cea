import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { AgentDefinition } from "pi-herd";
import { createTestHerd, FaultPlan, faultyStore, memoryStore } from "pi-herd/testing";
import { asks, does, refusalOf, statesOf } from "./support.ts";

const agents = { asks, does };

/** A worker in its first turn, which the test plays. */
async function working(options: object = {}) {
  const t = await createTestHerd({ agents, ...options });
  const script = t.scripted("does");
  const assignment = await t.owner.assign({ agent: "does", task: "A" });
  const run = await script.run();
  await run.turn();
  return { t, assignment, run };
}

async function folderWith(name: string, content: string): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "herd-asking-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, name), content);
  return folder;
}

describe("ask_owner", () => {
  test("parks only a lone ask with readable files; its reply goes on with the same request to one result", async () => {
    const cwd = await folderWith("options.md", "A or B\n");
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "does", task: "A", cwd });
    const run = await script.run();
    await run.turn();
    const active = (await t.owner.list()).workers[0];

    expect(await refusalOf(run.ask("Which?", { batch: ["ask_owner", "read"] }))).toMatchObject({
      reason: "not_sole_tool_call",
    });
    expect(await refusalOf(run.ask("Which?", { files: ["missing.md"] }))).toMatchObject({
      reason: "unreadable_file",
      field: "files",
    });
    expect((await t.owner.list()).workers).toEqual([active]);
    expect(t.owner.questions).toEqual([]);

    const asked = await run.ask("Which?", { files: ["options.md"] });
    expect(asked.assignmentRequestId).toBe(run.requestId);
    await run.endTurn();
    expect(await statesOf(t)).toEqual(["does blocked"]);
    const question = await t.question();
    expect(question).toMatchObject({
      askId: asked.askId,
      requestId: run.requestId,
      question: "Which?",
      files: [{ path: join(cwd, "options.md"), bytes: 7, text: "A or B\n" }],
    });
    await run.settle("guessed");
    await t.idle();
    expect(t.owner.results).toEqual([]);
    expect(await question.reply("B")).toMatchObject({ assignmentRequestId: run.requestId });
    await run.turn();
    expect((await t.owner.list()).workers).toMatchObject([{ state: "working", activeRequestId: run.requestId }]);
    await run.settle("did B");
    expect(await t.result()).toMatchObject({ requestId: run.requestId, text: "did B" });
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
  });

  test("reaches its owner once, blocks, and the exact reply goes on to one result, with nothing left over", async () => {
    const { t, assignment, run } = await working();
    const { askId } = await run.ask("Which?");
    await run.endTurn();
    const question = await t.question();
    await t.idle();
    expect(t.owner.questions).toHaveLength(1);
    expect(await statesOf(t)).toEqual(["does blocked"]);
    await question.reply("  B\n");
    await t.idle();
    expect(run.orders.at(-1)).toMatchObject({ kind: "answer", askId, message: "  B\n" });
    await run.turn();
    await run.settle("done");
    await t.result();
    await t.idle();
    expect(t.owner.results).toMatchObject([{ requestId: assignment.requestId, text: "done" }]);
    expect((await t.owner.list()).workers).toEqual([]);
    const left = await t.store.range({ gte: "d!", lt: "d~" });
    expect(left).toEqual([]);
  });

  test("whose commit fails leaves the worker working without a question, and a retry works", async () => {
    const plan = new FaultPlan();
    const { t, run } = await working({
      store: faultyStore(memoryStore(), plan),
      reopen: { attempts: 1, pauseMs: 0 },
    });
    // The batch, its repetition, then, after a probe that lands, the command alone.
    plan.failBatches(2);
    plan.failBatches(1, { after: 3 });
    expect(await refusalOf(run.ask("Which?"))).toMatchObject({ category: "internal_failure", reason: "undone" });
    const { workers } = await t.owner.list();
    expect(workers).toMatchObject([{ state: "working", activeRequestId: run.requestId }]);
    expect(workers[0]).not.toHaveProperty("question");
    expect(t.owner.questions).toEqual([]);
    await run.ask("Which?");
    await run.endTurn();
    await (await t.question()).reply("B");
    await run.turn();
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
  });

  test("may be called again when its files were not readable", async () => {
    const { t, run } = await working();
    expect(await refusalOf(run.ask("Which?", { files: ["missing"] }))).toMatchObject({ reason: "unreadable_file" });
    expect((await t.owner.list()).workers[0]).not.toHaveProperty("question");
    await run.ask("Which?");
    expect((await t.question()).question).toBe("Which?");
  });
});

describe("a parent", () => {
  /** What each of its children does before the parent asks, and whether it may. */
  const cases: [string, ("active" | "just asked" | "asking" | "done")[], boolean][] = [
    ["no child", [], true],
    ["an active child", ["active"], false],
    ["a child with an unread result", ["done"], false],
    ["a child that asks", ["asking"], true],
    ["a child whose turn has asked and not ended yet", ["just asked"], true],
    ["several children that ask", ["asking", "asking", "asking"], true],
    ["a child that asks and an active one", ["asking", "active"], false],
    ["a child that asks and one with an unread result", ["asking", "done"], false],
  ];

  test.each(cases)(
    "with %s may ask exactly when no child works or has an unread result",
    async (_what, children, may) => {
      let ask = (): void => {};
      const told = new Promise<void>((resolve) => (ask = resolve));
      const refused: string[] = [];
      const lead: AgentDefinition = {
        description: "asks when it is told to",
        subagents: ["does"],
        run: async (_task, worker) => {
          for (const _ of children) await worker.assign({ agent: "does", task: "part", onQuestion: () => undefined });
          await told;
          const answer = await worker.askOwnerTool({ question: "Which?" }, { batch: ["ask_owner"] });
          if (!answer.ok) refused.push(`${answer.error.category}: ${String(answer.error["reason"])}`);
          return "done";
        },
      };
      const t = await createTestHerd({ agents: { does, lead } });
      const script = t.scripted("does");
      await t.owner.assign({ agent: "lead", task: "A" });
      for (const [index, what] of children.entries()) {
        const child = await script.run(index === 0 ? "does" : `does-${index + 1}`);
        await child.turn();
        if (what === "asking" || what === "just asked") {
          await child.ask("May I?");
          if (what === "asking") await child.endTurn();
        } else if (what === "done") {
          await child.settle("part done");
        }
      }
      ask();
      await t.idle();
      const asked = t.owner.questions.map(({ label, question }) => `${label}: ${question}`);
      expect({ asked, refused }).toEqual(
        may ? { asked: ["lead: Which?"], refused: [] } : { asked: [], refused: ["worker_busy: child_work_active"] },
      );
    },
  );

  test("that asks by program waits until its child's result is read, and asks then", async () => {
    const heard: string[] = [];
    const lead: AgentDefinition = {
      description: "asks at once",
      subagents: ["does"],
      run: async (_task, worker) => {
        const part = await worker.assign({ agent: "does", task: "part" });
        const asked = worker.askOwner({ question: "Which?" });
        heard.push((await part.result()).text);
        return `${heard[0]}, then ${await asked}`;
      },
    };
    const t = await createTestHerd({ agents: { does, lead } });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "lead", task: "A" });
    const child = await script.run();
    await child.turn();
    await t.idle();
    expect(t.owner.questions).toEqual([]);
    await child.settle("part done");
    const question = await t.question();
    expect(heard).toEqual(["part done"]);
    await question.reply("B");
    expect((await t.result()).text).toBe("part done, then B");
  });
});

test("waiting on an assignment wakes for every question and for the result", async () => {
  const t = await createTestHerd({
    agents: {
      twice: {
        description: "asks twice",
        run: async (_task, worker) =>
          `${await worker.askOwner({ question: "first?" })} ${await worker.askOwner({ question: "second?" })}`,
      },
    },
  });
  const owner = t.herd.owner("me");
  const run = await owner.assign({ agent: "twice", task: "A" });
  const heard: string[] = [];
  for await (const event of run) {
    if (event.type === "result") {
      heard.push(event.result.text);
      continue;
    }
    heard.push(event.question.question);
    await t.idle();
    // The next wait begins before anything can happen.
    setImmediate(() => void event.question.reply(event.question.question.toUpperCase()));
  }
  expect(heard).toEqual(["first?", "second?", "FIRST? SECOND?"]);
});

test("a question that is open for a day still waits, is never stale, and is answered", async () => {
  const { t, run } = await working();
  const stale: string[] = [];
  t.herd.on("stale", (event) => stale.push(event.label));
  await run.ask("Which?");
  await run.endTurn();
  await t.clock.advance("24h");
  await t.clock.advance("1m");
  const { workers } = await t.owner.list();
  expect(workers).toMatchObject([{ state: "blocked", question: { question: "Which?" } }]);
  expect(workers[0]).not.toHaveProperty("stale");
  expect(stale).toEqual([]);
  await (await t.question()).reply("B");
  await run.turn();
  expect(await statesOf(t)).toEqual(["does working"]);
});
