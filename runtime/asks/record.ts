import type { WorkerFact } from "../../machines/vocabulary.ts";
import type { Engine, Teller } from "../engine.ts";
import type { AskRecord, DeliveryRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { keys } from "../store/keys.ts";
import { pauseDeadline, resumeDeadline } from "./deadline.ts";

type Fact<Type extends WorkerFact["type"]> = Extract<WorkerFact, { type: Type }>;

/** A question becomes a record and a delivery to its direct owner. */
export function recordAsked(engine: Engine, fact: Fact<"ask.opened">, worker: Teller, step: Step): void {
  const { askId, requestId, question, files, at, journalKey } = fact;
  const owner = engine.ownerKey(step.tree, worker.path);
  const deliveryId = engine.newNumber();
  const ask: AskRecord = {
    askId,
    requestId,
    runId: worker.context.runId,
    question,
    files,
    askedAt: at,
    owner,
    deliveryId,
    ...(journalKey !== undefined && { journalKey }),
  };
  const delivery: DeliveryRecord = {
    deliveryId,
    kind: "question",
    requestId,
    runId: ask.runId,
    tree: step.tree.id,
    owner,
    label: worker.context.label,
    askId,
    epoch: engine.kernel.epoch,
  };
  step.put(keys.ask(askId), ask);
  step.put(keys.delivery(owner, deliveryId), delivery);
  engine.backends.deliver(step, delivery);
  if (worker.context.assignment?.deadline) pauseDeadline(step, requestId);
  engine.wakeParent(step, worker.path);
  step.after(() => {
    const request = engine.request(requestId);
    if (request) engine.deliveries.asked(request, ask, delivery);
    engine.sessions.mark(requestId);
  });
}

/** The reply that won: it stands in the question's record, and the delivery is over. */
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
  step.del(keys.delivery(ask.owner, ask.deliveryId));
  engine.backends.withdraw(step, ask);
  if (worker.context.assignment?.deadline) resumeDeadline(step, requestId);
  step.after(() => {
    engine.functions.answered(worker.context.runId, answered);
    engine.deliveries.withdrawn(ask);
    engine.sessions.mark(requestId);
  });
}

/** A question is given up with its worker: a late reply learns why. */
export function recordAbandoned(engine: Engine, fact: Fact<"ask.abandoned">, step: Step): void {
  const ask = step.read<AskRecord>(keys.ask(fact.askId));
  if (ask === undefined) return;
  step.put(keys.ask(fact.askId), { ...ask, abandoned: fact.reason });
  step.del(keys.delivery(ask.owner, ask.deliveryId));
  engine.backends.withdraw(step, ask);
  step.after(() => engine.deliveries.withdrawn(ask));
}
