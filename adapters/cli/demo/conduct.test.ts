import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createHerd, type AgentDefinition, type Question, type Result, type Store } from "../../../runtime/index.ts";
import { faultyStore, FaultPlan, memoryStore } from "../../../runtime/testing/index.ts";
import { EXIT, failureOf } from "../errors.ts";
import type { Audience } from "./audience.ts";
import { conduct, type CensusHerd } from "./conduct.ts";

/** Writes down what it is told, and answers what it was given. */
class Listener implements Audience {
  readonly told: Result[] = [];
  readonly began: string[] = [];
  readonly asked: Question[] = [];
  readonly #answer: string | undefined;

  constructor(answer?: string) {
    this.#answer = answer;
  }

  watch(): void {}

  begin(...[, requestId, how]: Parameters<Audience["begin"]>): void {
    this.began.push(`${how} ${requestId}`);
  }

  async ask(question: Question): Promise<string | undefined> {
    this.asked.push(question);
    return this.#answer;
  }

  async tell(result: Result): Promise<void> {
    this.told.push(result);
  }

  waiting(): string {
    return "";
  }

  close(): void {}
}

const asking: AgentDefinition["run"] = (_task, worker) => worker.askOwner({ question: "Which?" });

async function open(store: Store, run = asking, more: { reopen?: { attempts: number; pauseMs: number } } = {}) {
  const agents = {
    census: { description: "under test", run },
    counter: { description: "not used", run: async () => "" },
  };
  const herd = await createHerd({ store, agents, ...more });
  return herd as CensusHerd;
}

describe("conducting a census", () => {
  test("leaves the question open when nobody answers, and finds it again in the next process", async () => {
    const store = memoryStore();
    const first = new Listener();
    const herd = await open(store);
    const question = await conduct(herd, "/it", first);
    await herd.close();
    const second = new Listener("dist");
    const next = await open(store);
    const result = await conduct(next, "/it", second);
    await next.close();
    expect(first.told).toEqual([]);
    expect(second.asked.map(({ askId }) => askId)).toEqual(first.asked.map(({ askId }) => askId));
    expect(second.began).toEqual([`goes on ${question.requestId}`]);
    expect(second.told).toEqual([result]);
    expect(result).toMatchObject({ requestId: question.requestId, status: "completed", text: "dist" });
  });

  test("shows a result that was stored and not shown, instead of beginning anew", async () => {
    const store = memoryStore();
    const lost = new Listener("dist");
    const reached = Promise.withResolvers<Result>();
    lost.tell = (result) => {
      reached.resolve(result);
      return new Promise(() => undefined);
    };
    const herd = await open(store);
    void conduct(herd, "/it", lost).catch(() => undefined);
    const { requestId } = await reached.promise;
    await herd.close();
    const listener = new Listener("none");
    const next = await open(store);
    const result = await conduct(next, "/it", listener);
    await next.close();
    expect(result.requestId).toBe(requestId);
    expect(listener.told).toHaveLength(1);
    expect(listener.began).toEqual([]);
  });

  test("begins anew after the last one was shown", async () => {
    const store = memoryStore();
    const listener = new Listener("dist");
    for (let run = 0; run < 3; run++) {
      const herd = await open(store);
      await conduct(herd, "/it", listener);
      await herd.close();
    }
    expect(listener.began.map((line) => line.split(" ")[0])).toEqual(["begins", "begins", "begins"]);
    expect(new Set(listener.told.map(({ requestId }) => requestId)).size).toBe(3);
  });

  test("keeps folders apart, also those with long paths", async () => {
    const deep = `/${"a".repeat(600)}`;
    const herd = await open(memoryStore());
    const ids = new Set<string>();
    for (const folder of ["/one", "/two", `${deep}/one`, `${deep}/two`]) {
      ids.add((await conduct(herd, folder, new Listener())).requestId);
    }
    await herd.close();
    expect(ids.size).toBe(4);
  });

  test("tells a failure and a closed assignment as well", async () => {
    const failing = new Listener();
    const herd = await open(memoryStore(), () => Promise.reject(new Error("no luck")));
    await conduct(herd, "/it", failing);
    await herd.close();
    expect(failing.told).toMatchObject([{ status: "failed", error: { message: "no luck" } }]);

    const closed = new Listener();
    const started = Promise.withResolvers<void>();
    const other = await open(memoryStore(), () => {
      started.resolve();
      return new Promise(() => undefined);
    });
    const end = conduct(other, "/it", closed);
    await started.promise;
    while (closed.began.length === 0) await nextTurn();
    await other.owner("demo:/it").close({ label: "census" });
    await end;
    await other.close({ graceMs: 0 });
    expect(closed.told).toMatchObject([{ status: "closed" }]);
  });

  test("refuses when the worker cannot go on in this program", async () => {
    const store = memoryStore();
    const herd = await open(store);
    await conduct(herd, "/it", new Listener());
    await herd.close();
    const changed = await open(store, (_task, worker) => worker.askOwner({ question: "Another?" }));
    const end = conduct(changed, "/it", new Listener("dist"));
    await expect(end).rejects.toThrow(/The worker "census" cannot go on\. The journal has the question "Which\?"/);
    await changed.close();
  });

  test("ends when the store takes no more of what its worker does", async () => {
    const plan = new FaultPlan();
    const run: AgentDefinition["run"] = async (_task, worker) => {
      plan.failBatches(1_000);
      return worker.step("work", () => "done");
    };
    const herd = await open(faultyStore(memoryStore(), plan), run, { reopen: { attempts: 1, pauseMs: 0 } });
    const end = conduct(herd, "/it", new Listener());
    const error = await end.catch((error: unknown) => error);
    await herd.close().catch(() => undefined);
    expect(failureOf(error)).toMatchObject({
      exitCode: EXIT.fenced,
      message: expect.stringContaining("make the disk writable again"),
    });
  });

  test("ends when the store takes no reply", async () => {
    const plan = new FaultPlan();
    const herd = await open(faultyStore(memoryStore(), plan), asking, { reopen: { attempts: 1, pauseMs: 0 } });
    const listener = new Listener("dist");
    const ask = listener.ask.bind(listener);
    listener.ask = (question) => {
      plan.failBatches(1_000);
      return ask(question);
    };
    const error = await conduct(herd, "/it", listener).catch((error: unknown) => error);
    await herd.close().catch(() => undefined);
    expect(failureOf(error).exitCode).toBe(EXIT.fenced);
  });
});
