import { createServer, type AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { createHerd, signDelivery, type DoorRequest } from "../index.ts";
import { faultyStore, FaultPlan } from "../store/faulty.ts";
import { memoryStore } from "../store/memory.ts";
import type { TestHerd } from "../testing/index.ts";
import { subject, secret, open, parked, failureOf, resumeFirst } from "../../test/support/doors.ts";

describe("a webhook", () => {
  const webhook: DoorRequest = {
    name: "orders",
    kind: "webhook",
    secret,
    subject: '{ scope: "shop", keys: { order: .order } }',
    target: "clerk",
    contract: { resumeExpr: resumeFirst },
  };

  function delivery(t: TestHerd, id: string, input: unknown, more: Record<string, string> = {}): Request {
    const body = JSON.stringify(input);
    const headers = signDelivery({ secret, id, timestamp: t.clock.now().getTime(), body });
    return new Request("https://shop.example/hooks/orders", { method: "POST", body, headers: { ...headers, ...more } });
  }

  test("starts when nothing is parked, resumes when something is, and the outcome waits until it is taken", async () => {
    const t = await open();
    const door = await t.herd.door(webhook);
    const started = await door.fetch(delivery(t, "d-1", { order: "7", task: "A" }));
    expect(started.status).toBe(202);
    expect(await started.json()).toMatchObject({ ok: true, action: "started", cancelled: [] });
    await t.idle();
    expect(await parked(t)).toMatchObject([{ status: "asking" }]);
    await t.crash();
    const [again] = await t.herd.doors();
    const resumed = await again?.fetch(delivery(t, "d-2", { order: "7" }));
    expect([resumed?.status, await resumed?.json()]).toMatchObject([202, { action: "resumed" }]);
    await t.idle();
    expect(await t.herd.take(subject)).toMatchObject({ status: "completed", data: { task: "A", answer: true } });
  });

  test("does a delivery once, however often it comes, also at once and after a restart", async () => {
    const t = await open();
    const door = await t.herd.door(webhook);
    const given = { order: "7", task: "A" };
    const both = await Promise.all(["d-1", "d-1"].map((id) => door.fetch(delivery(t, id, given))));
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 202]);
    await t.crash();
    const [again] = await t.herd.doors();
    const repeated = await again?.fetch(delivery(t, "d-1", given));
    expect([repeated?.status, await repeated?.json()]).toMatchObject([200, { repeated: true, action: "started" }]);
    await t.idle();
    expect(await parked(t)).toHaveLength(1);
  });

  test.each<[string, number, string, (t: TestHerd) => Request]>([
    ["an unsigned", 401, "bad_signature", () => new Request("https://x/", { method: "POST", body: "{}" })],
    [
      "a wrongly signed",
      401,
      "bad_signature",
      (t) => delivery(t, "d", {}, { "webhook-signature": "v1,bm90IHRoaXMgb25l" }),
    ],
    ["a GET", 405, "invalid_field", () => new Request("https://x/")],
    ["one that no program fits", 400, "door_contract", (t) => delivery(t, "d", {})],
    ["one that is nested without measure", 400, "invalid_field", (t) => nested(t)],
    ["one that is too large", 413, "too_large", (t) => delivery(t, "d", "x".repeat(1_100_000))],
  ])("refuses %s delivery with %i, %s, and does nothing", async (_what, status, reason, request) => {
    const t = await open();
    t.herd.on("door", () => undefined);
    const door = await t.herd.door(reason === "invalid_field" ? { ...webhook, subject, contract: {} } : webhook);
    const answer = await door.fetch(request(t));
    expect([answer.status, ((await answer.json()) as { error: { reason: string } }).error.reason]).toEqual([
      status,
      reason,
    ]);
    await t.idle();
    expect(await parked(t)).toEqual([]);
  });

  test("answers 409 for what is gone, 503 when the herd is closed", async () => {
    const t = await open();
    t.herd.on("door", () => undefined);
    const door = await t.herd.door({ ...webhook, contract: { cancelExpr: '"nothing"' } });
    expect((await door.fetch(delivery(t, "d", { order: "7" }))).status).toBe(409);
    await t.herd.close();
    expect((await door.fetch(delivery(t, "e", { order: "7" }))).status).toBe(503);
  });

  test("cancels what its program names, and its extras reach the run that it starts", async () => {
    const t = await open();
    const door = await t.herd.door({
      ...webhook,
      contract: { cancelExpr: "[$parked[].id]", extrasExpr: '{ locale: "es" }', startExpr: "{ task: .task }" },
    });
    await door.fetch(delivery(t, "d-1", { order: "7", task: "A" }));
    await t.idle();
    const [first] = await parked(t);
    const second = await door.fetch(delivery(t, "d-2", { order: "7", task: "B" }));
    expect(await second.json()).toMatchObject({ action: "started", cancelled: [first?.id] });
    await t.idle();
    const [entry] = await parked(t);
    await t.herd.visit({ subject, resume: [{ id: entry?.id ?? "", payload: true }], receivesOutcome: false });
    expect(await parked(t)).toMatchObject([{ status: "finished", result: { task: "B", locale: "es" } }]);
  });

  test("is told to have been done once that is on disk, and not before", async () => {
    const plan = new FaultPlan();
    const t = await open({ store: faultyStore(memoryStore(), plan) });
    const door = await t.herd.door({ ...webhook, contract: {}, subject });
    await t.idle();
    const batch = plan.holdBatch();
    const statuses: number[] = [];
    const both = ["d-1", "d-1"].map(async (id) => {
      const { status } = await door.fetch(delivery(t, id, { task: "A" }));
      statuses.push(status);
    });
    await batch.reached;
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(statuses).toEqual([]);
    batch.release();
    await Promise.all(both);
    expect(statuses.toSorted()).toEqual([200, 202]);
  });

  test("is a repetition also when the same delivery has just taken away what it names", async () => {
    const t = await open();
    const door = await t.herd.door({ ...webhook, contract: { resumeExpr: resumeFirst, startExpr: "null" } });
    await t.herd.visit({ subject, start: { agent: "clerk", task: "A" } });
    const both = await Promise.all(["d-1", "d-1"].map((id) => door.fetch(delivery(t, id, { order: "7" }))));
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 202]);
  });

  test("is refused by a herd that only reads", async () => {
    const t = await open();
    await t.herd.door(webhook);
    await t.herd.close();
    const reads = await createHerd({ store: t.store, passive: true });
    onTestFinished(() => reads.close());
    const [door] = await reads.doors();
    const answer = await door?.fetch(delivery(t, "d-1", { order: "7", task: "A" }));
    expect([answer?.status, await answer?.json()]).toMatchObject([503, { error: { reason: "passive" } }]);
    expect(await reads.parked(subject)).toEqual([]);
  });

  test("goes on listening where it did when another port is not to be had", async () => {
    const t = await open();
    const door = await t.herd.door({ ...webhook, port: 0 });
    const taken = await t.herd.door({ ...webhook, name: "others", port: 0 });
    const port = Number(new URL(taken.url ?? "").port);
    expect(await failureOf(t.herd.door({ ...webhook, port }))).toBe("port_unavailable port");
    expect((await fetch(door.url ?? "", { method: "POST" })).status).toBe(401);
  });

  test("keeps no herd from closing, and listens no more, whatever is under way", async () => {
    const t = await open();
    const asked = Promise.withResolvers<void>();
    const startExpr = () => (asked.resolve(), new Promise<void>(() => undefined));
    const door = await t.herd.door({ ...webhook, contract: { startExpr }, port: 0 });
    const { headers } = delivery(t, "d-1", { order: "7" });
    const sent = fetch(door.url ?? "", { method: "POST", headers, body: JSON.stringify({ order: "7" }) });
    const cut = failureOf(sent);
    await asked.promise;
    const saved = failureOf(t.herd.door({ ...webhook, name: "late", port: 0 }));
    await t.herd.close({ graceMs: 0 });
    expect(String(await cut)).toContain("fetch failed");
    expect(await saved).toBe("herd_closed");
  });

  test("that is removed while it is given another port listens nowhere", async () => {
    const t = await open();
    const door = await t.herd.door({ ...webhook, port: 0 });
    const updated = t.herd.door({ ...webhook, subject: { scope: "shop", keys: { a: "b" } }, port: await freePort() });
    await Promise.all([updated, door.remove()]);
    const [left] = await t.herd.doors();
    await left?.remove();
    for (const { url = "" } of [door, await updated])
      await expect(fetch(url, { method: "POST" })).rejects.toThrow("fetch failed");
  });

  test("listens on loopback where it has a port, and again after a restart", async () => {
    const t = await open();
    const door = await t.herd.door({ ...webhook, port: 0 });
    const send = async (url: string, id: string) => {
      const { headers, method } = delivery(t, id, { order: "7" });
      return fetch(url, { method, headers, body: JSON.stringify({ order: "7" }) });
    };
    expect(door.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/orders$/);
    expect((await send(door.url ?? "", "d-1")).status).toBe(202);
    await t.crash();
    const [again] = await t.herd.doors();
    expect((await send(again?.url ?? "", "d-1")).status).toBe(200);
    await again?.remove();
    await expect(send(again?.url ?? "", "d-2")).rejects.toThrow("fetch failed");
  });

  test("has no door of another kind", async () => {
    const t = await open();
    const door = await t.herd.door({ name: "d", subject, target: "echo" });
    expect(await failureOf(door.fetch(new Request("https://x/")))).toBe("no_webhook kind");
  });
});

function nested(t: TestHerd): Request {
  const body = `${"[".repeat(400_000)}${"]".repeat(400_000)}`;
  const headers = signDelivery({ secret, id: "d", timestamp: t.clock.now().getTime(), body });
  return new Request("https://x/", { method: "POST", body, headers });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
