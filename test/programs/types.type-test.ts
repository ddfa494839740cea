/** What must not compile. The type check of the whole project reads this file; nothing runs it. */
import { createHerd, HerdError, type Question, type Worker } from "pi-herd";
import { createTestHerd } from "pi-herd/testing";

const agents = {
  greeter: { description: "Greets", run: async (task: string, _worker: Worker) => task },
  counter: { description: "Counts", run: async () => ({ files: 3 }) },
};

export async function misuse(question: Question, worker: Worker): Promise<void> {
  const herd = await createHerd({ agents });
  const owner = herd.owner("me");
  await owner.assign({ agent: "greeter", task: "x" });
  // @ts-expect-error an agent that is not defined
  await owner.assign({ agent: "greter", task: "x" });
  // @ts-expect-error an assignment without a task
  await owner.assign({ agent: "greeter" });
  // @ts-expect-error metadata is JSON
  await owner.assign({ agent: "greeter", task: "x", metadata: { when: new Date() } });
  // @ts-expect-error a reply names the question or the worker
  await owner.reply({ message: "x" });
  // @ts-expect-error an answer is JSON
  await question.reply(() => "x");
  // @ts-expect-error a question has a text
  await worker.askOwner({ name: "x" });
  // @ts-expect-error a step returns JSON
  await worker.step("x", () => new Map());
  // @ts-expect-error an event that does not exist
  herd.on("questions", () => undefined);
  // What definition files define is not known to the compiler.
  const withFiles = await createHerd({ agents, definitions: ["~/.pi/agent/agents"] });
  await withFiles.owner("me").assign({ agent: "reviewer", task: "x" });
  const withFunction = await createHerd({ agents, definitions: () => [{ path: "agents", layer: "project" }] });
  await withFunction.owner("me").assign({ agent: "reviewer", task: "x" });
  // @ts-expect-error a source of no layer
  await createHerd({ agents, definitions: () => [{ path: "agents" }] });
  // @ts-expect-error an assignment without a task, of whichever agent
  await withFiles.owner("me").assign({ agent: "reviewer" });
  // @ts-expect-error an option that does not exist
  await createHerd({ agents, tickMS: 5 });
  // @ts-expect-error an agent without a function
  await createHerd({ agents: { it: { description: "x" } } });
  // @ts-expect-error a function that returns something else than JSON
  await createHerd({ agents: { it: { description: "x", run: async () => new Set() } } });
  // @ts-expect-error a status that a herd never has
  if (herd.status === "ready") await herd.close();
  // @ts-expect-error a category outside the nine
  if (new HerdError({} as never).category === "oops") return;
  const t = await createTestHerd({ agents });
  // @ts-expect-error the clock takes durations, not dates
  await t.clock.advance(new Date());
  const reason: "closed" | "deadline_exceeded" | "herd_closing" | "parked" | "fenced" = worker.signal.reason.code;
  void reason;
}
