import { describe, expect, test } from "vitest";
import { type HerdError, type DoorRequest } from "../index.ts";
import { prefixed, timeKey } from "../store/keys.ts";
import type { TestHerd } from "../testing/index.ts";
import { subject, gate, open, parked, resumeFirst } from "../../test/support/doors.ts";

describe("a schedule", () => {
  const nightly: DoorRequest = {
    name: "nightly",
    kind: "schedule",
    cron: "0 2 * * *",
    timezone: "Europe/Madrid",
    subject,
    target: { agent: "echo", task: "Audit" },
  };

  test("fires at its times, and what its runs come to waits on the subject", async () => {
    const t = await open();
    await t.herd.door(nightly);
    await t.clock.advance("15h");
    await t.idle();
    expect(await parked(t)).toEqual([]);
    // 02:00 in Madrid is 01:00 UTC in winter.
    await t.clock.advance("1h");
    await t.idle();
    expect(await parked(t)).toMatchObject([
      { status: "finished", label: "echo", result: { task: "Audit", input: null } },
    ]);
    await t.clock.advance("24h");
    await t.idle();
    expect(await parked(t)).toHaveLength(2);
  });

  test("fires once for all that it missed, also when it is registered again first", async () => {
    const t = await open({ tickMs: 0 });
    await t.herd.door(nightly);
    await t.crash();
    await t.herd.door(nightly);
    await t.herd.tick(new Date("2026-03-05T09:00:00Z"));
    await t.herd.tick(new Date("2026-03-05T09:00:01Z"));
    await t.idle();
    expect(await parked(t)).toHaveLength(1);
    await t.herd.tick(new Date("2026-03-06T01:00:00Z"));
    await t.idle();
    expect(await parked(t)).toHaveLength(2);
  });

  test("gives its stored input, or what its start program makes of it", async () => {
    const t = await open();
    await t.herd.door({ ...nightly, target: "echo", defaults: { n: 1 } });
    await t.herd.door({
      ...nightly,
      name: "counting",
      target: "echo",
      defaults: { n: 1 },
      contract: { startExpr: "{ n: (.n + 1), waiting: ($parked | length) }" },
    });
    await t.clock.advance("17h");
    await t.idle();
    const inputs = (await parked(t)).map(({ result }) => (result as { input: unknown }).input);
    expect(inputs).toContainEqual({ n: 1 });
    expect(inputs).toContainEqual({ n: 2, waiting: expect.any(Number) });
  });

  test.each<["skip" | "start", number]>([
    ["skip", 1],
    ["start", 2],
  ])("with overlap %s, while its last run executes, has %i runs", async (overlap, runs) => {
    const t = await open({ tickMs: 0 });
    await t.herd.door({ ...nightly, target: { agent: "waits", task: "A" }, overlap });
    await t.herd.tick(new Date("2026-03-02T01:00:00Z"));
    await gate.begun.promise;
    await t.herd.tick(new Date("2026-03-03T01:00:00Z"));
    expect((await t.herd.owner(subject).list()).workers).toHaveLength(runs);
    gate.held.resolve();
    await t.idle();
    await t.herd.tick(new Date("2026-03-04T01:00:00Z"));
    await t.idle();
    expect(await parked(t)).toHaveLength(runs + 1);
  });

  test("deals by jq with what it finds parked", async () => {
    const t = await open();
    await t.herd.door({ ...nightly, target: "clerk", defaults: { task: "A" }, contract: { resumeExpr: resumeFirst } });
    await t.clock.advance("17h");
    await t.idle();
    expect(await parked(t)).toMatchObject([{ status: "asking" }]);
    await t.clock.advance("24h");
    await t.idle();
    expect(await parked(t)).toMatchObject([{ status: "finished", result: { answer: true } }]);
  });

  test("that goes wrong says so and goes on with its next time", async () => {
    const t = await open();
    const told: unknown[] = [];
    t.herd.on("door", ({ name, error }) => told.push([name, (error as HerdError | undefined)?.reason]));
    await t.herd.door({ ...nightly, contract: { cancelExpr: "$parked | length" } });
    await t.clock.advance("17h");
    await t.clock.advance("24h");
    expect(told).toEqual([
      ["nightly", "door_contract"],
      ["nightly", "door_contract"],
    ]);
  });

  test("whose expressions are functions waits with its fire until they are registered again", async () => {
    const t = await open({ tickMs: 0 });
    const request = { ...nightly, target: "echo", contract: { startExpr: () => ({ n: 1 }) } };
    await t.herd.door(request);
    await t.crash();
    const at = new Date("2026-03-02T01:00:00Z");
    await t.herd.tick(at);
    expect(await parked(t)).toEqual([]);
    await t.herd.door(request);
    await t.herd.tick(at);
    await t.idle();
    expect(await parked(t)).toMatchObject([{ status: "finished", result: { input: { n: 1 } } }]);
  });

  test("that is visited by hand reads its stored input, as a fire does", async () => {
    const t = await open();
    const door = await t.herd.door({
      ...nightly,
      target: "echo",
      defaults: { n: 1 },
      contract: { startExpr: "{ n: .n }" },
    });
    await door.visit();
    await t.idle();
    expect(await parked(t)).toMatchObject([{ result: { input: { n: 1 } } }]);
  });

  test("stays due where no worker goes on", async () => {
    const t = await open({ tickMs: 0, runWorkers: false });
    const told: unknown[] = [];
    t.herd.on("door", (event) => told.push(event));
    await t.herd.door(nightly);
    await t.herd.tick(new Date("2026-03-02T09:00:00Z"));
    await t.idle();
    expect(told).toEqual([]);
    expect((await t.herd.owner(subject).list()).workers).toEqual([]);
  });

  test("that waits for its functions keeps nothing waiting that is due behind it", async () => {
    const t = await open({ tickMs: 0 });
    for (let number = 0; number < 201; number++) {
      const contract = { startExpr: () => null };
      await t.herd.door({ ...nightly, name: `door-${number}`, target: "echo", contract } as DoorRequest);
    }
    await t.herd.door({ ...nightly, name: "later", cron: "0 3 * * *" } as DoorRequest);
    await t.crash();
    await t.herd.tick(new Date("2026-03-02T02:00:00Z"));
    await t.idle();
    expect(await parked(t)).toMatchObject([{ status: "finished", label: "echo" }]);
  });

  test("that is removed fires no more", async () => {
    const t = await open();
    await (await t.herd.door(nightly)).remove();
    await t.clock.advance("48h");
    await t.idle();
    expect(await parked(t)).toEqual([]);
  });
});

describe("a schedule whose expression takes its time", () => {
  const hourly = {
    kind: "schedule",
    name: "s",
    cron: "0 * * * *",
    subject,
    target: "echo",
    defaults: { task: "A" },
  } as const;

  /** A contract that says when it is asked, and answers when it is told to. */
  function slow() {
    const [asked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const startExpr = async (input: unknown) => {
      asked.resolve();
      await go.promise;
      return input;
    };
    return { contract: { startExpr }, asked: asked.promise, go: () => go.resolve() };
  }

  async function rowsOf(t: TestHerd): Promise<string[]> {
    const rows = [...(await t.store.range(prefixed("t!"))), ...(await t.store.range(prefixed("f!")))];
    return rows.map(([key]) => key).filter((key) => !key.includes("retention") && !key.includes("outcome"));
  }

  test("keeps nothing else that is due waiting", async () => {
    const t = await open();
    const { contract, asked, go } = slow();
    await t.herd.door({ ...hourly, contract });
    await t.herd.visit({ subject, start: { agent: "clerk", task: "A" } });
    const at = (time: string) => t.herd.tick(new Date(time));
    const first = at("2026-03-01T10:00:00Z");
    await asked;
    await at("2026-04-15T10:00:00Z");
    expect(await parked(t)).toMatchObject([{ status: "failed", error: { code: "expired" } }]);
    go();
    await first;
    await t.idle();
    expect(await parked(t)).toHaveLength(2);
  });

  test("and that is given other times meanwhile fires at those alone", async () => {
    const t = await open();
    const { contract, asked, go } = slow();
    await t.herd.door({ ...hourly, contract });
    const fire = t.herd.tick(new Date("2026-03-01T10:00:00Z"));
    await asked;
    await t.herd.door({ ...hourly, cron: "30 12 * * *" });
    go();
    await fire;
    await t.idle();
    expect(await parked(t)).toHaveLength(1);
    const due = `t!${timeKey(Date.parse("2026-03-01T12:30:00Z"))}!schedule!s`;
    expect(await rowsOf(t)).toEqual([due, "f!s"]);
  });

  test("and that is removed meanwhile starts nothing and leaves nothing", async () => {
    const t = await open();
    const { contract, asked, go } = slow();
    const door = await t.herd.door({ ...hourly, contract });
    const fire = t.herd.tick(new Date("2026-03-01T10:00:00Z"));
    await asked;
    await door.remove();
    go();
    await fire;
    await t.idle();
    expect(await parked(t)).toEqual([]);
    expect(await rowsOf(t)).toEqual([]);
  });

  test("stays due when the herd closes meanwhile", async () => {
    const t = await open();
    await t.herd.door({ ...hourly, contract: { startExpr: "." } });
    const due = new Date("2026-03-01T10:00:00Z");
    const fire = t.herd.tick(due);
    await t.herd.close({ graceMs: 0 });
    await fire;
    const again = await open({ store: t.store });
    await again.herd.tick(due);
    await again.idle();
    expect(await parked(again)).toHaveLength(1);
  });
});
