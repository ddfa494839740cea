import type { Json, Outcome, Usage } from "../../machines/vocabulary.ts";
import { boundedOutcome } from "../deliveries/outcome.ts";
import { recordUnpersisted } from "../deliveries/unpersisted.ts";
import type { Engine } from "../engine.ts";
import { HerdError, messageOf, messageWithCause } from "../errors.ts";
import type { OrderRecord } from "../kernel/records.ts";
import { asksOf, keys, prefixed } from "../store/keys.ts";
import type { Execution } from "./execution.ts";

/** What a function returned, as the end of its assignment. A string is the text; other JSON is data and its text. */
export function outcomeOf(value: unknown, usage: Usage | undefined): Outcome {
  const more = usage && { usage };
  if (value === undefined || value === null) return { status: "completed", text: "", ...more };
  if (typeof value === "string") return boundedOutcome({ status: "completed", text: value, ...more });
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    return failed(
      "worker_error",
      new Error(`The function returned something that is not JSON: ${messageOf(error)}`),
      usage,
    );
  }
  if (text === undefined) {
    return failed("worker_error", new Error(`The function returned a ${typeof value}, which is not JSON`), usage);
  }
  return boundedOutcome({ status: "completed", text, data: JSON.parse(text) as Json, ...more });
}

export function failed(code: string, error: unknown, usage: Usage | undefined): Outcome {
  return { status: "failed", error: { code, message: messageWithCause(error) || code }, ...(usage && { usage }) };
}

/**
 * Stores the end of an assignment. Children that nobody reads any more are let go.
 * @returns true while unresolved children hold it back.
 */
export async function settle(execution: Execution, outcome: Outcome): Promise<boolean> {
  const { engine, treeId, runId } = execution;
  await execution.children.readAll();
  const { unread } = execution.steers;
  if (unread > 0) outcome = { ...outcome, unreadSteers: unread };
  try {
    return await engine.kernel.run(
      treeId,
      (step) => {
        // Closed while its children were read: somebody else has told its end.
        if (step.worker(runId) === undefined) return false;
        step.send(runId, { type: "settled", outcome, at: step.now });
        const worker = step.worker(runId);
        if (worker?.state !== "blocked.onChildren") return false;
        // Somebody below still works and wakes this run when it is done.
        if (worker.context.children.active > 0) step.del(keys.order(runId, "run"));
        return true;
      },
      { operation: "settle" },
    );
  } catch (error) {
    if (!(error instanceof HerdError) || error.reason !== "undone") throw error;
    await recordUnpersisted(engine, { treeId, runId, outcome, cause: error });
    return false;
  }
}

/** Ends a run that ended the process again and again without getting any further. */
export async function settleLost(engine: Engine, order: OrderRecord, restarts: number): Promise<void> {
  const message = `The process ended ${restarts} times in a row while this worker executed, without any progress.`;
  await engine.kernel.run(
    order.tree,
    (step) => {
      const worker = step.worker(order.runId);
      if (worker === undefined) return step.del(keys.order(order.runId, "run"));
      const outcome: Outcome = { status: "failed", error: { code: "worker_lost", message } };
      if (worker.state === "settling.queued") step.send(order.runId, { type: "launch.accepted", at: step.now });
      if (worker.state === "blocked.onBackend") step.send(order.runId, { type: "turn.started", at: step.now });
      step.send(order.runId, { type: "settled", outcome, at: step.now });
    },
    { operation: "settle" },
  );
}

/** How far a run has come: entries that a re-run would not do again. */
export async function progressOf(engine: Engine, { tree, runId }: OrderRecord): Promise<number> {
  const worker = (await engine.kernel.tree(tree)).worker(runId);
  const requestId = worker?.context.assignment?.requestId;
  if (requestId === undefined) return 0;
  const journal = await engine.kernel.store.range(prefixed(keys.journal(requestId, "")));
  const asks = await engine.kernel.store.range(asksOf(requestId));
  return journal.length + asks.length;
}

/** Nothing fails: the run waits for a program that fits. Its order stands, so the next opening tries again. */
export async function hold(execution: Execution, diagnostic: string): Promise<void> {
  const { engine, treeId, runId, agent } = execution;
  await engine.kernel.run(
    treeId,
    (step) => {
      const worker = step.worker(runId);
      if (worker && worker.context.diagnostic !== diagnostic) step.send(runId, { type: "hold", diagnostic });
    },
    { operation: "hold" },
  );
  const { label = "", requestId = "" } = execution.request ?? {};
  engine.events.emit("held", { runId, label, agent, requestId, diagnostic });
  execution.stop("parked", diagnostic);
}
