import { describe, expect, test } from "vitest";
import type { ScriptedRun } from "pi-herd/testing";
import { does, expectNothingLeft, herdOnDisk, keysOf, refusalOf, statesOf } from "./support.ts";

const agents = { does, lead: { ...does, subagents: ["does"] } };

/** A parent in a process with children in processes, all at work. */
async function family(labels: readonly string[] = ["one", "two"], request: object = {}) {
  const t = await herdOnDisk({ agents });
  const leads = t.scripted("lead");
  const script = t.scripted("does");
  const handle = await t.owner.assign({ agent: "lead", task: "A", ...request });
  const lead = await leads.run();
  await lead.turn();
  const parts: ScriptedRun[] = [];
  for (const label of labels) {
    await lead.subagent({ action: "assign", agent: "does", task: label, label });
    const part = await script.run(label);
    await part.turn();
    parts.push(part);
  }
  return { t, leads, script, handle, lead, parts: parts as [ScriptedRun, ScriptedRun] };
}

/** The parent's process ends twice in a row: it is given up. */
async function lose(lead: ScriptedRun): Promise<void> {
  await lead.die();
  await lead.die();
}

const orphansOf = async ({ t }: Pick<Awaited<ReturnType<typeof family>>, "t">) =>
  (await t.owner.list()).workers
    .filter(({ orphan }) => orphan === true)
    .map(({ label, state }) => `${label} ${state}`)
    .toSorted();

describe("the workers of a parent whose process is lost", () => {
  test("are orphans that go on, the root alone may close them, and the parent's row goes with the last", async () => {
    const it = await family();
    const { t, lead, parts, handle } = it;
    expect(await orphansOf(it)).toEqual([]);
    await lose(lead);
    expect(await t.result()).toMatchObject({ requestId: handle.requestId, error: { code: "worker_lost" } });
    await t.idle();
    for (const again of ["now", "after a restart"]) {
      expect(await orphansOf(it), `${again}`).toEqual(["one working", "two working"]);
      const rows = (await t.owner.list()).workers.toSorted((a, b) => a.label.localeCompare(b.label));
      expect(rows, `${again}`).toMatchObject([
        { label: "lead" },
        { label: "one", parentLabel: "lead" },
        { label: "two", parentLabel: "lead" },
      ]);
      await t.crash();
      await t.idle();
    }
    // Neither another owner nor a parent of its own may.
    const stranger = t.herd.owner("stranger", { workspace: "tester" });
    expect(await refusalOf(stranger.close({ label: "one" }))).toMatchObject({ category: "target_not_found" });
    await t.owner.assign({ agent: "lead", task: "B", label: "other" });
    const other = (await t.scripted("lead").run("other")) as ScriptedRun;
    await other.turn();
    expect(await other.subagent({ action: "close", label: "one" })).toMatchObject({
      ok: false,
      error: { category: "target_not_found" },
    });
    expect((await other.subagent({ action: "list" })).workers).toEqual([]);
    await t.owner.close({ label: "other" });
    expect(await t.owner.close({ label: "one" })).toEqual({ label: "one" });
    expect(parts[0].orders.at(-1)?.kind).toBe("stop");
    expect((await statesOf(t)).map((row) => row.split(" ")[0])).toEqual(["lead", "two"]);
    await t.owner.close({ label: "two" });
    await t.idle();
    expect(t.owner.results).toHaveLength(1);
    await expectNothingLeft(t);
    // The label of the parent is free again.
    await t.owner.assign({ agent: "lead", task: "C", label: "lead" });
  });

  test("keep what they ask and what they end with: nobody is told, and the root cannot answer", async () => {
    const it = await family();
    const { t, lead, parts } = it;
    await lose(lead);
    await t.result();
    await parts[0].ask("Which?");
    await parts[0].endTurn();
    await parts[1].settle("done alone");
    await t.idle();
    expect(lead.orders.map(({ kind }) => kind)).not.toContain("deliver");
    expect(await keysOf(t, "d")).toHaveLength(2);
    expect(await orphansOf(it)).toEqual(["one blocked", "two settling"]);
    const refused = await refusalOf(t.owner.reply({ label: "one", message: "this" }));
    expect(refused).toMatchObject({ category: "target_not_found" });
    expect(refused.message).not.toContain("still lives");
    await t.crash();
    await t.idle();
    expect(await orphansOf(it)).toEqual(["one blocked", "two settling"]);
    expect(await keysOf(t, "d")).toHaveLength(2);
    await t.owner.close({ label: "one" });
    await t.owner.close({ label: "two" });
    expect(t.owner.questions).toEqual([]);
    expect(t.owner.results).toHaveLength(1);
    await expectNothingLeft(t);
    // What it ended with can still be asked for.
    const { requestId } = parts[1];
    expect((await (await t.herd.assignment(requestId as string)).result()).text).toBe("done alone");
  });

  test("that it had closed with a result on its way leave nothing when it is gone", async () => {
    const it = await family();
    const { t, lead, parts } = it;
    await parts[1].settle("unread");
    await lead.subagent({ action: "close", label: "two" });
    await lose(lead);
    await t.result();
    await t.idle();
    expect(await orphansOf(it)).toEqual(["one working"]);
    await t.owner.close({ label: "one" });
    await expectNothingLeft(t);
  });

  test("that it had closed unread leave nothing either when it is lost over a restart, without any orphan", async () => {
    const it = await family(["one"]);
    const { t, leads, lead, parts } = it;
    await parts[0].settle("unread");
    await lead.subagent({ action: "close", label: "one" });
    leads.identities.set(lead.runId, "absent");
    await t.crash();
    await t.idle();
    await lead.die();
    expect(await t.result()).toMatchObject({ error: { code: "worker_lost" } });
    await expectNothingLeft(t);
  });

  test("that end one by one wait for the root, one that is lost itself too", async () => {
    const it = await family();
    const { t, lead, parts } = it;
    await lose(lead);
    await t.result();
    await parts[0].settle("first");
    await lose(parts[1]);
    await t.idle();
    expect(await orphansOf(it)).toEqual(["one settling", "two settling"]);
    expect(t.owner.results).toHaveLength(1);
    await t.owner.close({ label: "two" });
    await t.owner.close({ label: "one" });
    await expectNothingLeft(t);
  });

  test("that are reusable are orphans as well, with a result and without", async () => {
    const it = await family([]);
    const { t, lead, script } = it;
    for (const label of ["one", "two"]) {
      await lead.subagent({ action: "assign", agent: "does", task: label, label, reusable: true });
      const part = await script.run(label);
      await part.turn();
      await part.settle(label);
      if (label === "one") await lead.take();
    }
    await lose(lead);
    await t.result();
    await t.idle();
    expect(await orphansOf(it)).toEqual(["one ready", "two settling"]);
    await t.owner.close({ label: "one" });
    await t.owner.close({ label: "two" });
    await expectNothingLeft(t);
  });

  test("of a reusable parent are orphans until they are closed, or the parent is with them", async () => {
    const it = await family(["one"], { reusable: true });
    const { t, lead, parts } = it;
    await lose(lead);
    await t.result();
    await t.idle();
    expect(await statesOf(t)).toEqual(["lead unknown", "one working"]);
    expect(await orphansOf(it)).toEqual(["one working"]);
    await t.owner.close({ label: "lead" });
    expect(parts[0].orders.at(-1)?.kind).toBe("stop");
    await expectNothingLeft(t);
  });

  test("go with the parent when it is closed before its end was told", async () => {
    const it = await family();
    const { t, lead, leads, parts } = it;
    await t.owner.close({ label: "lead" });
    const owner = t.herd.owner("parks");
    const handle = await owner.assign({ agent: "lead", task: "A" });
    const second = leads.runs.at(-1) as ScriptedRun;
    await second.turn();
    await second.subagent({ action: "assign", agent: "does", task: "x", label: "three" });
    await lose(second);
    await t.idle();
    expect((await owner.list()).workers).toMatchObject([
      { label: "lead", state: "settling" },
      { label: "three", state: "working", orphan: true },
    ]);
    await owner.close({ label: "lead" });
    expect((await owner.list()).workers).toEqual([]);
    expect((await (await t.herd.assignment(handle.requestId)).result()).error?.code).toBe("worker_lost");
    expect(parts[0].runId).not.toBe(lead.runId);
    await expectNothingLeft(t);
  });
});

describe("a child", () => {
  test("is no orphan while its parent lives, is started again, or cannot be proved either way", async () => {
    const it = await family(["one"]);
    const { t, lead, leads } = it;
    const refuses = async (when: string) => {
      expect(await orphansOf(it), `${when}`).toEqual([]);
      expect(await refusalOf(t.owner.close({ label: "one" })), `${when}`).toMatchObject({
        category: "target_not_found",
        reason: "not_yours",
        ids: { label: "one", parentLabel: "lead" },
      });
    };
    await refuses("while it lives");
    await lead.die();
    await refuses("while it is started again");
    await lead.turn();
    await lead.endTurn();
    leads.identities.set(lead.runId, "unprovable");
    await t.crash();
    await t.idle();
    expect((await statesOf(t))[0]).toBe("lead unknown");
    await refuses("while nothing is proved");
    leads.identities.set(lead.runId, "absent");
    await t.clock.advance("30s");
    await refuses("when it is started again once more");
    await lead.die();
    await t.result();
    expect(await orphansOf(it)).toEqual(["one working"]);
    await t.owner.close({ label: "one" });
    await expectNothingLeft(t);
  });

  test("that cannot be proved itself is not closed as an orphan", async () => {
    const it = await family(["one"]);
    const { t, lead, script, parts } = it;
    await lose(lead);
    await t.result();
    script.identities.set(parts[0].runId, "unprovable");
    expect(await refusalOf(t.owner.close({ label: "one" }))).toMatchObject({
      category: "target_not_found",
      reason: "identity_unproven",
    });
    expect(parts[0].orders.map(({ kind }) => kind)).toEqual(["start"]);
    script.identities.set(parts[0].runId, "absent");
    await t.owner.close({ label: "one" });
    await expectNothingLeft(t);
  });
});
