import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { AgentDefinition } from "../../runtime/index.ts";
import { createTestHerd, type TestHerd } from "../../runtime/testing/index.ts";
import { open, parked, visit } from "../support/visits.ts";

const agents: Record<string, AgentDefinition> = {
  plain: { description: "Does it at once", run: async (task) => `did ${task}` },
  twice: {
    description: "Asks twice",
    run: async (_, worker) => {
      const first = await worker.askOwner({ question: "first?" });
      return `${first}, ${await worker.askOwner({ question: "second?" })}`;
    },
  },
  person: {
    description: "Asks a person",
    run: async (_, worker) => `${await worker.ask({ question: "?", to: "user" })}`,
  },
};

/**
 * Makes the same call over and over, while the first one goes on and after it.
 * @returns what they came to, without repetitions: one thing, if they are one call.
 */
async function outcomesOf(call: () => Promise<unknown>): Promise<string[]> {
  const calls: Promise<string>[] = [];
  for (let moment = 0; moment < 80; moment++) {
    calls.push(call().then(JSON.stringify, (error: unknown) => `refused: ${String(error)}`));
    // What the first one waits for comes in steps of either kind.
    await (moment % 3 === 0 ? new Promise((resolve) => setImmediate(resolve)) : Promise.resolve());
  }
  return [...new Set(await Promise.all(calls))];
}

const ONE = [expect.stringMatching(/^["{]/)];

describe("the same id again, at whatever moment of the first call, is the same call:", () => {
  test.each<[string, (t: TestHerd) => Promise<() => Promise<unknown>>]>([
    [
      "an assign with a file",
      async (t) => {
        const folder = await mkdtemp(join(tmpdir(), "herd-repeat-"));
        onTestFinished(() => rm(folder, { recursive: true, force: true }));
        const file = join(folder, "a.txt");
        await writeFile(file, "a");
        return async () => (await t.owner.assign({ agent: "plain", task: "A", files: [file], id: "x" })).requestId;
      },
    ],
    [
      "an assign to a saved session",
      async (t) => {
        const { sessionId } = await t.owner.assign({ agent: "plain", task: "A" });
        await t.result();
        await t.idle();
        return async () => (await t.owner.assign({ session: sessionId, task: "B", id: "x" })).requestId;
      },
    ],
    [
      "an assign to a live worker",
      async (t) => {
        await t.owner.assign({ agent: "plain", task: "A", label: "one", reusable: true });
        await t.result();
        await t.idle();
        return async () => (await t.owner.assign({ label: "one", task: "B", id: "x" })).requestId;
      },
    ],
    [
      "a reply to a question",
      async (t) => {
        await t.owner.assign({ agent: "twice", task: "A" });
        const { askId } = await t.question();
        return () => t.owner.reply({ askId, message: "yes", id: "x" });
      },
    ],
    [
      "a reply to whatever a worker asks",
      async (t) => {
        await t.owner.assign({ agent: "twice", task: "A", label: "one" });
        await t.question();
        return () => t.owner.reply({ label: "one", message: "yes", id: "x" });
      },
    ],
    [
      "a person's answer",
      async (t) => {
        await t.owner.assign({ agent: "person", task: "A" });
        await t.idle();
        const [ask] = await t.herd.inbox.list();
        return () => t.herd.inbox.answer({ askId: ask?.askId ?? "", answer: "yes", id: "x" });
      },
    ],
  ])("%s", async (_, prepare) => {
    const t = await createTestHerd({ agents });
    expect(await outcomesOf(await prepare(t))).toEqual(ONE);
  });

  test.each(["resume", "take", "cancel"] as const)("a visit that does %s", async (what) => {
    const t = await open();
    const input = what === "resume" ? [{ question: "1?" }] : [];
    await visit(t, { start: { agent: "asks", input }, receivesOutcome: false });
    const [entry] = await parked(t);
    const id = entry?.id ?? "";
    const parts = { resume: { resume: [{ id, payload: "x" }] }, take: { take: id }, cancel: { cancel: [id] } };
    expect(await outcomesOf(() => visit(t, { ...parts[what], id: "x" }))).toEqual(ONE);
  });
});
