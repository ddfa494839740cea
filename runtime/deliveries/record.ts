import type { WorkerFact } from "../../machines/vocabulary.ts";
import { endDeadline } from "../asks/deadline.ts";
import { countsOn, forgetAsked } from "../asks/record.ts";
import { FUNCTIONS } from "../backend.ts";
import { releaseClaims } from "../claims.ts";
import type { Engine, Teller } from "../engine.ts";
import { withoutUndefined } from "../errors.ts";
import type { DeliveryRecord, OutcomeRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { runIdOf } from "../kernel/tree.ts";
import { keys, prefixed } from "../store/keys.ts";
import { descendants } from "../subagent/target.ts";

type Fact<Type extends WorkerFact["type"]> = Extract<WorkerFact, { type: Type }>;

/** The end of an assignment becomes its outcome and one delivery to its owner. */
export function recordResult(engine: Engine, fact: Fact<"result.stored">, worker: Teller, step: Step): void {
  const { requestId, outcome, at } = fact;
  storeOutcome(engine, { requestId, outcome, endedAt: at }, worker, step, true);
  if (outcome.status !== "failed" || outcome.error.code !== "worker_lost") return;
  const { runId, label } = worker.context;
  step.after(() => engine.events.emit("lost", { runId, label, requestId, message: outcome.error.message }));
}

/**
 * A closed assignment is stored and delivered to nobody, except one whose deadline passed, or whose ask expired or was
 * cancelled: that is a failure that its owner is told.
 */
export function recordClosed(engine: Engine, fact: Fact<"assignment.closed">, worker: Teller, step: Step): void {
  const { requestId, reason, at } = fact;
  const { code, message } = reason;
  const error = { code, message };
  // Of a chain of runs that wait for each other the outermost one's owner is told, and nobody in between.
  const isOutermost = !worker.path.includes("/");
  const fails = code === "deadline_exceeded" || (isOutermost && (code === "expired" || code === "cancelled"));
  const outcome = fails ? { status: "failed" as const, error } : { status: "closed" as const, error };
  // A deliberate cancel is told to whoever receives; without anybody it leaves nothing.
  const told = fails && (code !== "cancelled" || engine.deliveries.receives(step.tree.owner, requestId));
  storeOutcome(engine, { requestId, outcome, endedAt: at }, worker, step, told);
}

function storeOutcome(engine: Engine, ended: OutcomeRecord, worker: Teller, step: Step, deliver: boolean): void {
  const { requestId } = ended;
  const owner = engine.ownerKey(step.tree, worker.path);
  const { paneId, sessionPath } = worker.context.place ?? {};
  // Where it ran, kept with its end: the worker is gone when somebody reads that.
  if (paneId !== undefined || sessionPath !== undefined) {
    ended.details = withoutUndefined({ paneId, piSessionFile: sessionPath }) as Record<string, string>;
  }
  let delivery: DeliveryRecord | undefined;
  if (deliver) {
    delivery = {
      deliveryId: engine.newNumber(),
      kind: "result",
      requestId,
      runId: worker.context.runId,
      tree: step.tree.id,
      owner,
      label: worker.context.label,
      epoch: engine.kernel.epoch,
    };
    ended.deliveryId = delivery.deliveryId;
    if (countsOn(step, owner)) waitOnSubject(engine, step, delivery);
    step.put(keys.delivery(owner, delivery.deliveryId), delivery);
    engine.backends.deliver(step, delivery);
  } else {
    engine.retain(step, requestId);
  }
  step.put(keys.outcome(requestId), ended);
  forgetAsked(step, worker, requestId);
  engine.runs.ended(step, requestId, ended.outcome);
  if (worker.context.assignment?.deadline) endDeadline(step, requestId);
  engine.wakeParent(step, worker.path);
  step.after(() => {
    const request = engine.request(requestId);
    if (request) engine.deliveries.ended(request, ended, delivery);
    engine.sessions.mark(requestId);
  });
}

/** Counts, never refused, and is dropped when nobody takes it for long. */
function waitOnSubject(engine: Engine, step: Step, delivery: DeliveryRecord): void {
  const { requestId, deliveryId, owner, tree } = delivery;
  delivery.dropAt = step.now + engine.options.retention.outcomesMs;
  step.put(keys.due(delivery.dropAt, "outcome", requestId), { tree, owner, deliveryId } satisfies WaitingRow);
  engine.caps.caller.add(step, requestId);
}

/** Where an outcome waits, for the pass that drops it. */
export interface WaitingRow {
  tree: string;
  owner: string;
  deliveryId: string;
}

/**
 * An outcome that nobody took for the whole retention goes, with an event that says so. One that somebody takes meanwhile
 * stays with them.
 * @param key the due row.
 * @returns false while a receiver has it in hand: it stays due.
 */
export async function dropUntaken(
  engine: Engine,
  key: string,
  requestId: string,
  { tree, owner, deliveryId }: WaitingRow,
): Promise<boolean> {
  return engine.kernel.run(
    tree,
    (step) => {
      const delivery = step.read<DeliveryRecord>(keys.delivery(owner, deliveryId));
      // A receiver that has it in hand keeps it: the next pass looks again.
      if (delivery && engine.deliveries.isLeased(delivery)) return false;
      step.del(key);
      if (delivery === undefined) return true;
      acknowledgeIn(engine, step, delivery);
      // Its tree may be gone.
      const { owner: whose } = engine.request(requestId) ?? step.tree;
      const dropped = { label: delivery.label, requestId, why: "untaken", owner: whose };
      step.after(() => engine.events.emit("dropped", dropped));
      return true;
    },
    { operation: "drop" },
  );
}

/**
 * Acknowledges a delivery in memory at once and on disk with the next batch. With its result a one-shot worker's
 * row and label go; a reusable one becomes ready.
 */
export function acknowledge(engine: Engine, delivery: DeliveryRecord): Promise<void> {
  return engine.kernel.run(delivery.tree, (step) => acknowledgeIn(engine, step, delivery), {
    operation: "acknowledge",
    lazy: true,
  });
}

/** The same, as part of another step. Acknowledging twice changes nothing. */
export function acknowledgeIn(engine: Engine, step: Step, delivery: DeliveryRecord): void {
  const { deliveryId, owner, requestId, runId } = delivery;
  const key = keys.delivery(owner, deliveryId);
  if (step.read(key) === undefined) return;
  step.del(key);
  engine.backends.withdraw(step, delivery);
  if (delivery.kind === "result") {
    if (delivery.dropAt !== undefined) {
      step.del(keys.due(delivery.dropAt, "outcome", requestId));
      engine.caps.caller.remove(step, requestId);
    }
    engine.retain(step, requestId);
    const resting = step.tree.resting.get(runId);
    const live = step.worker(runId);
    if (resting?.context.assignment?.requestId === requestId) {
      step.removeResting(runId);
      releaseClaims(step, resting.context);
    } else if (live?.context.assignment?.requestId === requestId) {
      // A lost parent's workers are nobody's but the root's: they stay until that closes them.
      if (!live.context.reusable && !live.context.lost) {
        const reason = { code: "parent_closed" as const, message: "Its parent worker has ended." };
        for (const child of descendants(step.tree, live.path)) {
          step.send(runIdOf(child), { type: "close", reason, at: step.now });
        }
      }
      step.send(runId, { type: "result.acknowledged" });
    }
  }
  engine.deliveries.withdrawn(delivery);
}

/**
 * A worker that had workers of its own reads nothing any more: results that were still on their way to it have no reader.
 * Those of a lost parent wait until the root closes its workers.
 */
export function forgetUnread(engine: Engine, fact: WorkerFact, { context }: Teller, step: Step): void {
  // A function has read what its children left before its own result is stored.
  const ended = fact.type === "result.stored" && context.backend !== FUNCTIONS;
  if (!context.delegates || !(fact.type === "worker.closed" || ended)) return;
  const lost = (step.worker(context.runId)?.context ?? context).lost === true;
  // Due at once and kept as such: should the process end in between, a tick of the next one does it.
  const due = keys.due(step.now, "unread", context.runId);
  const left: Left = { tree: step.tree.id, lost };
  step.put(due, left);
  step.after(() => engine.kernel.inBackground(dropUnreadOf(engine, due, context.runId, left)));
}

/** Where a parent was. `lost`: what its orphans left stays with them; only of those that are gone already nobody takes it back. */
interface Left {
  tree: string;
  lost: boolean;
}

/** Takes back what was on its way to a worker that is gone. @param due the row that says that this is to be done. */
export async function dropUnreadOf(engine: Engine, due: string, runId: string, { tree, lost }: Left): Promise<void> {
  const rows = await engine.kernel.range(prefixed(keys.delivery(runId, "")));
  await engine.kernel.run(
    tree,
    (step) => {
      step.del(due);
      for (const [, text] of rows) {
        const delivery = JSON.parse(text) as DeliveryRecord;
        const { runId: child, kind } = delivery;
        const stays = lost && (step.worker(child) !== undefined || step.tree.resting.has(child));
        if (kind === "result" && !stays) acknowledgeIn(engine, step, delivery);
      }
    },
    { operation: "close" },
  );
}
