import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type AgentDefinition, HerdError, type Worker } from "pi-herd";
import { createTestHerd } from "pi-herd/testing";
import { asks, does, gate } from "./support.ts";

const reasonOf = (error: unknown) => (error instanceof HerdError ? error.category : String(error));

/** A parent that may start `does` and `asks`, and runs this. */
const parent = (run: AgentDefinition["run"], subagents = ["asks", "does"]): AgentDefinition => ({
  description: "delegates",
  subagents,
  run,
});

async function textOf(agents: Record<string, AgentDefinition>): Promise<{ text: string; data: unknown }> {
  const t = await createTestHerd({ agents });
  await t.owner.assign({ agent: "lead", task: "A" });
  const { text, data } = await t.result();
  return { text, data };
}

describe("a parent", () => {
  test("sees and acts on its direct children alone, with its own agents, in its own folder", async () => {
    const t = await createTestHerd({
      agents: {
        asks,
        does,
        foreign: does,
        lead: parent(async (_task, worker) => {
          await worker.assign({ agent: "asks", task: "part", label: "mine", onQuestion: () => undefined });
          const { workers } = await worker.list();
          const tried = [
            worker.close({ label: "roots" }),
            worker.reply({ label: "roots", message: "x" }),
            worker.close({ label: "lead" }),
            worker.assign({ agent: "foreign", task: "x" }),
            worker.assign({ agent: "does", task: "x", cwd: "/" }),
          ];
          const refusals = await Promise.all(tried.map((call) => call.then(() => "done", reasonOf)));
          await worker.close({ label: "mine" });
          return { seen: workers.map(({ label }) => label), refusals };
        }),
      },
    });
    await t.owner.assign({ agent: "asks", task: "other", label: "roots" });
    await t.owner.assign({ agent: "lead", task: "A" });
    expect((await t.result()).data).toEqual({
      seen: ["mine"],
      refusals: ["target_not_found", "target_not_found", "target_not_found", "invalid_request", "invalid_request"],
    });
    expect((await t.owner.list()).workers).toMatchObject([{ label: "roots", state: "blocked" }]);
  });

  test("of two children of one agent tells them apart, owns both, and neither can delegate", async () => {
    const on = gate();
    const leaf: AgentDefinition = {
      description: "tries to delegate",
      subagents: ["does"],
      run: async (task, worker) => {
        await on.opened;
        return `${task}: ${await worker.assign({ agent: "does", task: "x" }).then(() => "delegated", reasonOf)}`;
      },
    };
    const t = await createTestHerd({
      agents: {
        does,
        leaf,
        lead: parent(
          async (_task, worker) => {
            const parts = [
              await worker.assign({ agent: "leaf", task: "one" }),
              await worker.assign({ agent: "leaf", task: "two" }),
            ];
            const { workers, agentDefinitions } = await worker.list();
            on.open();
            const texts: string[] = [];
            for (const part of parts) texts.push((await part.result()).text);
            return {
              workers: workers.map(({ label, ownerSessionId }) => [label, ownerSessionId]),
              agentDefinitions,
              texts,
            } as never;
          },
          ["leaf"],
        ),
      },
    });
    const run = await t.owner.assign({ agent: "lead", task: "A" });
    expect((await t.result()).data).toEqual({
      workers: [
        ["leaf", run.sessionId],
        ["leaf-2", run.sessionId],
      ],
      // As a leaf: what it could start as a root's worker is not shown.
      agentDefinitions: [{ name: "leaf", description: leaf.description }],
      texts: ["one: invalid_request", "two: invalid_request"],
    });
  });

  test("works on while its child works, and combines both afterwards", async () => {
    const done: string[] = [];
    const t = await createTestHerd({
      agents: {
        does,
        lead: parent(
          async (task, worker) => {
            const part = await worker.assign({ agent: "does", task: "half" });
            const own = await worker.step("other half", () => (done.push("own"), "own half"));
            return `${task}: ${own} and ${(await part.result()).text}`;
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
    expect(done).toEqual(["own"]);
    expect((await t.owner.list()).workers).toMatchObject([{ state: "blocked" }, { state: "working" }]);
    await child.settle("child's half");
    expect((await t.result()).text).toBe("A: own half and child's half");
    await t.idle();
    expect(done).toEqual(["own"]);
    expect(t.owner.results).toHaveLength(1);
  });
});

describe("a leaf", () => {
  const attempts: [string, (worker: Worker) => Promise<unknown>][] = [
    ["its own calls", (worker) => worker.assign({ agent: "does", task: "x" })],
    [
      "the subagent tool",
      async (worker) => {
        const answer = await worker.subagent({ action: "assign", agent: "does", task: "x" });
        if (!answer.ok) throw new HerdError(answer.error);
      },
    ],
  ];

  test.each(attempts)("cannot delegate by %s", async (_what, delegate) => {
    const run: AgentDefinition["run"] = (_task, worker) => delegate(worker).then(() => "delegated", reasonOf);
    expect(await textOf({ does, lead: { description: "has no subagents", run } })).toMatchObject({
      text: "invalid_request",
    });
  });

  test.each(attempts)("that its definition lets delegate cannot as a child, by %s", async (_what, delegate) => {
    const inner = parent((_task, worker) => delegate(worker).then(() => "delegated", reasonOf));
    const lead = parent(
      async (_task, worker) => (await (await worker.assign({ agent: "inner", task: "x" })).result()).text,
      ["inner"],
    );
    expect(await textOf({ asks, does, inner, lead })).toMatchObject({ text: "invalid_request" });
  });
});

test("a parent does not go on with a session of another folder than its own", async () => {
  const folder = await mkdtemp(join(tmpdir(), "herd-delegation-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const lead = parent(async (task, worker) => {
    const answer = (await worker.subagent({ action: "assign", session: task, task: "x" })) as any;
    return answer.ok ? "started" : answer.error.reason;
  });
  const t = await createTestHerd({ agents: { asks, does, lead } });
  for (const [where, heard] of [
    [{ cwd: folder }, "other_cwd"],
    [{}, "started"],
  ] as const) {
    const { sessionId } = await t.owner.assign({ agent: "does", task: "A", ...where });
    await t.result();
    await t.idle();
    await t.owner.assign({ agent: "lead", task: sessionId });
    expect((await t.result()).text).toBe(heard);
  }
});
