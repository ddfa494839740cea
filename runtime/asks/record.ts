import { openAsks } from "../../machines/projection.ts";
import type { WorkerFact } from "../../machines/vocabulary.ts";
import type { Engine, Teller } from "../engine.ts";
import type { AskRecord, DeliveryRecord, ParkedRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { keys } from "../store/keys.ts";
import { pauseDeadline, resumeDeadline } from "./deadline.ts";
import { endExpiry, startExpiry } from "./expiry-row.ts";

type Fact<Type extends WorkerFact["type"]> = Extract<WorkerFact, { type: Type }>;

/**
 * A question becomes a record. One of `ask_owner` is a delivery to the direct owner, a parked ask one to the owner of the
 * outermost run; what is meant for a person waits in the inbox.
 */
export function recordAsked(engine: Engine, fact: Fact<"ask.opened">, worker: Teller, step: Step): void {
  const { askId, requestId, question, files, at, journalKey, parked } = fact;
  const { ownerKey, owner: treeOwner } = step.tree;
  const owner = parked ? ownerKey : engine.ownerKey(step.tree, worker.path);
  const deliveryId = engine.newNumber();
  const { runId, label, assignment } = worker.context;
  const ask: AskRecord = {
    askId,
    requestId,
    runId,
    question,
    files,
    askedAt: at,
    owner,
    deliveryId,
    ...(journalKey !== undefined && { journalKey }),
    ...(parked && { parked }),
    ...(parked && worker.path.includes("/") && { addressee: treeOwner }),
  };
  step.put(keys.ask(askId), ask);
  if (owner === ownerKey) noteParked(step, ask, worker);
  startExpiry(step, ask);
  const toPerson = parked?.to === "user";
  if (toPerson) {
    engine.caps.user.add(step, askId, { ...(parked.expiresAt !== undefined && { expiresAt: parked.expiresAt }) });
    step.put(keys.inbox(askId), {});
  } else if (countsOn(step, owner)) {
    engine.caps.caller.add(step, askId, { ...(parked?.expiresAt !== undefined && { expiresAt: parked.expiresAt }) });
  }
  const delivery: DeliveryRecord = {
    deliveryId,
    kind: "question",
    requestId,
    runId,
    tree: step.tree.id,
    owner,
    label,
    askId,
    epoch: engine.kernel.epoch,
  };
  if (!toPerson) {
    step.put(keys.delivery(owner, deliveryId), delivery);
    engine.backends.deliver(step, delivery);
  }
  if (assignment?.deadline) pauseDeadline(step, requestId);
  // What is not addressed to the parent is no news for it.
  if (!parked) engine.wakeParent(step, worker.path);
  step.after(() => {
    const request = engine.request(requestId);
    if (request && toPerson) engine.inbox.asked(ask, request);
    else if (request) engine.deliveries.asked(request, ask, delivery);
    engine.sessions.mark(requestId);
  });
}

/** The answer that won: it stands in the question's record, and the delivery is over. */
export function recordAnswered(engine: Engine, fact: Fact<"ask.answered">, worker: Teller, step: Step): void {
  const { askId, requestId, message, files, at, replyId, callerKey } = fact;
  const ask = step.read<AskRecord>(keys.ask(askId));
  if (ask === undefined) throw new Error(`question ${askId} has no record`);
  const answered: AskRecord = {
    ...ask,
    answer: {
      message,
      files,
      at,
      ...(replyId !== undefined && { replyId }),
      ...(callerKey !== undefined && { callerKey }),
    },
  };
  step.put(keys.ask(askId), answered);
  endWaiting(engine, ask, step);
  // Asks of one group: the clock stands still until the last of them is answered.
  const isLast = openAsks(step.worker(worker.context.runId)?.context.ask ?? null).length === 0;
  if (worker.context.assignment?.deadline && isLast) resumeDeadline(step, requestId);
  step.after(() => {
    engine.functions.answered(worker.context.runId, answered);
    engine.deliveries.withdrawn(ask);
    engine.inbox.ended(ask, "answered");
    engine.sessions.mark(requestId);
  });
}

/** Questions are given up with their worker: a late answer learns why. */
export function recordAbandoned(engine: Engine, fact: Fact<"asks.abandoned">, step: Step): void {
  for (const askId of fact.askIds) {
    const ask = step.read<AskRecord>(keys.ask(askId));
    if (ask === undefined) continue;
    step.put(keys.ask(askId), { ...ask, abandoned: fact.reason } satisfies AskRecord);
    endWaiting(engine, ask, step);
    step.after(() => {
      engine.deliveries.withdrawn(ask);
      engine.inbox.ended(ask, fact.reason.code === "expired" ? "expired" : "removed");
    });
  }
}

/** The assignment is over: nothing of it stands in its owner's list but what it came to. */
export function forgetAsked(step: Step, { context }: Teller, requestId: string): void {
  if (context.asks === 0) return;
  const key = keys.parked(step.tree.ownerKey, requestId);
  if (step.read(key) !== undefined) step.del(key);
}

/** Whether what is addressed so counts under the cap of subjects. Source: rules of the engine, "Parked asks". */
export function countsOn({ tree }: Step, owner: string): boolean {
  return tree.owner.scope !== undefined && owner === tree.ownerKey;
}

/** What an open question has besides its record. */
function endWaiting(engine: Engine, ask: AskRecord, step: Step): void {
  endExpiry(step, ask);
  if (ask.parked?.to === "user") {
    engine.caps.user.remove(step, ask.askId);
    step.del(keys.inbox(ask.askId));
    return;
  }
  if (countsOn(step, ask.owner)) engine.caps.caller.remove(step, ask.askId);
  step.del(keys.delivery(ask.owner, ask.deliveryId));
  engine.backends.withdraw(step, ask);
}

/** Adds it to those of its group that are open, or takes the place of what was asked before. */
function noteParked(step: Step, { askId, requestId, owner }: AskRecord, { context }: Teller): void {
  const key = keys.parked(owner, requestId);
  // As the worker was before it asked this.
  const joins = openAsks(context.ask).length > 0;
  const before = joins ? (step.read<ParkedRecord>(key)?.askIds ?? []) : [];
  step.put(key, { askIds: [...before, askId] } satisfies ParkedRecord);
}
