import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { storeContract } from "./contract.ts";
import { FaultPlan, faultyStore, InjectedFault } from "./faulty.ts";
import { memoryStore } from "./memory.ts";
import { StoreLockedError, type Operation, type Row, type Store } from "./store.ts";

const SYNC = { sync: true };
const ALL = { gte: "", lt: "\u{10FFFF}" };

storeContract("memory", async () => {
  const store = memoryStore();
  return { store, again: async () => store, dispose: () => store.close() };
});

storeContract("a faulty store without a fault", async () => {
  const store = faultyStore(memoryStore(), new FaultPlan());
  return { store, again: async () => store, dispose: () => store.close() };
});

describe("the memory store", () => {
  test("has no folder", () => {
    expect(memoryStore().directory).toBeUndefined();
  });

  test("names this process to whoever opens it a second time", async () => {
    const store = memoryStore();
    await store.open();
    const refusal = await store.open().catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreLockedError);
    expect((refusal as StoreLockedError).holder?.pid).toBe(process.pid);
  });

  test("shows a batch only after a turn of the event loop", async () => {
    const store = await openStore(memoryStore());
    const write = store.batch([put("a", "1")], SYNC);
    await Promise.resolve();
    expect(store.get("a")).toBeUndefined();
    await write;
    expect(store.get("a")).toBe("1");
  });

  test("reads a lone surrogate back as U+FFFD, as a disk would", async () => {
    const store = await openStore(memoryStore());
    await store.batch([put("k\uD800", "v\uDC00")], SYNC);
    expect(await store.range(ALL)).toEqual([["k\uFFFD", "v\uFFFD"]]);
    expect(store.get("k\uDBFF")).toBe("v\uFFFD");
  });

  test("reads like a sorted table after any batches", async () => {
    const key = fc.string({ unit: fc.constantFrom("a", "b", "é", "\uFFFD", "𐀀", "🐑"), maxLength: 4 });
    const operation: fc.Arbitrary<Operation> = fc.oneof(
      fc.record({ type: fc.constant("put" as const), key, value: fc.string() }),
      fc.record({ type: fc.constant("del" as const), key }),
    );
    const question = fc.record({ gte: key, lt: key, limit: fc.nat(30), reverse: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(operation)), fc.array(question), async (batches, questions) => {
        const store = await openStore(memoryStore());
        const table = new Map<string, string>();
        for (const batch of batches) {
          await store.batch(batch, SYNC);
          for (const each of batch) {
            if (each.type === "put") table.set(each.key, each.value);
            else table.delete(each.key);
          }
        }
        const sorted: Row[] = [...table].toSorted(([a], [b]) => compare(a, b));
        for (const { gte, lt, limit, reverse } of questions) {
          const within = sorted.filter(([key]) => compare(gte, key) <= 0 && compare(key, lt) < 0);
          const expected = (reverse ? within.toReversed() : within).slice(0, limit);
          expect(await store.range({ gte, lt, limit, reverse })).toEqual(expected);
        }
      }),
    );
  });

  test("keeps its order while 20,000 rows come and go in any order", async () => {
    const store = await openStore(memoryStore());
    const keys = Array.from({ length: 20_000 }, (_, n) => `k${(n * 7_919) % 20_000}`);
    for (let n = 0; n < keys.length; n += 1_000) {
      await store.batch(
        keys.slice(n, n + 1_000).map((key) => put(key, "-")),
        SYNC,
      );
    }
    const gone = new Set(keys.filter((_, n) => n % 3 === 0));
    await store.batch(
      [...gone].map((key) => ({ type: "del", key })),
      SYNC,
    );
    const left = keys.filter((key) => !gone.has(key)).toSorted(compare);
    expect((await store.range(ALL)).map(([key]) => key)).toEqual(left);
    await store.batch(
      left.map((key) => ({ type: "del", key })),
      SYNC,
    );
    expect(await store.range(ALL)).toEqual([]);
  });
});

describe("a faulty store", () => {
  test("fails the chosen batches before their rows land, and counts every batch", async () => {
    const { plan, store } = await faulty();
    plan.failBatches(2, { after: 1 });
    await store.batch([put("a", "1")], SYNC);
    await failsAndReopens(store, put("b", "2"));
    await failsAndReopens(store, put("c", "3"));
    await store.batch([put("d", "4")], SYNC);
    expect(await store.range(ALL)).toEqual([
      ["a", "1"],
      ["d", "4"],
    ]);
    expect(plan.batches).toBe(4);
  });

  test("fails a batch whose rows landed", async () => {
    const { plan, store } = await faulty();
    plan.failBatches(1, { landed: true });
    await failsAndReopens(store, put("a", "1"));
    expect(store.get("a")).toBe("1");
  });

  test("takes no batch after a failed one until it was reopened", async () => {
    const { plan, store } = await faulty();
    plan.failBatches(1);
    await expect(store.batch([put("a", "1")], SYNC)).rejects.toBeInstanceOf(InjectedFault);
    await expect(store.batch([put("a", "1")], SYNC)).rejects.toThrow(/reopen/);
    await store.reopen();
    await store.batch([put("a", "2")], SYNC);
    expect(store.get("a")).toBe("2");
  });

  test("fails to reopen as often as planned, closed meanwhile, and then opens", async () => {
    const { plan, store } = await faulty();
    await store.batch([put("a", "1")], SYNC);
    plan.failReopens(2);
    for (let n = 0; n < 2; n++) {
      await expect(store.reopen()).rejects.toBeInstanceOf(InjectedFault);
      expect(() => store.get("a")).toThrow(/not open/);
    }
    await store.reopen();
    expect(store.get("a")).toBe("1");
  });

  test("holds a batch before its rows land until it is released", async () => {
    const { plan, store } = await faulty();
    const held = plan.holdBatch({ after: 1 });
    await store.batch([put("a", "1")], SYNC);
    const write = store.batch([put("b", "2")], SYNC);
    await held.reached;
    expect(store.get("b")).toBeUndefined();
    held.release();
    await write;
    expect(store.get("b")).toBe("2");
  });

  test("holds a batch whose rows landed, and can fail it after that", async () => {
    const { plan, store } = await faulty();
    const held = plan.holdBatch({ landed: true });
    plan.failBatches(1, { landed: true });
    const write = store.batch([put("a", "1")], SYNC);
    await held.reached;
    expect(store.get("a")).toBe("1");
    held.release();
    await expect(write).rejects.toBeInstanceOf(InjectedFault);
  });

  test("never writes a held batch into a later opening", async () => {
    const { plan, store } = await faulty();
    const held = plan.holdBatch();
    const write = store.batch([put("a", "1")], SYNC);
    await held.reached;
    await store.close();
    await store.open();
    held.release();
    await expect(write).rejects.toThrow(/closed while the batch was held/);
    expect(store.get("a")).toBeUndefined();
    await store.batch([put("b", "2")], SYNC);
    expect(store.get("b")).toBe("2");
  });
});

async function openStore(store: Store): Promise<Store> {
  await store.open();
  return store;
}

async function faulty(): Promise<{ plan: FaultPlan; store: Store }> {
  const plan = new FaultPlan();
  return { plan, store: await openStore(faultyStore(memoryStore(), plan)) };
}

async function failsAndReopens(store: Store, operation: Operation): Promise<void> {
  await expect(store.batch([operation], SYNC)).rejects.toBeInstanceOf(InjectedFault);
  await store.reopen();
}

function put(key: string, value: string): Operation {
  return { type: "put", key, value };
}

function compare(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
