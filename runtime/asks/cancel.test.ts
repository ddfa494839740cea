import { beforeAll, describe, expect, test } from "vitest";
import { keys } from "../store/keys.ts";
import { memoryStore } from "../store/memory.ts";
import { modes, playIn } from "../../test/support/modes.ts";
import { asking, gate, open, parked, ruleOf, subject, visit } from "../../test/support/visits.ts";

describe.each(modes)("$name", ({ options: mode }) => {
  beforeAll(() => playIn(mode));

  describe("cancelling", () => {
    test("an ask takes its run, everything above it and below it, and leaves nothing on the subject", async () => {
      const t = await open();
      const { asks } = await visit(t, { start: { agent: "parent", task: "A" } });
      const [id = ""] = asks?.map((entry) => entry.id) ?? [];
      expect(await visit(t, { cancel: [id] })).toEqual({ action: "none", kind: "none", cancelled: [id] });
      await t.idle();
      expect(await parked(t)).toEqual([]);
      expect(await t.herd.owners()).toEqual([]);
      await t.crash();
      expect(await parked(t)).toEqual([]);
    });

    test("a chain, or letting it expire, leaves no row of its tree", async () => {
      const t = await open();
      const { asks } = await visit(t, { start: { agent: "parent", task: "A" } });
      await visit(t, { start: { agent: "parent", task: "B" } });
      await visit(t, { cancel: [asks?.[0]?.id ?? ""] });
      await t.clock.advance("31d");
      await t.idle();
      expect(await parked(t)).toMatchObject([{ label: "parent", status: "failed" }]);
      expect(await t.store.range({ gte: "r!", lt: "r~" })).toEqual([]);
      expect(await t.store.range({ gte: "a!", lt: "a~" })).toEqual([]);
    });

    test.each(["asks", "parent"])("leaves an owner that is listed while the failure of %s waits", async (agent) => {
      const t = await open({ retention: { outcomesMs: 60_000 } });
      const dropped: unknown[] = [];
      const start = agent === "asks" ? { agent, input: [{ question: "1?" }] } : { agent, task: "A" };
      await visit(t, { start });
      await t.clock.advance("30d");
      await t.crash();
      const owner = { id: "shop?order=7", ...subject };
      expect(await t.herd.owners()).toMatchObject([{ ...owner, workers: 0, results: 1 }]);
      t.herd.on("dropped", (event) => dropped.push(event.owner));
      await t.clock.advance("2m");
      expect(dropped).toEqual([owner]);
      expect(await t.herd.owners()).toEqual([]);
      expect(await t.store.range({ gte: "a!", lt: "a~" })).toEqual([]);
    });

    test("tells a receiver one failure, that of the outermost run", async () => {
      const t = await open();
      const told: unknown[] = [];
      t.herd.receive({ scope: "shop" }, { onResult: (result) => told.push([result.label, result.error?.code]) });
      const { asks } = await visit(t, { start: { agent: "parent", task: "A" } });
      await visit(t, { cancel: [asks?.[0]?.id ?? ""] });
      await t.idle();
      expect(told).toEqual([["parent", "cancelled"]]);
      expect(await parked(t)).toEqual([]);
    });

    test("tells a visit that waits for the run", async () => {
      const t = await open();
      const [a = "", b = ""] = await asking(t, [
        { question: "a?", groupId: "g" },
        { question: "b?", groupId: "g" },
      ]);
      await visit(t, { resume: [{ id: a, payload: "A" }] });
      const waiting = ruleOf(visit(t, { resume: [{ id: b, payload: "B" }] }));
      expect(await waiting).toMatchObject({ done: { kind: "result" } });
      const visiting = ruleOf(visit(t, { start: { agent: "waits", task: "A" } }));
      await gate.begun.promise;
      const { workers } = await t.herd.owner(subject).list();
      expect(workers).toMatchObject([{ label: "waits", state: "working" }]);
      await t.herd.owner(subject).close({ label: "waits" });
      expect(await visiting).toBe("run_failed");
    });

    test("an outcome drops it silently", async () => {
      const t = await open();
      const done = await visit(t, { start: { agent: "asks", input: [] }, receivesOutcome: false });
      expect(await visit(t, { cancel: [done.requestId ?? ""] })).toMatchObject({ cancelled: [done.requestId] });
      expect(await parked(t)).toEqual([]);
    });

    test("one ask of a group cancels its siblings along, and an entry of a run that is cancelled is not resumed", async () => {
      const t = await open();
      const [a = "", b = ""] = await asking(t, [
        { question: "a?", groupId: "g" },
        { question: "b?", groupId: "g" },
      ]);
      expect(await ruleOf(visit(t, { cancel: [a], resume: [{ id: b, payload: "B" }] }))).toBe("cancel_resume_overlap");
      await visit(t, { cancel: [a, b] });
      await t.idle();
      expect(await parked(t)).toEqual([]);
    });

    test("an entry that is running tears its run down with one failure, and nothing of it goes on", async () => {
      const t = await open();
      const told: unknown[] = [];
      t.herd.receive({ scope: "shop" }, { onResult: (result) => told.push([result.label, result.error?.code]) });
      const started = await visit(t, { start: { agent: "resumes-then-waits", task: "A" } });
      const id = started.asks?.[0]?.id ?? "";
      await visit(t, { resume: [{ id, payload: "go" }], waits: false });
      await gate.begun.promise;
      expect(await parked(t)).toMatchObject([{ id, status: "running" }]);
      await visit(t, { cancel: [id] });
      gate.held.resolve();
      await t.idle();
      expect(told).toEqual([["resumes-then-waits", "cancelled"]]);
      expect(await parked(t)).toEqual([]);
      await t.crash();
      await t.idle();
      expect(await parked(t)).toEqual([]);
    });
  });
});

/** A memory store whose reading of one range can be stopped. */
function slowStore() {
  const store = memoryStore();
  const holds = new Map<string, { reached: () => void; go: Promise<void> }>();
  const { range } = store;
  store.range = async (bounds) => {
    const held = holds.get(bounds.gte);
    held?.reached();
    await held?.go;
    return range.call(store, bounds);
  };
  const hold = (prefix: string) => {
    const [reached, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    holds.set(prefix, { reached: reached.resolve, go: go.promise });
    return { reached: reached.promise, go: () => (holds.delete(prefix), go.resolve()) };
  };
  return { store, hold };
}

test("two runs at once takes both, also when one is read again while the other is still to be read", async () => {
  const { store, hold } = slowStore();
  const t = await open({ store });
  const group = ["1?", "2?"].map((question) => ({ question, groupId: "g" }));
  const [first = "", second = ""] = await asking(t, group);
  const [other = ""] = await asking(t, { question: "3?" });
  const trees = new Map((await parked(t)).map(({ id, requestId }) => [id, keys.request(requestId)]));
  const rowsOf = (id: string) => `a!${JSON.parse(store.get(trees.get(id) ?? "") ?? "").tree}!`;
  await t.crash();
  const reading = hold(rowsOf(other));
  const cancelling = visit(t, { cancel: [first, other] });
  await reading.reached;
  // It is undone after it closed the run in memory.
  expect(await ruleOf(visit(t, { cancel: [first], resume: [{ id: second, payload: "x" }] }))).toBe(
    "cancel_resume_overlap",
  );
  const again = hold(rowsOf(first));
  const looking = (await t.herd.assignment(first.split(".")[0] ?? "")).status();
  await again.reached;
  reading.go();
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  again.go();
  expect(await cancelling).toMatchObject({ cancelled: [first, other] });
  await looking;
  await t.idle();
  expect(await parked(t)).toEqual([]);
});
