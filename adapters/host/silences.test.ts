import { expect, onTestFinished, test } from "vitest";
import type { ControlClient } from "../../runtime/index.ts";
import { createTestHerd } from "../../runtime/testing/index.ts";
import { Silences, type Owners } from "./silences.ts";

const MINUTES = 60_000;
const log = { info: () => undefined, warn: () => undefined } as never;

/** A herd with a worker of its owner at work, and a host that looks after its silences as the clock goes. */
async function silentWorker() {
  const t = await createTestHerd({ agents: { scout: { description: "looks", run: async (task) => task } } });
  const script = t.scripted("scout");
  await t.owner.assign({ agent: "scout", task: "look", label: "one" });
  const run = await script.run("one");
  await run.turn();
  const heard: unknown[] = [];
  const asked: string[] = [];
  const client = { call: (method: string, says: object) => answer(method, says) } as ControlClient;
  let answer = async (method: string, says: object): Promise<unknown> => heard.push([method, says]);
  const owners: Owners = {
    root: (session) => (asked.push(session), client),
    parent: () => {
      throw new Error("it has no parent");
    },
  };
  const silences = new Silences(t.herd, owners, log);
  onTestFinished(() => silences.close());
  const pass = async (by: string) => {
    await t.clock.advance(by);
    silences.look(t.clock.now().getTime());
    await t.idle();
  };
  const answers = (next: typeof answer) => void (answer = next);
  return { t, run, heard, asked, silences, pass, answers };
}

test("a silence is told to the owner once, with what the owner can act by", async () => {
  const { run, heard, asked, pass } = await silentWorker();
  await pass("11m");
  for (let minute = 0; minute < 5; minute++) await pass("1m");
  expect(heard).toEqual([
    ["worker/silent", expect.objectContaining({ label: "one", agent: "scout", inactiveMs: 11 * MINUTES })],
  ]);
  expect(asked).toEqual(["tester"]);
  await run.tool("read");
  await pass("11m");
  expect(heard).toHaveLength(2);
});

test("what the owner did not hear is told thirty seconds later, and not any more once the silence is broken", async () => {
  const { run, heard, pass, answers } = await silentWorker();
  let tries = 0;
  answers(async () => {
    tries++;
    throw new Error("nobody listens");
  });
  await pass("11m");
  expect(tries).toBe(1);
  await pass("10s");
  expect(tries).toBe(1);
  await pass("30s");
  expect(tries).toBe(2);
  answers(async (...said) => heard.push(said));
  await pass("30s");
  expect(heard).toMatchObject([["worker/silent", { inactiveMs: 11 * MINUTES + 70_000 }]]);

  answers(() => Promise.reject(new Error("nobody listens")));
  await run.tool("read");
  await pass("11m");
  answers(async (...said) => heard.push(said));
  await run.settle("done");
  await pass("1m");
  expect(heard).toHaveLength(1);
});

test("one that waits to be heard is not told a second time meanwhile, and nothing is told once the host leaves", async () => {
  const { heard, pass, answers, silences, run } = await silentWorker();
  const { promise, resolve } = Promise.withResolvers<void>();
  let tries = 0;
  answers(() => (tries++, promise));
  await pass("11m");
  await pass("1m");
  expect(tries).toBe(1);
  resolve();
  await pass("1m");
  expect(tries).toBe(1);

  answers(async (...said) => heard.push(said));
  await run.tool("read");
  silences.close();
  await pass("11m");
  expect(heard).toEqual([]);
});
