import { describe, expect, test } from "vitest";
import { signDelivery } from "../index.ts";
import type { ScriptedAgent } from "../testing/scripted.ts";
import type { TestHerd } from "../testing/index.ts";
import { open, parked, ruleOf, subject, visit } from "../../test/support/visits.ts";

const start = { agent: "says", task: "A" };
const failure = { stage: "agent_start", message: "no room" } as const;

/** A herd whose agent is a process that accepts when the test says so. */
async function launching(): Promise<{ t: TestHerd; script: ScriptedAgent }> {
  const t = await open();
  t.herd.on("door", () => undefined);
  const script = t.scripted("says");
  script.acceptsAtOnce = false;
  return { t, script };
}

/** Lets the run that was started last be started, and end. */
async function goes(script: ScriptedAgent, count: number, text: string): Promise<void> {
  while (script.runs.length < count) await new Promise((resolve) => setImmediate(resolve));
  const run = script.runs[count - 1];
  await run?.accept();
  await run?.settle(text);
}

describe("a visit whose worker is a process", () => {
  test("made again while that is being started waits for the same run, also after a crash", async () => {
    const { t, script } = await launching();
    void ruleOf(visit(t, { start, id: "v" }));
    await script.run();
    await t.crash();
    const both = [visit(t, { start, id: "v" }), visit(t, { start, id: "v" })];
    // Both have looked, and wait.
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    await goes(script, 1, "done");
    const told = { action: "started", kind: "result", result: "done" };
    expect(await Promise.all(both)).toMatchObject([told, told]);
    expect(script.runs).toHaveLength(1);
  });

  test("is refused when that does not start, and the same visit may be made again", async () => {
    const { t, script } = await launching();
    const first = ruleOf(visit(t, { start, id: "v" }));
    const run = await script.run();
    const second = ruleOf(visit(t, { start, id: "v" }));
    await run.failStart(failure);
    expect([await first, await second]).toEqual(["not_started", "not_started"]);
    const third = visit(t, { start, id: "v" });
    await goes(script, 2, "done");
    expect(await third).toMatchObject({ action: "started", kind: "result", result: "done" });
  });

  test("goes on without whoever stops waiting before that has started", async () => {
    const { t, script } = await launching();
    const stop = new AbortController();
    const visiting = visit(t, { start, signal: stop.signal });
    await script.run();
    stop.abort(new Error("enough"));
    await expect(visiting).rejects.toThrow("enough");
    await goes(script, 1, "done");
    await t.idle();
    expect(await parked(t)).toMatchObject([{ status: "finished", result: "done" }]);
  });
});

describe("a door whose worker is a process that does not start", () => {
  test("takes the same delivery of a webhook again", async () => {
    const { t, script } = await launching();
    const secret = "a secret of the shop";
    const door = await t.herd.door({ name: "w", kind: "webhook", secret, subject, target: start });
    const deliver = () => {
      const headers = signDelivery({ secret, id: "d-1", timestamp: t.clock.now().getTime(), body: "" });
      return door.fetch(new Request("https://shop.example/", { method: "POST", headers }));
    };
    const first = deliver();
    await (await script.run()).failStart(failure);
    expect((await first).ok).toBe(false);
    const again = deliver();
    await goes(script, 2, "done");
    expect((await again).status).toBe(202);
    expect((await deliver()).status).toBe(200);
  });

  test("ends the record of what was submitted, also after a crash", async () => {
    const { t, script } = await launching();
    const door = await t.herd.door({ name: "s", kind: "submit", subject, target: start });
    const first = ruleOf(door.visit());
    await (await script.run()).failStart(failure);
    expect(await first).toBe("not_started");
    void ruleOf(door.visit());
    while (script.runs.length < 2) await new Promise((resolve) => setImmediate(resolve));
    await t.crash();
    await script.runs[1]?.failStart(failure);
    await t.idle();
    const error = { code: "not_started", message: expect.stringContaining("no room") };
    for (const { run_id } of await t.herd.runs()) {
      expect(await t.herd.run(run_id)).toMatchObject({ status: "failed", error });
    }
    expect(await t.herd.runs()).toHaveLength(2);
  });
});
