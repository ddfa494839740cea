import { expect, test } from "vitest";
import { signDelivery } from "../index.ts";
import { faultyStore, FaultPlan } from "../store/faulty.ts";
import { memoryStore } from "../store/memory.ts";
import type { TestHerd } from "../testing/index.ts";
import { asking, open, ruleOf, subject, visit } from "../../test/support/visits.ts";

const secret = "a secret of the shop";
const target = { agent: "says", task: "A" };

async function deliver(t: TestHerd): Promise<void> {
  const door = (await t.herd.doors()).find(({ name }) => name === "hook");
  const headers = signDelivery({ secret, id: "d-1", timestamp: t.clock.now().getTime(), body: "" });
  const answer = await door?.fetch(new Request("https://shop.example/", { method: "POST", headers }));
  expect(answer?.status).toBe(202);
}

type Call = (t: TestHerd, ids: { caller: string; user: string }) => Promise<unknown>;

test.each<[string, Call]>([
  ["a visit", (t, { caller: id }) => visit(t, { id: "v", resume: [{ id, payload: "x" }] })],
  ["a look at what is parked", (t) => t.herd.parked(subject)],
  ["a take", (t) => t.herd.take(subject)],
  ["a reply", (t, { caller: askId }) => t.herd.owner(subject).reply({ askId, message: "x" })],
  ["a reply by label", (t) => t.herd.owner(subject).reply({ label: "nobody", message: "x" })],
  ["a person's answer", (t, { user: askId }) => t.herd.inbox.answer({ askId, answer: "x" })],
  ["a close", (t) => t.herd.owner(subject).close({ label: "nobody" })],
  ["a tool", (t) => t.herd.owner(subject).parkedTool("list_parked", {})],
  ["a delivery", deliver],
  ["a door that is made", (t) => t.herd.door({ name: "s", kind: "schedule", cron: "@daily", subject, target })],
  ["a door that is removed", async (t) => (await t.herd.doors())[0]?.remove()],
  ["a submission", async (t) => (await t.herd.doors()).at(-1)?.visit()],
])("%s waits while a failed batch is written again, for which the store is closed", async (_what, call) => {
  const plan = new FaultPlan();
  // Its clock stands still, and so does each try.
  const t = await open({ store: faultyStore(memoryStore(), plan), reopen: { attempts: 8, pauseMs: 10 } });
  const [caller = ""] = await asking(t, { question: "1?" });
  const person = await visit(t, { start: { agent: "asks", input: [{ question: "2?", to: "user" }] } });
  await t.herd.door({ name: "hook", kind: "webhook", secret, subject, target });
  await t.herd.door({ name: "submit", kind: "submit", subject, target });
  // Nothing of it is remembered.
  await t.crash();
  await t.idle();
  const { clock } = (t.herd as unknown as { engine: { clock: { move(ms: number): void } } }).engine;
  const turns = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  plan.failBatches(1);
  plan.failReopens(3);
  const other = t.herd.owner("other").assign(target);
  await turns();
  clock.move(10);
  await turns();
  let over = false;
  const called = call(t, { caller, user: person.suspended?.interactionId ?? "" }).finally(() => (over = true));
  const ended = ruleOf(called);
  await turns();
  expect(over).toBe(false);
  while (!over) {
    clock.move(10);
    await turns();
  }
  await other;
  // Done, or refused by name: nobody is labelled so.
  expect([{ done: await called.catch(() => undefined) }, "target_not_found"]).toContainEqual(await ended);
});
