import { expect, onTestFinished, test } from "vitest";
import type { HerdInstance } from "./herd-instance.ts";
import { createHerd, type AgentDefinition, type Herd, type HerdOptions, type Store } from "./index.ts";
import { createTestHerd, memoryStore } from "./testing/index.ts";

let begun: string[] = [];
const agents = {
  asks: {
    description: "Asks, and hears what it is told",
    run: async (task, worker) => {
      begun.push(task);
      const answer = await worker.askOwner({ question: "Which?" });
      return [task, answer, ...worker.steers().map(({ message }) => message)].join(" ");
    },
  },
  works: {
    description: "Works until it is stopped",
    run: (task, worker) =>
      new Promise<string>((_resolve, reject) => {
        begun.push(task);
        worker.signal.addEventListener("abort", () => reject(worker.signal.reason as Error));
      }),
  },
} satisfies Record<string, AgentDefinition>;

async function open(store: Store, options: Partial<HerdOptions<typeof agents>> = {}): Promise<Herd> {
  const herd = await createHerd({ store, agents, tickMs: 0, ...options });
  onTestFinished(() => herd.close({ graceMs: 0 }));
  begun = [];
  return herd;
}

test("a herd that runs no workers takes a reply and a steer, and the next one that does goes on with them", async () => {
  const store = memoryStore();
  const first = await open(store);
  const run = await first.owner("me").assign({ agent: "asks", task: "A" });
  await run.next();
  await first.close();

  const standby = await open(store, { runWorkers: false });
  const owner = standby.owner("me");
  await owner.reply({ label: run.label, message: "this" });
  await owner.steer({ label: run.label, message: "and soon" });
  expect((await owner.list()).workers).toMatchObject([{ label: run.label, state: "working" }]);
  expect((await owner.list()).workers[0]?.diagnostic).toBeUndefined();
  await standby.close();
  expect(begun).toEqual([]);

  const second = await open(store);
  expect((await (await second.assignment(run.requestId)).result()).text).toBe("A this and soon");
  expect(begun).toEqual(["A"]);
});

test("it takes an assignment and a close, and begins nothing", async () => {
  const store = memoryStore();
  const standby = await open(store, { runWorkers: false });
  const owner = standby.owner("me");
  const kept = await owner.assign({ agent: "asks", task: "A" });
  const closed = await owner.assign({ agent: "asks", task: "B" });
  await owner.close({ label: closed.label });
  expect((await closed.result()).status).toBe("closed");
  await standby.close();
  expect(begun).toEqual([]);

  const herd = await open(store);
  const again = await herd.assignment(kept.requestId);
  expect((await again.next()).type).toBe("question");
  expect(begun).toEqual(["A"]);
});

test("it refuses a worker in a process, which would have to be started to be accepted", async () => {
  const t = await createTestHerd({ agents, runWorkers: false });
  onTestFinished(() => t.close());
  t.scripted("works");
  await expect(t.owner.assign({ agent: "works", task: "A" })).rejects.toMatchObject({
    reason: "no_backend",
    message: expect.stringContaining("runWorkers: false"),
  });
  expect((await t.owner.list()).workers).toEqual([]);
});

test("it does not hide that the process before it was killed", async () => {
  const store = memoryStore();
  const first = await open(store);
  const run = await first.owner("me").assign({ agent: "works", task: "A" });
  await (first as HerdInstance).engine.kernel.settled();
  await (first as HerdInstance).crash();
  for (let time = 0; time < 2; time++) await (await open(store, { runWorkers: false })).close();
  const herd = await open(store, { restarts: 1 });
  expect(await (await herd.assignment(run.requestId)).result()).toMatchObject({ error: { code: "worker_lost" } });
});

test("nor that it was closed in order", async () => {
  const store = memoryStore();
  const first = await open(store);
  const run = await first.owner("me").assign({ agent: "works", task: "A" });
  await first.close({ graceMs: 0 });
  for (let time = 0; time < 2; time++) await (await open(store, { runWorkers: false })).close();
  const herd = await open(store, { restarts: 1 });
  expect((await (await herd.assignment(run.requestId)).status()).state).toBe("working");
});
