import { describe, expect, test } from "vitest";
import { gate, open, parked, subject, visit } from "../../test/support/visits.ts";
import { FaultPlan, faultyStore } from "../store/faulty.ts";
import { memoryStore } from "../store/memory.ts";

describe("whoever stops waiting", () => {
  test("before the visit is on disk has done nothing", async () => {
    const t = await open();
    const stop = new AbortController();
    const visiting = visit(t, { start: { agent: "waits", task: "A" }, signal: stop.signal });
    stop.abort(new Error("enough"));
    await expect(visiting).rejects.toThrow("enough");
    await t.idle();
    expect(await parked(t)).toEqual([]);
    expect(await t.herd.owners()).toEqual([]);
  });

  test("while it is on its way to the disk leaves the outcome on the subject", async () => {
    const plan = new FaultPlan();
    const t = await open({ store: faultyStore(memoryStore(), plan) });
    await t.idle();
    const stop = new AbortController();
    const batch = plan.holdBatch();
    const visiting = visit(t, { start: { agent: "waits", task: "A" }, signal: stop.signal });
    await batch.reached;
    stop.abort(new Error("enough"));
    batch.release();
    await expect(visiting).rejects.toThrow("enough");
    gate.held.resolve();
    await t.idle();
    expect(await parked(t)).toMatchObject([{ status: "finished", result: "waited" }]);
  });

  test("because it is a worker that was closed leaves it there too", async () => {
    const t = await open();
    await visit(t, { start: { agent: "resumes-then-waits", task: "A" } });
    const owner = t.herd.owner(subject);
    await owner.assign({ agent: "resumes", task: "B" });
    await gate.begun.promise;
    await owner.close({ label: "resumes" });
    gate.held.resolve();
    await t.idle();
    expect(await parked(t)).toMatchObject([{ status: "finished", result: "waited" }]);
  });
});
