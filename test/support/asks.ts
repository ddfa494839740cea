import { onTestFinished } from "vitest";
import type { AgentDefinition } from "../../runtime/functions/agent.ts";
import { EXPIRED, HerdError, type ParkedAskRequest, type Worker } from "../../runtime/index.ts";
import { createTestHerd, type TestHerd } from "../../runtime/testing/index.ts";
import { playing } from "./modes.ts";

/** A subject, and agents that park what a script says they ask. */
export const NOW = "2026-03-01T09:00:00.000Z";
export const subject = { scope: "shop", keys: { order: "7" } };

/** What the next run asks, one after the other or, as a list, at once. */
export type Script = (ParkedAskRequest | ParkedAskRequest[])[];
export const scripts = new Map<string, Script>();

export const hurry = Promise.withResolvers<void>();
export const refusals: unknown[] = [];

async function play(task: string, worker: Worker): Promise<string> {
  const answers: unknown[] = [];
  for (const step of scripts.get(task) ?? []) {
    answers.push(
      Array.isArray(step) ? await Promise.all(step.map((each) => worker.ask(each))) : await worker.ask(step),
    );
  }
  return JSON.stringify(answers, (_key, answer: unknown) => (answer === EXPIRED ? "expired" : answer));
}

const agents = {
  asks: { description: "Asks what its script says", run: play },
  parent: {
    description: "Has a child that asks",
    subagents: ["asks"],
    run: async (task, worker) => (await (await worker.assign({ agent: "asks", task })).result()).text,
  },
  both: {
    description: "Asks its owner and its caller",
    run: async (_task, worker) =>
      JSON.stringify(await Promise.all([worker.askOwner({ question: "owner?" }), worker.ask({ question: "caller?" })])),
  },
  hasty: {
    description: "Asks again while it asks",
    run: async (_task, worker) => {
      const first = worker.ask({ question: "first?" });
      await hurry.promise;
      refusals.push(await failureOf(worker.ask({ question: "second?", wait: false })));
      return String(await first);
    },
  },
} satisfies Record<string, AgentDefinition>;

export async function open(options: object = {}): Promise<TestHerd> {
  const t = await createTestHerd({ agents, now: NOW, ...playing(), ...options });
  onTestFinished(() => t.close());
  return t;
}

export const owner = (t: TestHerd) => t.herd.owner(subject);

export async function start(t: TestHerd, script: Script, agent: "asks" | "parent" = "asks") {
  const task = `task ${scripts.size}`;
  scripts.set(task, script);
  const run = await owner(t).assign({ agent, task });
  await t.idle();
  return run;
}

export const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => "done",
    (error: unknown) => (error instanceof HerdError ? [error.reason, error.field].filter(Boolean).join(" ") : error),
  );

export const parked = (t: TestHerd) => t.herd.parked(subject);
