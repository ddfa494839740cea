import { describe, expect, test } from "vitest";
import { toolText, type AgentDefinition } from "pi-herd";
import { createTestHerd, type TestHerd } from "pi-herd/testing";
import { asks, does, statesOf } from "./support.ts";

const lead: AgentDefinition = {
  description: "starts one that asks and one that works",
  subagents: ["asks", "does"],
  run: async (_task, worker) => {
    const one = await worker.assign({ agent: "asks", task: "one", label: "one", onQuestion: () => undefined });
    const two = await worker.assign({ agent: "does", task: "two", label: "two" });
    return `${(await two.result()).text} ${(await one.result()).text}`;
  },
};
const agents = { asks, does, lead };

/** The key and the text of the row of the worker with this label. */
async function actorRow(t: TestHerd, label: string): Promise<readonly [key: string, text: string]> {
  await t.idle();
  const rows = await t.store.range({ gte: "a!", lt: "a~" });
  const found = rows.find(([, text]) => text.includes(`"label":"${label}"`));
  if (!found) throw new Error(`${label} has no row`);
  return found;
}

async function spoil(t: TestHerd, label: string): Promise<void> {
  const [key, text] = await actorRow(t, label);
  const value = text.replace(/"asks":\d+/, '"asks":"many"');
  await t.store.batch([{ type: "put", key, value }], { sync: true });
}

describe("a record that cannot be read", () => {
  test("shows to the root as a bare unknown row with a short diagnostic, and to a parent not at all", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "lead", task: "A" });
    const child = await script.run();
    await child.turn();
    await spoil(t, "one");
    await t.crash();
    const listed = await t.owner.subagent({ action: "list" });
    const row = listed.workers.find(({ state }: { state: string }) => state === "unknown");
    expect(row).toEqual({ state: "unknown", managed: true, diagnostic: expect.stringMatching(/./) });
    expect(toolText(listed)).toContain(row.diagnostic);
    expect(row.diagnostic.length).toBeLessThanOrEqual(256);
    const seen: string[] = [];
    const looks: AgentDefinition = {
      ...lead,
      run: async (_task, worker) => {
        for (const { label, state } of (await worker.list()).workers) seen.push(`${label} ${state}`);
        return "looked";
      },
    };
    await t.crash({ agents: { ...agents, lead: looks } });
    // Its result starts the parent again, from the top.
    await child.settle("two");
    await t.idle();
    expect(seen).toEqual(["two settling"]);
  });

  test("of one child does not hide its healthy sibling, and stands in the list as such", async () => {
    const reads: AgentDefinition = {
      ...lead,
      run: async (_task, worker) => {
        await worker.assign({ agent: "asks", task: "one", label: "one", onQuestion: () => undefined });
        const two = await worker.assign({ agent: "does", task: "two", label: "two" });
        return `heard: ${(await two.result()).text}`;
      },
    };
    const t = await createTestHerd({ agents: { asks, does, reads } });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "reads", task: "A" });
    const child = await script.run();
    await child.turn();
    await spoil(t, "one");
    await t.crash();
    expect((await statesOf(t)).toSorted()).toEqual(["one unknown", "reads blocked", "two working"]);
    expect(await child.settle("two is done")).toBe(true);
    expect((await t.result()).text).toBe("heard: two is done");
    const { workers } = await t.owner.list();
    expect(workers.find(({ label }) => label === "one")).toMatchObject({
      unreadable: true,
      diagnostic: expect.any(String),
    });
  });
});

describe("a list", () => {
  test("holds no worker of another workspace, although it has the same owner and label, also after a restart", async () => {
    const t = await createTestHerd({ agents });
    const owners = ["here", "there"].map((workspace) => () => t.herd.owner("both", { workspace }));
    for (const owner of owners) await owner().assign({ agent: "asks", task: "A", label: "one" });
    await t.crash();
    for (const [index, owner] of owners.entries()) {
      const { workers } = await owner().list();
      expect(workers).toMatchObject([{ label: "one", workspaceId: ["here", "there"][index] }]);
    }
    await t.idle();
    await owners[0]?.().close({ label: "one" });
    expect((await owners[1]?.().list())?.workers).toMatchObject([{ label: "one", state: "blocked" }]);
  });

  test("takes a worker's definition from its launch, and shows nothing of runs that only a backend knows", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "does", task: "A", label: "one" });
    const run = await script.run("one");
    await run.turn();
    for (const event of [{ type: "turn.started" }, { type: "activity" }, { type: "accepted" }] as const) {
      expect(await run.wrongIdentity(event)).toBe(false);
    }
    await run.identify(run.order("start").sessionId, { tabLabel: "asks", model: "some/model" });
    expect((await t.owner.list()).workers).toMatchObject([
      { label: "one", agentDefinition: "does", tabLabel: "asks", model: "some/model" },
    ]);
  });
});

describe("ancestry", () => {
  test("that is missing ends in recovery rows with a diagnostic, and the list returns", async () => {
    const t = await createTestHerd({ agents });
    t.scripted("does");
    await t.owner.assign({ agent: "lead", task: "A" });
    await t.owner.assign({ agent: "asks", task: "B", label: "healthy" });
    await t.idle();
    const [key] = await actorRow(t, "lead");
    await t.store.batch([{ type: "del", key }], { sync: true });
    await t.crash();
    const { workers } = await t.owner.list();
    expect(workers.map(({ label, state }) => `${label} ${state}`).toSorted()).toEqual([
      "healthy blocked",
      "one unknown",
      "two unknown",
    ]);
    for (const row of workers.filter(({ state }) => state === "unknown")) {
      expect(row).toMatchObject({
        recoveryOnly: true,
        steerable: false,
        diagnostic: "its parent's record is missing or unreadable",
      });
    }
    await t.owner.reply({ label: "healthy", message: "yes" });
    expect((await t.result()).text).toBe("B: yes");
  });

  test("that goes in a circle ends in recovery rows with a diagnostic, and the list returns", async () => {
    const t = await createTestHerd({ agents });
    await t.owner.assign({ agent: "asks", task: "A", label: "one" });
    await t.owner.assign({ agent: "asks", task: "B", label: "two" });
    await t.idle();
    const [[one, rowOfOne], [two, rowOfTwo]] = [await actorRow(t, "one"), await actorRow(t, "two")];
    const runIdOf = (key: string) => key.slice(key.lastIndexOf("!") + 1);
    // Each stands below the other now.
    await t.store.batch(
      [
        { type: "del", key: one },
        { type: "del", key: two },
        { type: "put", key: `${one}/${runIdOf(two)}`, value: rowOfTwo },
        { type: "put", key: `${two}/${runIdOf(one)}`, value: rowOfOne },
      ],
      { sync: true },
    );
    await t.crash();
    const { workers } = await t.owner.list();
    expect(workers.map(({ label }) => label).toSorted()).toEqual(["one", "two"]);
    for (const row of workers)
      expect(row).toMatchObject({
        state: "unknown",
        recoveryOnly: true,
        agentDefinition: "asks",
        diagnostic: expect.stringMatching(
          /^its ancestry is a circle: (one below two below one|two below one below two)$/,
        ),
      });
    expect(toolText(await t.owner.subagent({ action: "list" }))).toContain("Unmatched ancestry (recovery only) (2)");
  });
});

describe("stale", () => {
  test("is said of a worker after ten minutes, never of a fresh time, one that is missing or one ahead", async () => {
    const t = await createTestHerd({ agents });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "does", task: "A", label: "one" });
    await (await script.run("one")).turn();
    await t.clock.advance("11m");
    await t.owner.assign({ agent: "does", task: "B", label: "fresh" });
    await (await script.run("fresh")).turn();
    await t.owner.assign({ agent: "does", task: "C", label: "broken" });
    await spoil(t, "broken");
    await t.crash();
    const staleOf = async () =>
      Object.fromEntries(
        (await t.owner.subagent({ action: "list" })).workers.map((row: Record<string, unknown>) => [
          row["label"],
          [row["stale"], row["inactive_ms"]],
        ]),
      );
    expect(await staleOf()).toEqual({
      one: [true, 660_000],
      fresh: [undefined, undefined],
      // One that cannot be read has no label.
      undefined: [undefined, undefined],
    });
    // The clock is set back: both times lie ahead now.
    await t.clock.advance("-2h");
    expect(await staleOf()).toMatchObject({ one: [undefined, undefined], fresh: [undefined, undefined] });
  });

  test("is never said of workers that are blocked, settling or unknown", async () => {
    const place: AgentDefinition = { ...does, concurrency: 1, run: () => new Promise<string>(() => undefined) };
    const waits: AgentDefinition = {
      ...lead,
      run: async (_task, worker) => (await (await worker.assign({ agent: "does", task: "x" })).result()).text,
    };
    const t = await createTestHerd({ agents: { asks, does, place, waits, quick: does } });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "asks", task: "A", label: "on-owner" });
    await t.owner.assign({ agent: "waits", task: "A", label: "on-children" });
    await (await script.run()).turn();
    await t.owner.assign({ agent: "asks", task: "A", label: "unreadable" });
    await t.herd.owner("nobody there").assign({ agent: "quick", task: "A", label: "undelivered" });
    await spoil(t, "unreadable");
    await t.crash();
    const stale: string[] = [];
    t.herd.on("stale", (event) => stale.push(event.label));
    await t.owner.assign({ agent: "place", task: "A", label: "executing" });
    await t.owner.assign({ agent: "place", task: "A", label: "queued" });
    await t.clock.advance("11m");
    await t.clock.advance("1m");
    // Those that work are the ones that it is said of.
    expect(stale.toSorted()).toEqual(["does", "executing"]);
    const rows = [...(await t.owner.list()).workers, ...(await t.herd.owner("nobody there").list()).workers];
    expect(Object.fromEntries(rows.map((row) => [row.label, `${row.state}${row.stale ? ", stale" : ""}`]))).toEqual({
      "on-owner": "blocked",
      "on-children": "blocked",
      does: "working, stale",
      executing: "working, stale",
      queued: "settling",
      unreadable: "unknown",
      undelivered: "settling",
    });
  });
});
