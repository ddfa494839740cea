import type { Outcome, ResultError } from "../../machines/vocabulary.ts";
import type { Engine } from "../engine.ts";
import { messageOf, type HerdError } from "../errors.ts";
import { keys } from "../store/keys.ts";

/**
 * The store takes other rows but not this result: the worker keeps the evidence until its owner closes it. Source: rules
 * of the engine, "A failed batch".
 */
export async function recordUnpersisted(
  engine: Engine,
  { treeId, runId, outcome, cause }: { treeId: string; runId: string; outcome: Outcome; cause: HerdError },
): Promise<void> {
  await engine.kernel.run(
    treeId,
    (step) => {
      const requestId = step.worker(runId)?.context.assignment?.requestId;
      if (requestId === undefined) return;
      const error: ResultError = {
        code: "write_failure",
        message: `The result could not be stored: ${messageOf(cause.cause ?? cause)}`,
        requestId,
        originalStatus: outcome.status,
        attempts: engine.options.reopen.attempts,
        failedAt: new Date(step.now).toISOString(),
        retrySafe: false,
        cleanupSafe: true,
        nextAction: "make sure that the disk takes writes, then close the worker and assign the task again",
      };
      if (!step.can(runId, { type: "result.unpersisted", error })) return;
      step.send(runId, { type: "result.unpersisted", error });
      for (const orderId of ["run", "watch"]) {
        if (step.read(keys.order(runId, orderId)) !== undefined) step.del(keys.order(runId, orderId));
      }
    },
    { operation: "settle" },
  );
}
