import { expect, onTestFinished, test } from "vitest";
import { connected, open as openOnDisk, until } from "../../test/support/control.ts";
import type { AgentDefinition } from "../functions/agent.ts";
import { HerdError, type Herd, type Question, type Result } from "../index.ts";
import { createTestHerd, type TestHerd } from "../testing/index.ts";

const agents = {
  asks: {
    description: "Asks",
    run: async (task, worker) => `${task} ${await worker.askOwner({ question: `${task}?` })}`,
  },
  echo: { description: "Says its task", run: async (task) => task },
} satisfies Record<string, AgentDefinition>;

const order = (number: string) => ({ scope: "shop", keys: { order: number } });

async function open(): Promise<TestHerd> {
  const t = await createTestHerd({ agents });
  onTestFinished(() => t.close());
  return t;
}

/** Somebody who writes down what reaches them. */
function recorder() {
  const heard: string[] = [];
  return {
    heard,
    onQuestion: ({ question }: Question) => void heard.push(question),
    onResult: ({ text }: Result) => void heard.push(text),
  };
}

test("a receiver of a scope hears what is open for each of its owners, then what comes, and acknowledges it", async () => {
  const t = await open();
  await t.herd.owner(order("1")).assign({ agent: "asks", task: "A" });
  await t.herd.owner(order("2")).assign({ agent: "echo", task: "B" });
  await t.herd.owner({ scope: "stock", keys: { order: "1" } }).assign({ agent: "echo", task: "elsewhere" });
  await t.herd.owner("order=1").assign({ agent: "echo", task: "nobody's" });
  await t.idle();
  const all = recorder();
  t.herd.receive({ scope: "shop" }, all);
  await t.idle();
  expect(all.heard.toSorted()).toEqual(["A?", "B"]);
  await t.herd.owner(order("3")).assign({ agent: "echo", task: "C" });
  await t.herd.owner(order("1")).reply({ label: "asks", message: "yes" });
  await t.idle();
  expect(all.heard.toSorted()).toEqual(["A yes", "A?", "B", "C"]);
  for (const number of ["1", "2", "3"]) expect(await t.herd.owner(order(number)).parked()).toEqual([]);
});

test("an owner's own receiver comes first, and gives its place back to that of the scope", async () => {
  const t = await open();
  const [all, own] = [recorder(), recorder()];
  t.herd.receive({ scope: "shop" }, all);
  const owner = t.herd.owner(order("1"), own);
  await owner.assign({ agent: "echo", task: "A" });
  await t.idle();
  owner.detach();
  await owner.assign({ agent: "echo", task: "B" });
  await t.idle();
  expect([own.heard, all.heard]).toEqual([["A"], ["B"]]);
});

test("a handle beside a receiver of its scope only looks on", async () => {
  const t = await open();
  const given = Promise.withResolvers<void>();
  const results: Result[] = [];
  t.herd.receive({ scope: "shop" }, { onResult: (result) => (results.push(result), given.promise) });
  const run = await t.herd.owner(order("1")).assign({ agent: "echo", task: "A" });
  const ended = run.result();
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect((await run.status()).result).toBeUndefined();
  given.resolve();
  expect((await ended).text).toBe("A");
  expect(results).toHaveLength(1);
});

test("a scope has one receiver, until that stops; what came meanwhile waits for the next, also over a restart", async () => {
  const t = await open();
  const first = recorder();
  const stop = t.herd.receive({ scope: "shop" }, first);
  const refusal = (call: () => unknown) => {
    try {
      call();
    } catch (error) {
      return error instanceof HerdError ? error.reason : error;
    }
    return "done";
  };
  expect(refusal(() => t.herd.receive({ scope: "shop" }, recorder()))).toBe("receiver_exists");
  expect(refusal(() => t.herd.receive({ scope: " " }, recorder()))).toBe("bad_owner");
  stop();
  stop();
  await t.herd.owner(order("1")).assign({ agent: "echo", task: "A" });
  await t.idle();
  await t.crash();
  const second = recorder();
  t.herd.receive({ scope: "shop" }, second);
  await t.idle();
  expect([first.heard, second.heard]).toEqual([[], ["A"]]);
});

test("one in another process hears as well, and its end frees the place", async () => {
  const { herd, directory } = await openOnDisk();
  const client: Herd = await connected(directory);
  const all = recorder();
  client.receive({ scope: "shop" }, all);
  await client.owners();
  await herd.owner(order("1")).assign({ agent: "echo", task: "A" });
  await until(() => all.heard.length > 0);
  await client.close();
  const next = recorder();
  await until(() => {
    try {
      return herd.receive({ scope: "shop" }, next);
    } catch {
      return undefined;
    }
  });
  await herd.owner(order("2")).assign({ agent: "echo", task: "B" });
  await until(() => next.heard.length > 0);
  expect([all.heard, next.heard]).toEqual([["A"], ["B"]]);
});

test("a receiver of a scope keeps nothing in memory for owners that need nothing any more", async () => {
  const t = await open();
  const { deliveries } = (t.herd as unknown as { engine: { deliveries: { desks: number } } }).engine;
  const before = deliveries.desks;
  const all = recorder();
  const stop = t.herd.receive({ scope: "shop" }, all);
  for (const number of ["1", "2", "3"]) {
    await t.herd.owner(order(number)).assign({ agent: "asks", task: number });
    await t.idle();
    await t.herd.owner(order(number)).reply({ label: "asks", message: "yes" });
    await t.idle();
  }
  expect(all.heard).toHaveLength(6);
  expect(deliveries.desks).toBe(before);
  t.herd.owner(order("4"), all).detach();
  stop();
  await t.idle();
  expect(deliveries.desks).toBe(before);
});
