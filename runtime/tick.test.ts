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

  test("looks for silent workers at its first tick and every thirty seconds, and no more once the herd is closed", async () => {
    const t = await createTestHerd({ agents: { does } });
    const script = t.scripted("does");
    const events: string[] = [];
    t.herd.on("stale", ({ label, inactiveMs }) => events.push(`${label} ${inactiveMs}`));
    await t.owner.assign({ agent: "does", task: "A", label: "one" });
    await (await script.run("one")).turn();
    await t.clock.advance("1s");
    await t.owner.assign({ agent: "does", task: "B", label: "two" });
    await (await script.run("two")).turn();
    // The first look was a second after the start of the first.
    for (let seconds = 1; seconds < 600; seconds++) await t.clock.advance("1s");
    expect(events).toEqual([]);
    for (let seconds = 0; seconds < 60; seconds++) await t.clock.advance("1s");
    expect(events).toEqual(["one 601000", "two 600000"]);
    t.herd.on("stale", () => events.push("after the restart"));
    await t.close();
    expect(events).toHaveLength(2);
    // Another process looks at once, and tells of the same silence in its turn.
    await t.crash();
    t.herd.on("stale", ({ label }) => events.push(`again ${label}`));
    await t.clock.advance("1s");
    expect(events.slice(2).toSorted()).toEqual(["again one", "again two"]);
  });

  test("finds nobody silent whose work has ended, or is not proved to be its own any more, before it looks", async () => {
    const t = await createTestHerd({ agents: { does } });
    const script = t.scripted("does");
    const events: string[] = [];
    for (const label of ["ends", "doubtful", "silent"]) {
      await t.owner.assign({ agent: "does", task: "A", label });
      await (await script.run(label)).turn();
    }
    await t.clock.advance("9m");
    t.herd.on("stale", () => {
      throw new Error("not now");
    });
    t.herd.on("stale", ({ label }) => events.push(label));
    await (await script.run("ends")).settle("done");
    await (await script.run("doubtful")).identify("00000000-0000-4000-8000-000000000000");
    await t.clock.advance("2m");
    await t.clock.advance("1h");
    expect(events).toEqual(["silent"]);
  });
});
