import type { Step } from "../kernel/step.ts";
import { keys } from "../store/keys.ts";

/** What is known of a deadline: when it passes, or what is left of it while the worker waits for its owner. */
interface DeadlineRecord {
  tree: string;
  runId: string;
  dueAt?: number;
  remainingMs?: number;
}

const KIND = "deadline";

/** Starts the clock of an assignment. Times are UTC milliseconds. */
export function startDeadline(step: Step, requestId: string, runId: string, dueAt: number): void {
  const record: DeadlineRecord = { tree: step.tree.id, runId, dueAt };
  step.put(keys.deadline(requestId), record);
  step.put(keys.due(dueAt, KIND, requestId), { tree: step.tree.id, runId });
}

/** Stands the clock still while the worker waits for its owner. */
export function pauseDeadline(step: Step, requestId: string): void {
  const record = step.read<DeadlineRecord>(keys.deadline(requestId));
  if (record?.dueAt === undefined) return;
  step.del(keys.due(record.dueAt, KIND, requestId));
  const { tree, runId } = record;
  step.put(keys.deadline(requestId), { tree, runId, remainingMs: Math.max(0, record.dueAt - step.now) });
}

/** Lets the clock go on with what was left. */
export function resumeDeadline(step: Step, requestId: string): void {
  const record = step.read<DeadlineRecord>(keys.deadline(requestId));
  if (record?.remainingMs === undefined) return;
  startDeadline(step, requestId, record.runId, step.now + record.remainingMs);
}

/** Forgets the deadline of an assignment that ended. */
export function endDeadline(step: Step, requestId: string): void {
  const record = step.read<DeadlineRecord>(keys.deadline(requestId));
  if (record === undefined) return;
  if (record.dueAt !== undefined) step.del(keys.due(record.dueAt, KIND, requestId));
  step.del(keys.deadline(requestId));
}
