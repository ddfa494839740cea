import { afterEach, describe, expect, test } from "vitest";
import { StoreLockedError, type Operation, type Range, type Row, type Store } from "./store.ts";

/** One place to keep rows, made for one test. */
export interface StoreUnderTest {
  /** A store that has no rows and is not open. */
  store: Store;
  /** Another store over the same rows, not open; where the rows belong to the object, that object. */
  again(): Promise<Store>;
  /** Removes what the test left; both stores may still be open. */
  dispose(): Promise<void>;
}

const ALL: Range = { gte: "", lt: "\u{10FFFF}" };
const SYNC = { sync: true };
const NOT_OPEN = expect.stringContaining("not open");
const LARGE = 5 * 1024 * 1024;

/**
 * Registers, with vitest, one test for every promise of the store port. Run it for an implementation of your own:
 *
 * @example
 * storeContract("my store", async () => ({ store: myStore(), again: async () => myStore(), dispose: async () => {} }));
 *
 * @param name What is tested, as it shall appear in the report.
 * @param factory Makes a fresh, empty place for each test.
 */
export function storeContract(name: string, factory: () => Promise<StoreUnderTest>): void {
  describe(`store contract: ${name}`, () => {
    let place: StoreUnderTest | undefined;

    afterEach(async () => {
      await place?.dispose();
      place = undefined;
    });

    const begin = async (): Promise<StoreUnderTest> => (place = await factory());
    const opened = async (...rows: readonly Row[]): Promise<Store> => {
      const { store } = await begin();
      await store.open();
      await store.batch(rows.map(put), SYNC);
      return store;
    };

    describe("reading and writing", () => {
      test("a new store has no rows", async () => {
        const store = await opened();
        expect(store.get("a")).toBeUndefined();
        expect(await store.range(ALL)).toEqual([]);
      });

      test.for([{ sync: true }, { sync: false }])(
        "rows of a batch can be read once it resolves: %o",
        async (options) => {
          const store = await opened();
          await store.batch([put(["a", "1"]), put(["b", "2"])], options);
          expect(store.get("a")).toBe("1");
          expect(store.get("b")).toBe("2");
          expect(await store.range(ALL)).toEqual(rows("a1 b2"));
        },
      );

      test("a later value replaces the earlier one", async () => {
        const store = await opened(["a", "1"]);
        await store.batch([put(["a", "2"])], SYNC);
        expect(store.get("a")).toBe("2");
        expect(await store.range(ALL)).toEqual(rows("a2"));
      });

      test("a deleted row is gone, and deleting what is not there is no error", async () => {
        const store = await opened(["a", "1"], ["b", "2"]);
        await store.batch([del("a"), del("never")], SYNC);
        expect(store.get("a")).toBeUndefined();
        expect(await store.range(ALL)).toEqual(rows("b2"));
      });

      test("of several operations on one key in a batch the last counts", async () => {
        const store = await opened(["c", "0"]);
        const twice = [put(["a", "1"]), put(["a", "2"])];
        const gone = [put(["b", "1"]), del("b")];
        const back = [del("c"), put(["c", "3"])];
        await store.batch([...twice, ...gone, ...back], SYNC);
        expect(await store.range(ALL)).toEqual(rows("a2 c3"));
        expect(store.get("b")).toBeUndefined();
      });

      test("an empty batch is accepted and changes nothing", async () => {
        const store = await opened(["a", "1"]);
        await store.batch([], SYNC);
        expect(await store.range(ALL)).toEqual(rows("a1"));
      });

      test.for([
        ["empty", ""],
        ["several lines and quotes", '{"a":"\\n"}\r\n\t"'],
        ["a zero character", "a\u0000b"],
        ["beyond ASCII", "Grüße, 你好, 🐑"],
        ["5 MB", "é".repeat(LARGE / 2)],
      ] as const)("a value comes back as it was written: %s", async ([, value]) => {
        const store = await opened();
        await store.batch([put(["a", value])], SYNC);
        expect(store.get("a") === value).toBe(true);
        expect((await store.range(ALL))[0]?.[1] === value).toBe(true);
      });

      test("a key is found by all of its characters, whatever their length in bytes", async () => {
        const store = await opened();
        const keys = Array.from({ length: 40 }, (_, n) => `${"é".repeat(7 * n)}€`);
        await store.batch(
          keys.flatMap((key) => [put([key, key]), put([key.slice(0, -1) || "-", "shorter"])]),
          SYNC,
        );
        expect(keys.filter((key) => store.get(key) !== key)).toEqual([]);
      });

      test("a batch of 10,000 operations is written whole", async () => {
        const store = await opened();
        const many = numbered(10_000);
        await store.batch(many.map(put), SYNC);
        expect(await store.range(ALL)).toEqual(many);
      });
    });

    describe("all or nothing", () => {
      const unwritable = { type: "put", key: "b", value: undefined } as unknown as Operation;

      test("a batch with one operation that cannot be written leaves nothing of itself", async () => {
        const store = await opened(["a", "1"]);
        await expect(store.batch([put(["a", "2"]), unwritable, put(["c", "3"])], SYNC)).rejects.toBeInstanceOf(Error);
        expect(store.get("a")).toBe("1");
        expect(await store.range(ALL)).toEqual(rows("a1"));
        await store.reopen();
        expect(await store.range(ALL)).toEqual(rows("a1"));
      });

      test("after a failed batch no batch is taken until the store was opened again", async () => {
        const store = await opened(["a", "1"]);
        await expect(store.batch([unwritable], SYNC)).rejects.toBeInstanceOf(Error);
        await expect(store.batch([put(["b", "2"])], SYNC)).rejects.toThrow(/reopen/);
        expect(store.get("a")).toBe("1");
        await store.reopen();
        await store.batch([put(["b", "3"])], SYNC);
        expect(await store.range(ALL)).toEqual(rows("a1 b3"));
      });

      test("get never sees one row of a batch without the others", async () => {
        const store = await opened(["a", "1"], ["b", "1"]);
        const write = underWay(store.batch([put(["a", "2"]), put(["b", "2"])], SYNC));
        const seen = new Set<string>();
        // `a` is read first: once it is new, `b` must be.
        for (; write.pending; await turn()) seen.add(`${store.get("a")}${store.get("b")}`);
        await write.promise;
        expect([...seen].filter((pair) => pair === "21")).toEqual([]);
        expect(`${store.get("a")}${store.get("b")}`).toBe("22");
      });

      test("a range shows the rows as they were when it was asked for", async () => {
        const before = numbered(3_000);
        const store = await opened(...before);
        const reading = store.range(ALL);
        await store.batch([del(before[2_999]?.[0] as string), put(["zzz", "later"])], SYNC);
        expect(await reading).toEqual(before);
      });

      test("a batch under way when the store is closed is there whole when it was acknowledged", async () => {
        const store = await opened();
        const many = numbered(500);
        const write = store.batch(many.map(put), SYNC).then(
          () => true,
          () => false,
        );
        await store.close();
        const acknowledged = await write;
        await store.open();
        const found = await store.range(ALL);
        expect(found.length === 0 && !acknowledged ? many : found).toEqual(many);
      });
    });

    describe("order", () => {
      const byBytes = ["a", "a\u0000", "aa", "b", "z", "~", "\u007F", "é", "你", "\uE000", "\uFFFD", "𐀀", "🐑", "🐑a"];

      test("keys come in the order of their UTF-8 bytes, those beyond U+FFFF last", async () => {
        const store = await opened(...byBytes.toReversed().map((key): Row => [key, "-"]));
        expect((await store.range(ALL)).map(([key]) => key)).toEqual(byBytes);
        expect(byBytes).toEqual(byBytes.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
      });

      test("bounds cut in that order", async () => {
        const store = await opened(...byBytes.map((key): Row => [key, "-"]));
        for (const [at, gte] of byBytes.entries()) {
          for (const [to, lt] of byBytes.entries()) {
            const found = await store.range({ gte, lt });
            expect(found.map(([key]) => key)).toEqual(byBytes.slice(at, to));
          }
        }
      });

      test("the lower bound is included, the upper is not, and neither needs to exist", async () => {
        const store = await opened(...rows("b1 c2 d3"));
        expect(await store.range({ gte: "b", lt: "d" })).toEqual(rows("b1 c2"));
        expect(await store.range({ gte: "a", lt: "cc" })).toEqual(rows("b1 c2"));
      });

      test("a range that is empty or upside down has no rows", async () => {
        const store = await opened(...rows("a1 b2"));
        for (const reverse of [false, true]) {
          expect(await store.range({ gte: "a", lt: "a", reverse })).toEqual([]);
          expect(await store.range({ gte: "b", lt: "a", reverse })).toEqual([]);
          expect(await store.range({ gte: "c", lt: "d", reverse })).toEqual([]);
        }
      });

      test("limit bounds the number of rows: none for 0, all when there are fewer", async () => {
        const store = await opened(...rows("a1 b2 c3"));
        expect(await store.range({ ...ALL, limit: 0 })).toEqual([]);
        expect(await store.range({ ...ALL, limit: 2 })).toEqual(rows("a1 b2"));
        expect(await store.range({ ...ALL, limit: 9 })).toEqual(rows("a1 b2 c3"));
      });

      test("reverse gives the last row first; with a limit, the last rows", async () => {
        const store = await opened(...rows("a1 b2 c3 d4"));
        expect(await store.range({ gte: "a", lt: "d", reverse: true })).toEqual(rows("c3 b2 a1"));
        expect(await store.range({ ...ALL, reverse: true, limit: 2 })).toEqual(rows("d4 c3"));
      });

      test("a long range comes whole, in order, in either direction", async () => {
        const many = numbered(10_000);
        const store = await opened(...many);
        expect(await store.range({ ...ALL, reverse: true })).toEqual(many.toReversed());
        const middle = { gte: many[2_500]?.[0] as string, lt: many[7_500]?.[0] as string };
        expect(await store.range(middle)).toEqual(many.slice(2_500, 7_500));
        expect(await store.range({ ...middle, limit: 3_000 })).toEqual(many.slice(2_500, 5_500));
      });
    });

    describe("opening and closing", () => {
      test("a store that is not open yet refuses to read and write", async () => {
        const { store } = await begin();
        expect(await refusals(store)).toEqual([NOT_OPEN, NOT_OPEN, NOT_OPEN]);
      });

      test("a closed store refuses to read and write", async () => {
        const store = await opened(["a", "1"]);
        await store.close();
        expect(await refusals(store)).toEqual([NOT_OPEN, NOT_OPEN, NOT_OPEN]);
      });

      test("closing twice, at once or before opening is no error", async () => {
        const { store } = await begin();
        await store.close();
        await store.open();
        await Promise.all([store.close(), store.close()]);
        await store.close();
        expect(await refusals(store)).toEqual([NOT_OPEN, NOT_OPEN, NOT_OPEN]);
      });

      test("rows survive closing and opening", async () => {
        const store = await opened(...rows("a1 b2"));
        await store.batch([del("a")], SYNC);
        await store.close();
        await store.open();
        expect(store.get("a")).toBeUndefined();
        expect(await store.range(ALL)).toEqual(rows("b2"));
      });

      test("rows of a closed store are there for the next one", async () => {
        const store = await opened(...rows("a1 b2"));
        await store.close();
        const next = await place?.again();
        await next?.open();
        expect(await next?.range(ALL)).toEqual(rows("a1 b2"));
        await next?.close();
      });

      test("reopening shows the same rows, and the store goes on", async () => {
        const store = await opened(...rows("a1 b2"));
        await store.reopen();
        expect(store.get("a")).toBe("1");
        await store.batch([put(["c", "3"])], SYNC);
        expect(await store.range(ALL)).toEqual(rows("a1 b2 c3"));
      });

      test("reopening a closed store opens it", async () => {
        const store = await opened(["a", "1"]);
        await store.close();
        await store.reopen();
        expect(store.get("a")).toBe("1");
      });

      test("an open store cannot be opened again, and stays as it was", async () => {
        const store = await opened(["a", "1"]);
        await expect(store.open()).rejects.toBeInstanceOf(StoreLockedError);
        await store.batch([put(["b", "2"])], SYNC);
        expect(await store.range(ALL)).toEqual(rows("a1 b2"));
      });

      test("of two openings at once one is refused", async () => {
        const { store, again } = await begin();
        const other = await again();
        const outcomes = await Promise.allSettled([store.open(), other.open()]);
        const refused = outcomes.filter((outcome) => outcome.status === "rejected");
        expect(refused.map(({ reason }) => reason)).toEqual([expect.any(StoreLockedError)]);
        await store.close();
        await other.close();
      });

      test("the lock is refused while the store is open and free after it was closed", async () => {
        const store = await opened(["a", "1"]);
        const other = (await place?.again()) as Store;
        await expect(other.open()).rejects.toSatisfy(isLockedByThisProcess);
        await store.batch([put(["b", "2"])], SYNC);
        await store.close();
        await other.open();
        expect(await other.range(ALL)).toEqual(rows("a1 b2"));
        await other.close();
      });
    });

    test.for([
      ["of one row", [put(["a", "1"])]],
      ["without a row", []],
    ] as const)("batches one after another never starve the timers: %s", async ([, operations]) => {
      const store = await opened();
      const timer = underWay(new Promise((resolve) => setTimeout(resolve, 1)));
      for (let n = 0; n < 100_000 && timer.pending; n++) await store.batch(operations, { sync: false });
      expect(timer.pending).toBe(false);
    });

    test("the store has a name for messages", async () => {
      const { store } = await begin();
      expect(store.kind).toMatch(/\w/);
    });
  });
}

/** What a store says when it is asked to read and to write; empty where it did. */
async function refusals(store: Store): Promise<string[]> {
  const attempts = [async () => store.get("a"), () => store.range(ALL), () => store.batch([put(["a", "1"])], SYNC)];
  const outcomes = await Promise.allSettled(attempts.map((attempt) => attempt()));
  return outcomes.map((outcome) => (outcome.status === "rejected" ? String(outcome.reason) : ""));
}

/** A promise that can be asked whether it is still pending. */
function underWay<T>(promise: Promise<T>): { promise: Promise<T>; pending: boolean } {
  const state = { promise, pending: true };
  const settle = (): void => {
    state.pending = false;
  };
  promise.then(settle, settle);
  return state;
}

/** The holder may be unknown; but when it is named, it must be the one. */
function isLockedByThisProcess(error: unknown): boolean {
  return error instanceof StoreLockedError && (error.holder?.pid ?? process.pid) === process.pid;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function put([key, value]: Row): Operation {
  return { type: "put", key, value };
}

function del(key: string): Operation {
  return { type: "del", key };
}

/** Rows from words: `a1 b2` is `a` with value `1` and `b` with value `2`. */
function rows(words: string): Row[] {
  return words.split(" ").map((word): Row => [word.slice(0, 1), word.slice(1)]);
}

function numbered(count: number): Row[] {
  return Array.from({ length: count }, (_, n): Row => [`n${String(n).padStart(8, "0")}`, `value ${n}`]);
}
