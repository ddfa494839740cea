/** What the conformance tests share: agents, a way to hold something back, and what a store holds. */
import { type AgentDefinition, HerdError } from "pi-herd";
import { type TestHerd } from "pi-herd/testing";

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
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
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
