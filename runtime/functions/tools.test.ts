import { describe, expect, test } from "vitest";
import { inMode, modes } from "../../test/support/modes.ts";
import type { TestHerd } from "../testing/index.ts";
import type { Worker } from "./worker.ts";

/** Models run by functions: what the tools tell them stands in the journal, so that a re-run shows the same. */

const asks = {
  description: "asks",
  run: async (task: string, worker: Worker) => `${task}: ${await worker.askOwner({ question: `${task}?` })}`,
};

const twice = {
  description: "asks twice",
  run: async (_task: string, worker: Worker) =>
    `${await worker.askOwner({ question: "first?" })} ${await worker.askOwner({ question: "second?" })}`,
};

/** The result of a lead whose questions are answered each after a crash. */
async function answeredOverCrashes(t: TestHerd, answers: readonly string[]): Promise<string> {
  await t.owner.assign({ agent: "lead", task: "go" });
  for (const message of answers) {
    const { askId } = await t.question();
    await t.crash();
    await t.owner.reply({ askId, message });
  }
  return (await t.result()).text;
}

describe.each(modes)("the tools of a function worker, $name", ({ options }) => {
  const open = inMode(options);

  test("give the handle of what subagent assigned, over a crash, and its result is consumed once", async () => {
    let starts = 0;
    const lead = {
      description: "leads",
      subagents: ["asks"],
      run: async (_task: string, worker: Worker) => {
        starts++;
        const { request_id } = await worker.subagent({ action: "assign", agent: "asks", task: "part" });
        const part = await worker.assignment(request_id, { onQuestion: worker.escalate });
        return `${(await part.result()).text}, ${(await (await worker.assignment(request_id)).result()).text}`;
      },
    };
    const t = await open({ agents: { lead, asks } });
    await t.owner.assign({ agent: "lead", task: "go" });
    const question = await t.question();
    await t.crash();
    await t.owner.reply({ askId: question.askId, message: "yes" });
    expect((await t.result()).text).toBe("part: yes, part: yes");
    expect(starts).toBeGreaterThan(1);
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("know no assignment that the worker did not make", async () => {
    const lead = {
      description: "leads",
      subagents: ["asks"],
      run: (_task: string, worker: Worker) =>
        worker.assignment("somebody-else's").then(
          () => "found",
          (error) => error.reason,
        ),
    };
    const t = await open({ agents: { lead, asks } });
    await t.owner.assign({ agent: "lead", task: "go" });
    expect((await t.result()).text).toBe("target_not_found");
  });

  test("refuse in a re-run what they refused before, although nothing speaks against it any more", async () => {
    const seen: string[][] = [];
    const lead = {
      description: "leads",
      subagents: ["asks", "quick"],
      run: async (_task: string, worker: Worker) => {
        const told: string[] = [];
        seen.push(told);
        const part = await worker.assign({ agent: "quick", task: "part" });
        const asked = await worker.askOwnerTool({ question: "Now?" }, { batch: ["ask_owner"] });
        told.push(asked.ok ? asked.answer : String(asked.error["reason"]));
        const taken = await worker.subagent({ action: "assign", agent: "asks", task: "x", label: "quick" });
        told.push(taken.ok ? "assigned" : taken.error.reason);
        const listed = await worker.subagent({ action: "list" });
        told.push(
          listed.workers.map(({ label, state }: { label: string; state: string }) => `${label} ${state}`).join(),
        );
        await worker.step("go on", () => undefined);
        await part.result();
        return worker.askOwner({ question: "Done?" });
      },
    };
    const quick = { description: "quick", run: async () => "done" };
    const t = await open({ agents: { lead, asks, quick } });
    await t.owner.assign({ agent: "lead", task: "go" });
    expect((await t.question()).question).toBe("Done?");
    await t.crash();
    await t.owner.reply({ label: "lead", message: "yes" });
    expect((await t.result()).text).toBe("yes");
    expect(seen.length).toBeGreaterThan(1);
    expect(seen[0]?.[0]).toBe("child_work_active");
    for (const told of seen) expect(told).toEqual(seen[0]);
  });

  test("reply to two questions of one child, each once, over a crash between them", async () => {
    const lead = {
      description: "leads",
      subagents: ["twice"],
      run: async (_task: string, worker: Worker) => {
        const { label, request_id } = await worker.subagent({ action: "assign", agent: "twice", task: "x" });
        const part = await worker.assignment(request_id);
        for (;;) {
          const event = await part.next();
          if (event.type === "result") return event.result.text;
          const message = await worker.askOwner({ question: `What of ${event.question.question}` });
          await worker.subagent({ action: "reply", label, message });
        }
      },
    };
    expect(await answeredOverCrashes(await open({ agents: { lead, twice } }), ["one", "two"])).toBe("one two");
  });

  test("let a re-run steer, answer and close by label what is gone by then", async () => {
    const told: string[] = [];
    const part = {
      description: "asks",
      run: async (task: string, worker: Worker) => {
        const answer = await worker.askOwner({ question: `${task}?` });
        told.push(...worker.steers().map(({ message }) => message));
        return answer;
      },
    };
    const slow = { description: "never ends", run: () => new Promise<string>(() => undefined) };
    const lead = {
      description: "leads",
      subagents: ["part", "slow"],
      run: async (_task: string, worker: Worker) => {
        await worker.assign({ agent: "slow", task: "x" });
        const steered = await worker.steer({ label: "slow", message: "hurry" });
        await worker.close({ label: "slow" });
        const run = await worker.assign({ agent: "part", task: "part" });
        await run.result().catch(() => undefined);
        const replied = await worker.reply({ label: "part", message: "so" });
        const { text } = await run.result();
        return `${text}, ${await worker.askOwner({ question: "Done?" })}, ${steered.requestId} ${replied.askId}`;
      },
    };
    const t = await open({ agents: { lead, part, slow } });
    await t.owner.assign({ agent: "lead", task: "go" });
    const question = await t.question();
    await t.crash();
    await t.owner.reply({ askId: question.askId, message: "yes" });
    const { text, error } = await t.result();
    expect(error).toBeUndefined();
    expect(text).toMatch(/^so, yes, \w+ \w+\.0001$/);
    expect((await t.owner.list()).workers).toEqual([]);
  });

  test("give a re-run the questions of a child that waits, one after the other, and the same answers", async () => {
    const lead = {
      description: "leads",
      subagents: ["twice"],
      run: async (_task: string, worker: Worker) => {
        const part = await worker.assign({ agent: "twice", task: "x" });
        for (;;) {
          try {
            return (await part.result()).text;
          } catch (error) {
            const { question } = error as { question: { question: string; reply(answer: string): Promise<unknown> } };
            await question.reply(await worker.askOwner({ question: `What of ${question.question}` }));
          }
        }
      },
    };
    expect(await answeredOverCrashes(await open({ agents: { lead, twice } }), ["one", "two"])).toBe("one two");
  });

  test("give a step's first run what its re-run will get", async () => {
    const seen: unknown[] = [];
    const it = {
      description: "steps",
      run: async (_task: string, worker: Worker) => {
        const value = await worker.step("made", () => ({
          at: new Date(0) as unknown as string,
          gone: undefined as never,
        }));
        seen.push(value);
        return worker.askOwner({ question: "On?" });
      },
    };
    const t = await open({ agents: { it } });
    await t.owner.assign({ agent: "it", task: "go" });
    const question = await t.question();
    await t.crash();
    await t.owner.reply({ askId: question.askId, message: "yes" });
    await t.result();
    for (const value of seen) expect(value).toEqual({ at: "1970-01-01T00:00:00.000Z" });
  });
});
