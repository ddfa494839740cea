import { rules, whyNot } from "../../machines/eligibility.ts";
import type { CloseReason } from "../../machines/vocabulary.ts";
import { acknowledgeIn } from "../deliveries/record.ts";
import type { Engine } from "../engine.ts";
import { HerdError } from "../errors.ts";
import { passFailpoint } from "../store/failpoint.ts";
import { keys } from "../store/keys.ts";
import type { DeliveryRecord, OutcomeRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { parentPath, runIdOf } from "../kernel/tree.ts";
import { descendants, findWorker } from "./target.ts";

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
 * `closed`; a result that is already stored stays on its way.
 * @throws HerdError `target_not_found`, or `worker_busy` while another close is under way.
 */
export async function close(engine: Engine, command: CloseCommand): Promise<{ label: string }> {
  const { treeId, label, operation } = command;
  const runId = await engine.kernel.run(
    treeId,
    (step) => {
      const target = findWorker(step.tree, command, label, operation);
      const rule = whyNot(rules.close, target);
      if (rule) {
        throw new HerdError({
          category: "worker_busy",
          reason: rule.reason,
          message: `"${label}" was not closed: ${rule.message}`,
          nextAction: rule.nextAction,
          operation,
          ids: { label },
        });
      }
      const reason = { code: "closed" as const, message: `"${label}" was closed by its owner.` };
      closeIn(engine, step, target.path, reason);
      return target.context.runId;
    },
    { operation, refusable: command.path === "" },
  );
  await engine.gone(treeId, runId);
  return { label };
}

/** The same inside a step: whatever stands at a path, and everything below it. */
export function closeIn(engine: Engine, step: Step, path: string, reason: CloseReason): void {
  const runId = runIdOf(path);
  if (step.tree.resting.has(runId)) {
    const { context } = step.tree.resting.get(runId) as { context: Parameters<Engine["releaseLabel"]>[1] };
    step.removeResting(runId);
    engine.releaseLabel(step, context);
    return;
  }
  const below = { code: "parent_closed" as const, message: "Its parent worker was closed." };
  for (const child of descendants(step.tree, path)) {
    step.send(runIdOf(child), { type: "close", reason: below, at: step.now });
    passFailpoint("close.child-gone");
  }
  dropUnread(engine, step, path);
  step.send(runId, { type: "close", reason, at: step.now });
}

/** Results that nobody is left to read: those of children below a path. */
export function dropUnread(engine: Engine, step: Step, path: string): void {
  for (const resting of [...step.tree.resting.values()]) {
    const parent = parentPath(resting.path);
    if (parent !== path) continue;
    const requestId = resting.context.assignment?.requestId ?? "";
    const deliveryId = step.read<OutcomeRecord>(keys.outcome(requestId))?.deliveryId ?? "";
    const delivery = step.read<DeliveryRecord>(keys.delivery(runIdOf(path), deliveryId));
    if (delivery) acknowledgeIn(engine, step, delivery);
  }
}
