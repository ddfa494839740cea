import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "./agent.ts";
import { HerdError } from "../errors.ts";
import { createTestHerd } from "../testing/index.ts";
import { modes } from "../../test/support/modes.ts";

const asks: AgentDefinition = {
  description: "asks before it answers",
  run: async (task, worker) => `${task}: ${await worker.askOwner({ question: `May I do ${task}?` })}`,
};
const does: AgentDefinition = { description: "just does it", run: async (task) => `did ${task}` };
const parent = (run: AgentDefinition["run"], subagents = ["asks", "does"]): AgentDefinition => ({
  description: "delegates",
  subagents,
  run,
});

describe.each(modes)("a parent, $name", ({ options }) => {
  test("hears its children's questions and answers them itself", async () => {
    const t = await createTestHerd({
      ...options,
      agents: {
        asks,
        lead: parent(
          async (task, worker) => {
            const part = await worker.assign({ agent: "asks", task, onQuestion: (question) => question.reply("yes") });
            return (await part.result()).text;
          },
          ["asks"],
        ),
      },
    });
    await t.owner.assign({ agent: "lead", task: "A" });
    expect((await t.result()).text).toBe("A: yes");
    expect(t.owner.questions).toEqual([]);
  });

  test("escalates a question on its own edge and hands the answer down, over crashes at every pause", async () => {
    const t = await createTestHerd({
      ...options,
      agents: {
        asks,
        lead: parent(
          async (task, worker) => {
            const part = await worker.assign({ agent: "asks", task, onQuestion: worker.escalate });
            return `lead got ${(await part.result()).text}`;
          },
          ["asks"],
        ),
      },
    });
    const run = await t.owner.assign({ agent: "lead", task: "A" });
    await t.idle();
    await t.crash();
    const question = await t.question();
    expect(question).toMatchObject({ label: "lead", question: "May I do A?", requestId: run.requestId });
    await t.crash();
    await t.owner.reply({ askId: question.askId, message: "yes" });
    await t.crash();
    expect((await t.result()).text).toBe("lead got A: yes");
    await t.crash();
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("fans out, answers some questions by policy and escalates the others one by one", async () => {
    const t = await createTestHerd({
      ...options,
      agents: {
        reviewer: {
          description: "reviews",
          concurrency: 2,
          run: async (task, worker) => `${task}=${await worker.askOwner({ question: `${task}?` })}`,
        },
        lead: parent(
          async (_task, worker) => {
            const parts = await Promise.all(
              ["a", "b", "c", "d"].map((file) =>
                worker.assign({
                  name: file,
                  agent: "reviewer",
                  task: file,
                  onQuestion: (question) =>
                    question.question === "a?" ? question.reply("policy") : worker.escalate(question),
                }),
              ),
            );
            const results = await Promise.all(parts.map((part) => part.result()));
            return results.map((result) => result.text).join(" ");
          },
          ["reviewer"],
        ),
      },
    });
    await t.owner.assign({ agent: "lead", task: "go" });
    for (let i = 0; i < 3; i++) {
      const question = await t.question();
      await t.crash();
      await t.owner.reply({ askId: question.askId, message: question.question.toUpperCase() });
    }
    expect((await t.result()).text).toBe("a=policy b=B? c=C? d=D?");
  });

  test("is blocked while it only waits for its children", async () => {
    const t = await createTestHerd({
      ...options,
      agents: {
        does,
        lead: parent(
          async (task, worker) => {
            const part = await worker.assign({ agent: "does", task });
            return (await part.result()).text;
          },
          ["does"],
        ),
      },
    });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "lead", task: "A" });
    const child = await script.run();
    await child.turn();
    await t.idle();
    const { workers } = await t.owner.list();
    expect(workers).toMatchObject([
      { label: "lead", state: "blocked" },
      { label: "does", state: "working", parentLabel: "lead" },
    ]);
    await t.crash();
    await child.settle("played");
    expect((await t.result()).text).toBe("played");
  });

  test("that returns early is held until its last child is done", async () => {
    const t = await createTestHerd({
      ...options,
      agents: {
        does,
        lead: parent(
          async (task, worker) => {
            await worker.assign({ agent: "does", task });
            return "early";
          },
          ["does"],
        ),
      },
    });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "lead", task: "A" });
    const child = await script.run();
    await child.turn();
    await t.idle();
    expect(t.owner.results).toEqual([]);
    await child.settle("late");
    expect((await t.result()).text).toBe("early");
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("that throws closes its children and fails", async () => {
    const t = await createTestHerd({
      ...options,
      agents: {
        asks,
        lead: parent(
          async (task, worker) => {
            const part = await worker.assign({ agent: "asks", task, onQuestion: () => undefined });
            await worker.assign({ agent: "asks", task: "B", onQuestion: () => undefined });
            throw new Error(`gave up on ${part.label}`);
          },
          ["asks"],
        ),
      },
    });
    const run = await t.owner.assign({ agent: "lead", task: "A" });
    expect(await t.result()).toMatchObject({
      requestId: run.requestId,
      status: "failed",
      error: { code: "worker_error", message: "gave up on asks" },
    });
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("reading an asking child without a handler is told which question waits, and can reply", async () => {
    const t = await createTestHerd({
      ...options,
      agents: {
        asks,
        lead: parent(
          async (task, worker) => {
            const part = await worker.assign({ agent: "asks", task });
            for (;;) {
              try {
                return (await part.result()).text;
              } catch (error) {
                if (!(error instanceof HerdError) || error.reason !== "question_waiting") throw error;
                await worker.reply({ askId: error.ids?.["askId"] ?? "", message: "from a catch" });
              }
            }
          },
          ["asks"],
        ),
      },
    });
    await t.owner.assign({ agent: "lead", task: "A" });
    expect((await t.result()).text).toBe("A: from a catch");
  });

  test("that asks although nothing reads a finished child is said to wait for that", async () => {
    const t = await createTestHerd({
      ...options,
      agents: {
        quick: { description: "quick", run: async () => "done" },
        lead: parent(
          async (_task, worker) => {
            const part = await worker.assign({ agent: "quick", task: "x", label: "part" });
            await worker.step("until it is done", async () => {
              while ((await part.status()).state !== "completed") await new Promise((resolve) => setImmediate(resolve));
            });
            return worker.askOwner({ question: "Now?" });
          },
          ["quick"],
        ),
      },
    });
    await t.owner.assign({ agent: "lead", task: "A" });
    await t.idle();
    const { workers } = await t.owner.list();
    const diagnostic = workers.find(({ label }) => label === "lead")?.diagnostic;
    expect(diagnostic).toMatch(/waits until it has read the result of "part"/);
  });

  test("hears a child that was closed, and goes on", async () => {
    const t = await createTestHerd({
      ...options,
      agents: {
        asks,
        lead: parent(
          async (task, worker) => {
            const part = await worker.assign({
              agent: "asks",
              task,
              label: "victim",
              onQuestion: () => worker.close({ label: "victim" }),
            });
            const result = await part.result();
            return `${result.status} ${result.error?.code}`;
          },
          ["asks"],
        ),
      },
    });
    await t.owner.assign({ agent: "lead", task: "A" });
    expect((await t.result()).text).toBe("closed closed");
  });

  test("closing it takes the children along, deepest first, and tells each assignment once", async () => {
    const t = await createTestHerd({
      ...options,
      agents: {
        asks,
        lead: parent(
          async (_task, worker) => {
            const one = await worker.assign({ agent: "asks", task: "one", onQuestion: worker.escalate });
            const two = await worker.assign({ agent: "asks", task: "two", onQuestion: worker.escalate });
            return `${(await one.result()).text} ${(await two.result()).text}`;
          },
          ["asks"],
        ),
      },
    });
    const run = await t.owner.assign({ agent: "lead", task: "A" });
    const question = await t.question();
    await t.owner.close({ label: "lead" });
    expect((await t.owner.list()).workers).toEqual([]);
    expect(await (await t.herd.assignment(run.requestId)).result()).toMatchObject({ status: "closed" });
    await expect(t.owner.reply({ askId: question.askId, message: "late" })).rejects.toMatchObject({
      category: "target_not_found",
      reason: "closed",
    });
    expect(t.owner.results).toEqual([]);
    // Every label is free again.
    await t.owner.assign({ agent: "lead", task: "again", label: "asks" });
  });
});

describe("delegation", () => {
  const refusal = async (run: AgentDefinition["run"], subagents: string[] | undefined) => {
    const definition = subagents ? parent(run, subagents) : { description: "leaf", run };
    const t = await createTestHerd({ agents: { asks, does, it: definition } });
    await t.owner.assign({ agent: "it", task: "go" });
    return (await t.result()).text;
  };
  const reasonOf = (error: HerdError) => `${error.category} ${error.operation} ${error.field ?? ""}`;

  test("is refused for a leaf", async () => {
    const text = await refusal(
      (_task, worker) => worker.assign({ agent: "does", task: "x" }).then(() => "ok", reasonOf),
      undefined,
    );
    expect(text).toBe("invalid_request controller ");
  });

  test("through the tool is refused for a leaf, whatever the action", async () => {
    const text = await refusal(async (_task, worker) => {
      const answers = [];
      for (const request of [
        { action: "list" },
        { action: "assign", agent: "does", task: "x" },
        { action: "close", label: "x" },
      ]) {
        answers.push(await worker.subagent(request));
      }
      return answers.map(({ error }) => `${error.category} ${error.operation}`).join();
    }, undefined);
    expect(text).toBe(Array.from({ length: 3 }, () => "invalid_request controller").join());
  });

  test("is refused for a child, however its agent is defined", async () => {
    const t = await createTestHerd({
      agents: {
        does,
        inner: parent(
          (_task, worker) => worker.assign({ agent: "does", task: "x" }).then(() => "ok", reasonOf),
          ["does"],
        ),
        outer: parent(
          async (_task, worker) => (await (await worker.assign({ agent: "inner", task: "x" })).result()).text,
          ["inner"],
        ),
      },
    });
    await t.owner.assign({ agent: "outer", task: "go" });
    expect((await t.result()).text).toBe("invalid_request controller ");
  });

  test("is limited to the agents that the definition lists", async () => {
    const text = await refusal(
      (_task, worker) => worker.assign({ agent: "does", task: "x" }).then(() => "ok", reasonOf),
      ["asks"],
    );
    expect(text).toBe("invalid_request assign agent");
  });

  test("stays in the parent's working directory", async () => {
    const text = await refusal(
      (_task, worker) => worker.assign({ agent: "does", task: "x", cwd: "/" }).then(() => "ok", reasonOf),
      ["does"],
    );
    expect(text).toBe("invalid_request assign cwd");
  });

  test("through the subagent tool speaks the tool's JSON and starts one child over a crash", async () => {
    const t = await createTestHerd({
      agents: {
        asks,
        lead: parent(
          async (_task, worker) => {
            const started = await worker.subagent({ action: "assign", agent: "asks", task: "A" });
            await worker.step("noted", () => started.label);
            const listed = await worker.subagent({ action: "list" });
            const label = listed.workers[0].label;
            await worker.subagent({ action: "close", label });
            return { started: started.ok, label, definitions: listed.agent_definitions };
          },
          ["asks"],
        ),
      },
    });
    await t.owner.assign({ agent: "lead", task: "A" });
    expect((await t.result()).data).toEqual({
      started: true,
      label: "asks",
      definitions: [{ name: "asks", description: asks.description }],
    });
  });
});
