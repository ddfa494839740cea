import { afterEach, describe, expect, test } from "vitest";
import { rules } from "../../machines/eligibility.ts";
import type { AgentDefinition } from "../functions/agent.ts";
import { createTestHerd } from "../testing/index.ts";

const asks: AgentDefinition = {
  description: "asks before it answers",
  run: async (task, worker) => `${task}: ${await worker.askOwner({ question: `May I do ${task}?` })}`,
};

/** A fault that nobody planned for, inside a guard. */
const broken = {
  reason: "broken",
  message: "",
  nextAction: "",
  when: (): boolean => {
    throw new Error("a guard broke");
  },
};
const replyRules = rules.reply as (typeof broken)[];

afterEach(() => {
  if (replyRules.at(-1) === broken) replyRules.pop();
});

describe("a guard that throws", () => {
  test("undoes the command and loses nothing: the question is open and is answered later", async () => {
    const t = await createTestHerd({ agents: { asks } });
    await t.owner.assign({ agent: "asks", task: "A" });
    await t.owner.assign({ agent: "asks", task: "B" });
    const first = await t.question();
    const second = await t.question();
    replyRules.push(broken);
    await expect(first.reply("yes")).rejects.toMatchObject({ category: "internal_failure", rollbackOccurred: true });
    await expect(first.reply("yes")).rejects.toThrow(/a guard broke.*Next: /);
    replyRules.pop();
    expect((await t.owner.list()).workers).toMatchObject([
      { label: "asks", state: "blocked" },
      { label: "asks-2", state: "blocked" },
    ]);
    await second.reply("second");
    await first.reply("first");
    await t.idle();
    expect(t.owner.results.map(({ text }) => text).toSorted()).toEqual(["A: first", "B: second"]);
  });

  test("inside the chart drops the tree, which is read again as it was", async () => {
    const t = await createTestHerd({ agents: { asks } });
    await t.owner.assign({ agent: "asks", task: "A" });
    const question = await t.question();
    // Let the engine's own look pass, and break in the guard of the transition that follows it.
    let looks = 0;
    replyRules.push({ ...broken, when: () => (++looks < 2 ? false : broken.when()) });
    await expect(question.reply("yes")).rejects.toMatchObject({ category: "internal_failure", reason: "undone" });
    replyRules.pop();
    expect((await t.owner.list()).workers).toMatchObject([{ label: "asks", state: "blocked" }]);
    await question.reply("yes");
    expect((await t.result()).text).toBe("A: yes");
  });
});

describe("a worker that throws", () => {
  test.each([
    ["an error", () => new Error("no luck"), "no luck"],
    ["a string", () => "just text", "just text"],
    ["nothing", () => undefined, "undefined"],
  ])("%s fails its assignment with that message", async (_what, thrown, message) => {
    const it: AgentDefinition = {
      description: "throws",
      run: () => {
        throw thrown();
      },
    };
    const t = await createTestHerd({ agents: { it } });
    await t.owner.assign({ agent: "it", task: "go" });
    expect(await t.result()).toMatchObject({ status: "failed", error: { code: "worker_error", message } });
  });
});
