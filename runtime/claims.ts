import type { Place, WorkerContext } from "../machines/vocabulary.ts";
import { FUNCTIONS } from "./backend.ts";
import { HerdError } from "./errors.ts";
import type { HeldSession, LabelRecord, LeaseRecord, OrderRecord } from "./kernel/records.ts";
import type { Step } from "./kernel/step.ts";
import type { SavedSession } from "./sessions/reference.ts";
import { keys } from "./store/keys.ts";

/**
 * What one run at a time may have: a label in its workspace, a saved session by its id and by its file. Decided inside a
 * step, so that nothing is awaited between the look and the claim. Source: rules of the engine, "Claims".
 */

/** One run at a time has a saved session, whichever way it was named. @throws HerdError `session_busy`. */
export function claimSession(step: Step, { id, path, stored }: SavedSession, run: LabelRecord): void {
  // The store's own are known by their ids.
  const file = stored ? undefined : path;
  const lease: LeaseRecord = { ...run, ...(file !== undefined && { file }) };
  const claims = [keys.lease("id", id), ...(file === undefined ? [] : [keys.lease("path", file)])];
  const holder = claims.map((key) => step.read<LeaseRecord>(key)).find((row) => row !== undefined);
  if (holder) throw sessionBusy(id, holder.runId);
  for (const key of claims) step.put(key, lease);
}

/** The file that a backend reports for a worker's session is that worker's, unless another run has it. */
export function claimSessionFile(
  step: Step,
  { path, context }: { path: string; context: Pick<WorkerContext, "runId"> },
  { sessionPath }: Place,
): void {
  if (sessionPath === undefined) return;
  const key = keys.lease("path", sessionPath);
  if (step.read(key) !== undefined) return;
  step.put(key, { tree: step.tree.id, path, runId: context.runId } satisfies LeaseRecord);
}

/**
 * A worker is gone: its label and its session are free, unless another worker has them by now. The session of a process
 * that was told to stop is free when that is proved: until then it may be written to.
 */
export function releaseClaims(step: Step, context: WorkerContext): void {
  const { workspace, label, runId, sessionId, place, backend, leased } = context;
  release(step, keys.label(workspace, label), runId);
  releaseTree(step, runId);
  const sessionPath = place?.sessionPath;
  const session = { sessionId, ...(sessionPath !== undefined && { sessionPath }) };
  if (backend === FUNCTIONS) {
    if (leased) releaseSession(step, runId, session);
    return;
  }
  if (step.read(keys.launch(runId)) !== undefined) step.del(keys.launch(runId));
  const key = keys.order(runId, "stop");
  const stop = step.read<OrderRecord>(key);
  if (stop === undefined || stop.gone) releaseSession(step, runId, session);
  else step.put(key, { ...stop, holds: session } satisfies OrderRecord);
}

/** The tree of a run that a visit started goes with the last of its workers: nothing comes into it again. */
function releaseTree(step: Step, runId: string): void {
  const { id, ownerKey, actors, paths, resting } = step.tree;
  if (id === ownerKey) return;
  // Of a chain that goes in one step the others are still there, and at their end.
  const live = [...paths].filter(([, path]) => actors.get(path)?.getSnapshot().status === "active");
  const others = [...live.map(([other]) => other), ...resting.keys()].filter((other) => other !== runId);
  if (others.length > 0 || step.tree.unknown.length > 0) return;
  step.del(keys.visited(ownerKey, id));
  if (actors.has("")) step.del(keys.actor(id, ""));
}

/** Nothing runs in a session any more. */
export function releaseSession(step: Step, runId: string, { sessionId, sessionPath }: HeldSession): void {
  const file = release(step, keys.lease("id", sessionId), runId)?.file;
  if (file !== undefined) release(step, keys.lease("path", file), runId);
  if (sessionPath !== undefined) release(step, keys.lease("path", sessionPath), runId);
}

/** A saved session is in use. */
export function sessionBusy(session: string, runId: string): HerdError {
  return new HerdError({
    category: "worker_busy",
    reason: "session_busy",
    message: `The session ${session} is in use by another run`,
    nextAction: "wait until that run has ended, or begin a copy with fork",
    operation: "assign",
    ids: { sessionId: session, runId },
  });
}

/** Frees a claim if a run has it. */
function release(step: Step, key: string, runId: string): LeaseRecord | undefined {
  const claim = step.read<LeaseRecord>(key);
  if (claim?.runId === runId) step.del(key);
  return claim;
}
