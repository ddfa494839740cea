import { z } from "zod";
import { rules, whyNot, type Rule } from "../../machines/eligibility.ts";
import { LABEL_PATTERN, type CloseReason, type WorkerContext } from "../../machines/vocabulary.ts";
import { FUNCTIONS } from "../backend.ts";
import { acknowledgeIn } from "../deliveries/record.ts";
import { releaseClaims } from "../claims.ts";
import type { Engine } from "../engine.ts";
import { HerdError } from "../errors.ts";
import { parseRequest } from "../request.ts";
import { passFailpoint } from "../store/failpoint.ts";
import { keys } from "../store/keys.ts";
import type { DeliveryRecord, OutcomeRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { parentPath, runIdOf } from "../kernel/tree.ts";
import type { CloseReceipt } from "./shapes.ts";
import { descendants, findWorker, isGone } from "./target.ts";
import { placeOf } from "./visited.ts";

const Fields = z.strictObject({ label: z.string().regex(LABEL_PATTERN, `must match ${LABEL_PATTERN.source}`) });

export interface CloseCommand {
  treeId: string;
  /** The path of whoever closes: the root, or a parent worker. */
  path: string;
  workspace: string;
  label: string;
  operation: string;
}

/**
 * Closes a worker and everything below it, deepest first. A question it asked is given up, its assignment ends as
 * `closed`; a result that is already stored stays on its way. A worker in a process is closed only with proof: of what
 * runs before it is told to stop, and of its end after.
 * @throws HerdError `target_not_found`, `worker_busy` while a launch or another close is under way, or
 * `internal_failure` when a process is not proven gone. What was closed before that stays closed, the rest goes on.
 */
export async function close(engine: Engine, given: CloseCommand): Promise<CloseReceipt> {
  const { label, operation } = given;
  const place = placeOf(engine, given, label, operation);
  const command: CloseCommand = { ...given, ...(place instanceof Promise ? await place : place) };
  const { treeId } = command;
  const { runId, order } = await engine.kernel.run(treeId, (step) => begin(engine, step, command), {
    operation,
    refusable: command.path === "",
  });
  if (order.length > 0) {
    try {
      for (const path of order) await engine.whileOpen(closeProven(engine, command, path, runId));
    } finally {
      engine.closings.delete(runId);
    }
  }
  await engine.whileOpen(engine.gone(treeId, runId));
  const cleanupError = engine.backends.stops.errorOf(runId);
  return { label, ...(cleanupError !== undefined && { cleanupError }) };
}

/** What a close may say, and nothing else. @throws HerdError `invalid_request` naming every offending field. */
export function closeFields(request: unknown): Pick<CloseCommand, "label"> {
  return parseRequest("close", Fields, request);
}

/** Closes at once what is all functions; else says in which order processes have to be proven gone. */
function begin(engine: Engine, step: Step, command: CloseCommand): { runId: string; order: string[] } {
  const { label, operation } = command;
  const target = findWorker(step.tree, command, label, operation, { orphans: command.path === "" });
  const { runId } = target.context;
  const rule = engine.closings.has(runId) ? rules.close.at(-1) : whyNot(rules.close, target);
  if (rule) throw busy(label, operation, rule);
  if (target.kind === "resting") {
    closeIn(engine, step, target.path, reasonOf(label));
    return { runId, order: [] };
  }
  const order = [...descendants(step.tree, target.path), target.path];
  const views = order.flatMap((path) => step.worker(runIdOf(path)) ?? []);
  const launching = views.find(({ state }) => state === "settling.launching");
  const notYet = launching && whyNot(rules.close, launching);
  if (launching && notYet) throw busy(launching.context.label, operation, notYet);
  if (views.every(({ context }) => context.backend === FUNCTIONS)) {
    closeIn(engine, step, target.path, reasonOf(label));
    return { runId, order: [] };
  }
  engine.closings.add(runId);
  return { runId, order };
}

/** One worker of a cascade, with its proofs. */
async function closeProven(engine: Engine, command: CloseCommand, path: string, targetRunId: string): Promise<void> {
  const { treeId, label: parentLabel, operation } = command;
  const runId = runIdOf(path);
  const tree = await engine.kernel.tree(treeId);
  if (tree.resting.has(runId) && runId === targetRunId) {
    // Without its workers nothing is left of it but the row that waits for its owner.
    return engine.kernel.run(treeId, (step) => closeIn(engine, step, path, reasonOf(parentLabel)), { operation });
  }
  const context = tree.worker(runId)?.context;
  if (context === undefined) return;
  const { label } = context;
  const isTarget = runId === targetRunId;
  const details = isTarget ? {} : { details: { parentLabel } };
  const ids = { label, runId, ...(context.place?.paneId !== undefined && { paneId: context.place.paneId }) };
  const identity = await engine.backends.presence.identify(context);
  if (identity === "unprovable") {
    throw new HerdError({
      category: "target_not_found",
      reason: "identity_unproven",
      message: `"${label}" was not closed: it cannot be proved that what runs is this worker`,
      nextAction: "make its backend reachable, list the workers, then close again",
      operation,
      ids,
      ...details,
    });
  }
  await engine.kernel.run(
    treeId,
    (step) => {
      const worker = step.worker(runId);
      if (worker === undefined || whyNot(rules.close, worker)) return;
      const reason = isTarget ? reasonOf(label) : { code: "parent_closed" as const, message: "Its parent was closed." };
      dropUnread(engine, step, path);
      dropOrphaned(engine, step, path, worker.context);
      step.send(runId, { type: "close", reason, at: step.now });
      // Nothing is left to stop: the order only says so.
      if (identity === "absent") engine.backends.stops.gone(step, step.worker(runId), runId, undefined);
      passFailpoint("close.child-gone");
    },
    { operation },
  );
  const left = await engine.backends.presence.ended(treeId, context);
  if (left === undefined) return;
  throw new HerdError({
    category: "internal_failure",
    reason: "not_gone",
    message: `"${label}" was told to stop and is not proven gone: ${left}`,
    nextAction: "list the workers; it is told again until it is gone, then close again what is left",
    operation,
    ids,
    retryAttempted: true,
    ...details,
  });
}

/**
 * Closes inside a step whatever stands at a path, and everything below it: where nobody waits for proofs. A launch on its
 * way is given up.
 * @param below why those below it are closed.
 */
export function closeIn(
  engine: Engine,
  step: Step,
  path: string,
  reason: CloseReason,
  below: CloseReason = { code: "parent_closed", message: "Its parent worker was closed." },
): void {
  const runId = runIdOf(path);
  const resting = step.tree.resting.get(runId);
  if (resting) {
    step.removeResting(runId);
    releaseClaims(step, resting.context);
    dropOrphaned(engine, step, resting.path, resting.context);
    return;
  }
  for (const child of descendants(step.tree, path)) {
    closeOne(engine, step, runIdOf(child), below);
    passFailpoint("close.child-gone");
  }
  dropUnread(engine, step, path);
  closeOne(engine, step, runId, reason);
}

function closeOne(engine: Engine, step: Step, runId: string, reason: CloseReason): void {
  const state = step.worker(runId)?.state;
  if (state === undefined || state.startsWith("clos")) return;
  if (state !== "settling.launching") return step.send(runId, { type: "close", reason, at: step.now });
  const failure = { stage: "ownership_capture" as const, message: reason.message };
  step.after(() => engine.kernel.inBackground(engine.backends.launches.fail(step.tree.id, runId, failure)));
}

/** Results that nobody is left to read: those of children below a path. */
export function dropUnread(engine: Engine, step: Step, path: string): void {
  for (const resting of [...step.tree.resting.values()]) {
    if (parentPath(resting.path) !== path) continue;
    const requestId = resting.context.assignment?.requestId ?? "";
    const deliveryId = step.read<OutcomeRecord>(keys.outcome(requestId))?.deliveryId ?? "";
    const delivery = step.read<DeliveryRecord>(keys.delivery(runIdOf(path), deliveryId));
    if (delivery) acknowledgeIn(engine, step, delivery);
  }
}

/** The result of an orphan has no reader any more: its delivery goes with it, the result stays readable by its id. */
function dropOrphaned(engine: Engine, step: Step, path: string, { assignment }: WorkerContext): void {
  const parent = parentPath(path);
  const requestId = assignment?.requestId ?? "";
  // A living parent reads it although the worker was closed: "deliver first".
  if (parent === "" || !isGone(step.tree, parent)) return;
  const deliveryId = step.read<OutcomeRecord>(keys.outcome(requestId))?.deliveryId ?? "";
  const owner = runIdOf(parent);
  if (step.read(keys.delivery(owner, deliveryId)) === undefined) return;
  step.del(keys.delivery(owner, deliveryId));
  engine.backends.withdraw(step, { owner, deliveryId });
  engine.retain(step, requestId);
}

function reasonOf(label: string): CloseReason {
  return { code: "closed", message: `"${label}" was closed by its owner.` };
}

function busy(label: string, operation: string, rule: Rule): HerdError {
  return new HerdError({
    category: "worker_busy",
    reason: rule.reason,
    message: `"${label}" was not closed: ${rule.message}`,
    nextAction: rule.nextAction,
    operation,
    ids: { label },
  });
}
