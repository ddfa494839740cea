import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { signDelivery, type Door } from "pi-herd";
import { openShop } from "./orders.ts";

const secret = "a secret of the payment service";

async function shopIn(folder: string) {
  const shop = await openShop({
    directory: join(folder, "herd"),
    secret,
    ports: { orders: 0, approvals: 0 },
    ledger: join(folder, "refunds.txt"),
    tickMs: 0,
  });
  onTestFinished(() => shop.herd.close());
  return shop;
}

/** What the payment service does. */
async function deliver({ url = "" }: Door, id: string, input: object): Promise<unknown> {
  const body = JSON.stringify(input);
  const headers = signDelivery({ secret, id, timestamp: Date.now(), body });
  const answer = await fetch(url, { method: "POST", headers, body });
  return { status: answer.status, ...((await answer.json()) as object) };
}

const desk = { scope: "shop", keys: { desk: "refunds" } };
/** After so many more nights. */
const night = (days: number) => new Date(Date.now() + days * 24 * 60 * 60 * 1000);

test("a webhook starts a run, another one answers it, and a schedule takes the outcome, in three processes' worth of them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "herd-orders-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));

  const first = await shopIn(folder);
  expect(await deliver(first.orders, "d-1", { order: "7", amount: 12 })).toMatchObject({
    status: 202,
    action: "started",
  });
  expect(await deliver(first.orders, "d-2", { order: "8", amount: 30 })).toMatchObject({ status: 202 });
  expect(await deliver(first.orders, "d-2", { order: "8", amount: 30 })).toMatchObject({ status: 200, repeated: true });
  expect(await deliver(first.orders, "d-3", { order: "9" })).toMatchObject({ status: 400 });
  await asking(first.herd, 2);
  await first.herd.close();

  const second = await shopIn(folder);
  expect(await deliver(second.approvals, "a-1", { order: "8", approved: true })).toMatchObject({ action: "resumed" });
  expect(await deliver(second.approvals, "a-2", { order: "5", approved: true })).toMatchObject({ action: "none" });
  expect(await deliver(second.approvals, "a-3", { order: "7", approved: "sure" })).toMatchObject({
    status: 400,
    error: { reason: "answer_mismatch" },
  });
  expect(await deliver(second.approvals, "a-4", { order: "7", approved: false })).toMatchObject({ status: 202 });
  await asking(second.herd, 0);
  await second.herd.close();

  const third = await shopIn(folder);
  await third.herd.tick(night(1));
  await booked(folder, 2);
  const lines = (await readFile(join(folder, "refunds.txt"), "utf8")).trim().split("\n");
  expect(lines.map((line) => line.split(" ").slice(1).join(" ")).toSorted()).toEqual(["7 0", "8 30"]);
  while ((await third.herd.parked(desk)).length !== 1) await new Promise(setImmediate);
  expect(await third.herd.parked(desk)).toMatchObject([{ label: "bookkeeper", result: "2 booked" }]);
  await third.herd.tick(night(2));
  while ((await third.herd.parked(desk))[0]?.result !== "0 booked") await new Promise(setImmediate);
  expect(await third.herd.parked(desk)).toHaveLength(1);
});

/** Resolves once so many questions are parked, and everything else has ended. */
async function asking(herd: Awaited<ReturnType<typeof shopIn>>["herd"], count: number): Promise<void> {
  for (;;) {
    const entries = await herd.parked(desk);
    const open = entries.filter(({ status }) => status === "asking").length;
    if (open === count && entries.length === 2 && !entries.some(({ status }) => status === "running")) return;
    await new Promise(setImmediate);
  }
}

async function booked(folder: string, count: number): Promise<void> {
  for (;;) {
    const text = await readFile(join(folder, "refunds.txt"), "utf8").catch(() => "");
    if (text.split("\n").length > count) return;
    await new Promise(setImmediate);
  }
}
