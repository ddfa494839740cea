import { describe, expect, test } from "vitest";
import type { AgentDefinition } from "./functions/agent.ts";
import { createTestHerd } from "./testing/index.ts";

const does: AgentDefinition = { description: "just does it", run: async (task) => `did ${task}` };

describe("time", () => {
  test("set back delays what is due, set forward lets it happen at once, never twice", async () => {
    const t = await createTestHerd({
      agents: { it: { description: "waits", run: () => new Promise(() => undefined) } },
    });
    await t.owner.assign({ agent: "it", task: "A", deadlineMs: 60_000 });
    await t.clock.advance("-1h");
    expect(t.owner.results).toEqual([]);
    await t.clock.advance("2h");
    await t.clock.advance("1h");
    expect(t.owner.results).toHaveLength(1);
  });

  test("without a sign of life for ten minutes makes a working worker stale, once an episode", async () => {
    const t = await createTestHerd({ agents: { does } });
    const script = t.scripted("does");
    const events: number[] = [];
    t.herd.on("stale", (event) => events.push(event.inactiveMs));
    await t.owner.assign({ agent: "does", task: "A" });
    const run = await script.run();
    await run.turn();
    await t.clock.advance("9m");
    expect((await t.owner.list()).workers[0]).not.toHaveProperty("stale");
    await t.clock.advance("2m");
    expect((await t.owner.list()).workers).toMatchObject([{ state: "working", stale: true, inactiveMs: 660_000 }]);
    await t.clock.advance("1m");
    expect(events).toEqual([660_000]);
    await run.tool("read");
    expect((await t.owner.list()).workers[0]).not.toHaveProperty("stale");
    await t.clock.advance("11m");
    expect(events).toEqual([660_000, 660_000]);
  });
});
