import { describe, expect, test } from "vitest";
import { createHerd } from "pi-herd";
import { does, expectNothingLeft, herdOnDisk, refusalOf, statesOf, until } from "./support.ts";

const agents = { does };

describe("a herd without the backend of a worker", () => {
  test("shows it as unknown, changes nothing and closes nothing; one that has it goes on", async () => {
    const t = await herdOnDisk({ agents });
    const script = t.scripted("does");
    await t.owner.assign({ agent: "does", task: "A" });
    const run = await script.run();
    await run.turn();
    await t.close();
    const other = await createHerd({ store: t.store, agents, tickMs: 0 });
    const owner = other.owner("tester");
    await until(async () => (await owner.list()).workers[0]?.state === "unknown");
    expect((await owner.list()).workers).toMatchObject([
      { label: "does", state: "unknown", steerable: false, diagnostic: expect.stringContaining('"scripted"') },
    ]);
    expect(await refusalOf(owner.close({ label: "does" }))).toMatchObject({
      category: "target_not_found",
      reason: "identity_unproven",
      ids: { label: "does" },
    });
    expect(await refusalOf(owner.steer({ label: "does", message: "x" }))).toMatchObject({ category: "worker_busy" });
    expect(await refusalOf(owner.assign({ agent: "does", task: "B", label: "does" }))).toMatchObject({
      category: "worker_label_exists",
    });
    expect((await owner.list()).workers).toMatchObject([{ label: "does", state: "unknown" }]);
    await other.close();
    expect(run.orders.map(({ kind }) => kind)).toEqual(["start"]);
    await t.crash();
    await t.idle();
    expect(await statesOf(t)).toEqual(["does working"]);
    await run.settle("done");
    expect((await t.result()).text).toBe("done");
    await expectNothingLeft(t);
  });
});
