import { onTestFinished } from "vitest";
import type { AgentDefinition } from "../../runtime/functions/agent.ts";
import { HerdError, type Worker } from "../../runtime/index.ts";
import { createTestHerd, type TestHerd } from "../../runtime/testing/index.ts";
import { playing } from "./modes.ts";

/** A shop whose doors are tested: its subject, and agents that ask, wait, take and fail. */

export const NOW = "2026-03-01T09:00:00.000Z";
export const subject = { scope: "shop", keys: { order: "7" } };
export const secret = "a secret of the shop";

/** What the agent that waits waits for, and what it says when it does. */
export const gate = { held: Promise.withResolvers<void>(), begun: Promise.withResolvers<void>() };

const agents = {
  clerk: {
    description: "Asks what to do, then says what it did",
    extras: ["locale"],
    run: async (task, worker: Worker) => {
      const answer = await worker.ask({ question: "Refund?", answerFormat: "confirm", groupId: "g" });
      return { task, answer, locale: worker.extras["locale"] ?? null };
    },
  },
  "asks-two": {
    description: "Asks two things at once",
    run: async (_task, worker) => {
      const asks = ["a?", "b?"].map((question) => worker.ask({ question, groupId: "g" }));
      return (await Promise.all(asks)).join("");
    },
  },
  echo: { description: "Gives its input", run: async (task, worker) => ({ task, input: worker.input ?? null }) },
  fails: {
    description: "Fails",
    run: async () => {
      throw new Error("it cannot be done");
    },
  },
  "asks-person": {
    description: "Asks a person",
    run: (_task, worker) => worker.ask({ question: "May I?", to: "user" }),
  },
  waits: {
    description: "Waits",
    run: async () => {
      gate.begun.resolve();
      await gate.held.promise;
      return "waited";
    },
  },
  taker: {
    description: "Takes and resumes what it finds",
    run: async (_task, worker) => {
      for (const { id, status } of await worker.parkedTool("list_parked", {})) {
        const payload = status === "asking" ? { payload: true } : {};
        await worker.parkedTool("resume_parked", { interaction_id: id, ...payload });
      }
      return "done";
    },
  },
} satisfies Record<string, AgentDefinition>;

export async function open(options: object = {}): Promise<TestHerd> {
  gate.held = Promise.withResolvers();
  gate.begun = Promise.withResolvers();
  const t = await createTestHerd({ agents, now: NOW, ...playing(), ...options });
  onTestFinished(() => t.close());
  return t;
}

export const parked = (t: TestHerd) => t.herd.parked(subject);

export const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => "done",
    (error: unknown) =>
      error instanceof HerdError ? [error.reason, error.field, error.rule].filter(Boolean).join(" ") : error,
  );

export const resumeFirst = '[$parked[] | select(.status == "asking") | {id, payload: true}] | .[0]';
