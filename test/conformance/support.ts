/** What the conformance tests share: agents, a way to hold something back, and what a store holds. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type AgentDefinition, HerdError } from "pi-herd";
import { createTestHerd, type TestHerd, type TestHerdOptions } from "pi-herd/testing";
import type { HerdInstance } from "../../runtime/herd-instance.ts";
import { levelStore } from "../../runtime/store/level.ts";
import type { TestClock } from "../../runtime/testing/clock.ts";

/** Just does its task. */
export const does: AgentDefinition = { description: "does its task", run: async (task) => `did ${task}` };

/** Asks one question before it ends. */
export const asks: AgentDefinition = {
  description: "asks before it ends",
  run: async (task, worker) => `${task}: ${await worker.askOwner({ question: `May I do ${task}?` })}`,
};

/** Something that a test lets go when it wants to. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** Turns of the event loop until something is so. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
}

/** What a refused call was refused with. */
export async function refusalOf(call: Promise<unknown>): Promise<HerdError> {
  const answer = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(answer instanceof HerdError)) throw new Error("it was not refused", { cause: answer });
  return answer;
}

/** Every row that a command could change, as text. */
export async function rowsOf(t: TestHerd): Promise<string> {
  await t.idle();
  const rows = await t.store.range({ gte: "a", lt: "~" });
  return rows
    .filter(([key]) => !/^[ms]!/.test(key))
    .map(([key, value]) => `${key} ${value}`)
    .join("\n");
}

/** The visible workers, `label state` each. */
export async function statesOf(t: TestHerd): Promise<string[]> {
  const { workers } = await t.owner.list();
  return workers.map(({ label, state }) => `${label} ${state}`);
}

/** The rows of some kinds, by the letters that their keys begin with: `o` orders, `w` launches, `d` deliveries. */
export async function keysOf(t: TestHerd, kinds: string): Promise<string[]> {
  const rows = (await rowsOf(t)).split("\n").filter((row) => row !== "");
  return rows.map((row) => row.slice(0, row.indexOf(" "))).filter((key) => kinds.includes(key.charAt(0)));
}

/**
 * Nothing of a worker is left: no row but what is told of finished work, no actor, nobody who waits for time to pass.
 * @param except letters of kinds of rows that a test expects.
 */
export async function expectNothingLeft(t: TestHerd, except = ""): Promise<void> {
  await t.idle();
  const { clock, kernel, closings } = (t.herd as HerdInstance).engine;
  expect((await t.owner.list()).workers).toEqual([]);
  expect((await t.owner.list()).cleanupErrors).toBeUndefined();
  expect(
    (await keysOf(t, "awolxdi")).filter((key) => !/^a![^!]*!$/.test(key) && !except.includes(key.charAt(0))),
  ).toEqual([]);
  for (const { actors, paths, resting } of kernel.trees()) {
    expect([actors.size, paths.size, resting.size]).toEqual([1, 0, 0]);
  }
  expect((clock as TestClock).asleep).toBe(0);
  expect(closings.size).toBe(0);
}

/** Nobody waits for time to pass. */
export function pausesOf(t: TestHerd): number {
  return ((t.herd as HerdInstance).engine.clock as TestClock).asleep;
}

/** A test herd on LevelDB, in a folder of its own; both go with the test. */
export async function herdOnDisk(options: TestHerdOptions): Promise<TestHerd> {
  const directory = await mkdtemp(join(tmpdir(), "herd-conformance-"));
  const t = await createTestHerd({ store: levelStore(directory), ...options });
  onTestFinished(async () => {
    await t.close();
    await rm(directory, { recursive: true, force: true });
  });
  return t;
}
