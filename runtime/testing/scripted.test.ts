import { describe, expect, test } from "vitest";
import { backendContract } from "../backend.contract.ts";
import type { BackendHost } from "../backend.ts";
import { createTestHerd } from "./index.ts";
import { ScriptedAgent, ScriptedBackend } from "./scripted.ts";

backendContract("scripted", () => {
  const script = new ScriptedAgent("agent");
  const runs = new Map<string, string>();
  return {
    factory: (host: BackendHost) => new ScriptedBackend(new Map([["agent", script]]), runs, () => host),
    async finish(runId) {
      const run = script.runs.find((candidate) => candidate.runId === runId);
      await run?.turn();
      await run?.settle("done");
    },
  };
});

describe("a test herd", () => {
  const agents = { does: { description: "does", run: async (task: string) => `did ${task}` } };

  test("fails at once with what the herd is doing when no question can come", async () => {
    const t = await createTestHerd({
      agents: { it: { description: "x", run: (_task, worker) => worker.askOwner({ question: "Why?" }) } },
    });
    await t.owner.assign({ agent: "it", task: "go" });
    await t.question();
    await expect(t.question()).rejects.toThrow(
      /no question can come: nothing happens any more[\s\S]*it is blocked: asks "Why\?"/,
    );
    await expect(t.result()).rejects.toThrow(/no result can come/);
  });

  test("starts its clock where it is told and moves it by durations", async () => {
    const t = await createTestHerd({ agents, now: "2026-11-30T08:00:00Z" });
    await t.clock.advance("24h");
    expect(t.clock.now().toISOString()).toBe("2026-12-01T08:00:00.000Z");
    await t.clock.advance(500);
    expect(t.clock.now().toISOString()).toBe("2026-12-01T08:00:00.500Z");
    await expect(t.clock.advance("soon")).rejects.toThrow(/not a duration/);
    await expect(createTestHerd({ agents, now: "today" })).rejects.toThrow(/not an ISO 8601 time/);
  });

  test("keeps its store over a crash and forgets what was not on it", async () => {
    const t = await createTestHerd({ agents });
    const accepted = await t.owner.assign({ agent: "does", task: "A" });
    void t.owner.assign({ agent: "does", task: "B" }).catch(() => undefined);
    await t.crash();
    expect((await (await t.herd.assignment(accepted.requestId)).result()).text).toBe("did A");
    await t.idle();
    expect(t.owner.results.map(({ text }) => text)).toContain("did A");
  });
});
