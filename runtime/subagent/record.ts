import type { WorkerFact } from "../../machines/vocabulary.ts";
import type { Engine, Teller } from "../engine.ts";
import type { SteerRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { keys } from "../store/keys.ts";

/** A steer is kept with its assignment, in the order of acceptance. */
export function recordSteered(
  engine: Engine,
  fact: Extract<WorkerFact, { type: "order.steer" }>,
  worker: Teller,
  step: Step,
): void {
  const { runId, assignment } = worker.context;
  const requestId = assignment?.requestId ?? "";
  const { steerId, message, files } = fact;
  const number = engine.newNumber();
  const record: SteerRecord = { steerId, number, requestId, message, files, at: step.now };
  step.put(keys.steer(requestId, number), record);
  step.after(() => {
    engine.functions.steered(runId, record);
    engine.sessions.mark(requestId);
  });
}
