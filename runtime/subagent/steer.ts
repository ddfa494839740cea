import { z } from "zod";
import { rules, whyNot } from "../../machines/eligibility.ts";
import { shownState } from "../../machines/projection.ts";
import { LABEL_PATTERN } from "../../machines/vocabulary.ts";
import type { Engine } from "../engine.ts";
import { HerdError } from "../errors.ts";
import { noEvidence, readEvidence } from "../evidence/evidence.ts";
import { newId } from "../ids.ts";
import { parseRequest } from "../request.ts";
import type { SteerReceipt } from "./shapes.ts";
import { findWorker } from "./target.ts";
import { placeOf, type Place } from "./visited.ts";

const nonBlank = z.string().regex(/\S/, "must contain non-whitespace text");

const Fields = z.strictObject({
  label: z.string().regex(LABEL_PATTERN, `must match ${LABEL_PATTERN.source}`),
  message: nonBlank,
  files: z.array(nonBlank).optional(),
});

/**
 * Changes what a worker works on now; it never makes a second result.
 *
 * What can happen twice: the worker may hear the same steer again after a restart.
 * @throws HerdError `target_not_found`, or `worker_busy` with the reason and the worker's state.
 */
export async function steer(
  engine: Engine,
  { cwd, ...given }: Place & { cwd: string },
  request: unknown,
): Promise<SteerReceipt> {
  const { label, message, files = [] } = parseRequest("steer", Fields, request);
  const place = placeOf(engine, given, label, "steer");
  const by = place instanceof Promise ? await place : place;
  // Of whoever steers, wherever the worker is.
  const reading = { cwd, text: message, operation: "steer", limits: engine.limits.in(given.treeId) };
  const evidence = files.length === 0 ? noEvidence(reading) : await readEvidence(files, reading);
  return engine.kernel.run(
    by.treeId,
    (step) => {
      const target = findWorker(step.tree, by, label, "steer");
      const rule = whyNot(rules.steer, target);
      if (rule) {
        throw new HerdError({
          category: "worker_busy",
          reason: rule.reason,
          message: `"${label}" is ${shownState(target.state, target.context)} and was not steered: ${rule.message}`,
          nextAction: rule.nextAction,
          operation: "steer",
          ids: { label },
        });
      }
      const { runId, sessionId, assignment } = target.context;
      const steerId = newId();
      step.send(runId, { type: "steer", steerId, message, files: evidence, at: step.now });
      return { requestId: steerId, sessionId, assignmentRequestId: assignment?.requestId ?? "" };
    },
    { operation: "steer", refusable: by.path === "" },
  );
}
