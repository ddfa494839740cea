import { expect, onTestFinished } from "vitest";
import type { AgentDefinition } from "../../runtime/functions/agent.ts";
import { HerdError, type ParkedAskRequest, type VisitRequest, type Worker } from "../../runtime/index.ts";
import { createTestHerd, type TestHerd } from "../../runtime/testing/index.ts";
import { playing } from "./modes.ts";

/** A subject that is visited, and agents that ask, fail, wait, delegate and visit. */
export const subject = { scope: "shop", keys: { order: "7" } };
export const other = { scope: "shop", keys: { order: "8" } };

type Step = ParkedAskRequest | ParkedAskRequest[];

/** Asks what its input lists, one after the other or at once; answers with all the answers. */
async function play(_task: string, worker: Worker): Promise<string> {
  const answers: unknown[] = [];
  for (const step of (worker.input ?? []) as unknown as Step[]) {
    answers.push(
      Array.isArray(step) ? await Promise.all(step.map((each) => worker.ask(each))) : await worker.ask(step),
    );
  }
  return JSON.stringify(answers);
}

/** What the agent that waits waits for, and what it says when it does. */
export const gate = { held: Promise.withResolvers<void>(), begun: Promise.withResolvers<void>() };

const agents = {
  asks: { description: "Asks what its input lists", run: play },
  fails: {
    description: "Asks, then fails",
    run: async (_task, worker) => {
      await worker.ask({ question: "Go on?" });
      throw new Error("it cannot be done");
    },
  },
  parent: {
    description: "Has a child that asks",
    subagents: ["child"],
    run: async (task, worker) => `parent: ${(await (await worker.assign({ agent: "child", task })).result()).text}`,
  },
  child: {
    description: "Asks its caller",
    run: async (task, worker) => `child: ${await worker.ask({ question: `${task}?` })}`,
  },
  owner: { description: "Asks its owner", run: async (_task, worker) => worker.askOwner({ question: "Which?" }) },
  extras: {
    description: "Reads its extras",
    extras: ["locale"],
    input: { type: "object", properties: { sku: { type: "number" } }, required: ["sku"] },
    run: async (task, worker) => JSON.stringify([task, worker.input ?? null, worker.extras]),
  },
  waits: {
    description: "Waits",
    run: async () => {
      gate.begun.resolve();
      await gate.held.promise;
      return "waited";
    },
  },
  "resumes-then-waits": {
    description: "Asks, then waits",
    run: async (_task, worker) => {
      await worker.ask({ question: "Go on?" });
      gate.begun.resolve();
      await gate.held.promise;
      return "waited";
    },
  },
  says: {
    description: "Says something that looks like a failure",
    run: async () => ({ status: "failed", error: "no" }),
  },
  heir: {
    description: "Has a child that reads its extras",
    subagents: ["extras"],
    extras: ["locale"],
    run: async (task, worker) => {
      const child = await worker.assign({ agent: "extras", task });
      return JSON.stringify([worker.extras, JSON.parse((await child.result()).text)]);
    },
  },
  takes: {
    description: "Takes the first outcome that it finds",
    run: async (_task, worker) => {
      const entries = await worker.parkedTool("list_parked", {});
      const ended = entries.find((entry: { status: string }) => /finished|failed/.test(entry.status));
      return JSON.stringify(await worker.parkedTool("resume_parked", { interaction_id: ended.id }));
    },
  },
  resumes: {
    description: "Resumes the first ask that it finds",
    run: async (_task, worker) => {
      const entries = await worker.parkedTool("list_parked", {});
      const asking = entries.find((entry: { status: string }) => entry.status === "asking");
      return JSON.stringify(
        await worker.parkedTool("resume_parked", { interaction_id: asking?.id ?? "nothing", payload: "ok" }),
      );
    },
  },
} satisfies Record<string, AgentDefinition>;

export async function open(options: object = {}): Promise<TestHerd> {
  gate.held = Promise.withResolvers();
  gate.begun = Promise.withResolvers();
  const t = await createTestHerd({ agents, now: "2026-03-01T09:00:00.000Z", ...playing(), ...options });
  onTestFinished(() => t.close());
  return t;
}

export const visit = (t: TestHerd, request: Omit<VisitRequest, "subject">) => t.herd.visit({ subject, ...request });
export const parked = (t: TestHerd) => t.herd.parked(subject);

/** Starts a run and gives the ids that it asks with. */
export async function asking(t: TestHerd, ...steps: Step[]): Promise<string[]> {
  const outcome = await visit(t, { start: { agent: "asks", input: steps as never } });
  expect(outcome.kind).toBe("asks");
  return (outcome.asks ?? []).map(({ id }) => id);
}

export const ruleOf = (call: Promise<unknown>) =>
  call.then(
    (value) => ({ done: value }),
    (error: unknown) => (error instanceof HerdError ? (error.rule ?? error.reason) : error),
  );
