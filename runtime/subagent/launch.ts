import { randomUUID } from "node:crypto";
import type { Evidence, Json, WorkerInput } from "../../machines/vocabulary.ts";
import { startDeadline } from "../asks/deadline.ts";
import { FUNCTIONS } from "../backend.ts";
import { claimSession } from "../claims.ts";
import type { LaunchPolicy } from "../definitions/definition.ts";
import type { Engine } from "../engine.ts";
import { HerdError } from "../errors.ts";
import { newId } from "../ids.ts";
import type { CallerIdRecord, LabelRecord, LaunchRecord, RequestRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { join } from "../kernel/tree.ts";
import type { SavedSession } from "../sessions/reference.ts";
import { keys } from "../store/keys.ts";
import { callerIdOf, repeated, type Controller } from "./acceptance.ts";
import { chooseLabel } from "./label.ts";
import { whyNotDelegate } from "./parent.ts";

/** Everything that was checked before a worker is launched. */
export interface Plan {
  agent: string;
  backend: string;
  /** Its agent may start workers of its own. */
  delegates: boolean;
  policy?: LaunchPolicy | undefined;
  label: string | undefined;
  cwd: string;
  task: string;
  files: Evidence[];
  reusable: boolean;
  timeoutMs: number | undefined;
  id: string | undefined;
  /** What tells a repetition under the id from another request. */
  identity: readonly unknown[];
  metadata: Json | undefined;
  deadlineMs: number | undefined;
  signal: AbortSignal | undefined;
  /** What a function reads besides its task. */
  input?: Json;
  extras?: Record<string, Json>;
  /** The saved session that the new run has, or whose copy it begins with, with the lines that are not in this store. */
  saved?: { session: SavedSession; how: "continues" | "forks"; lines: readonly object[] };
}

/** Launches a worker; resolves when its task is accepted on disk. @throws HerdError; nothing of it is left then. */
export async function launch(engine: Engine, by: Controller, plan: Plan): Promise<RequestRecord> {
  const { signal } = plan;
  signal?.throwIfAborted();
  const begun = await engine.kernel.run(by.treeId, (step) => beginLaunch(engine, step, by, plan), {
    operation: "assign",
    owner: by.owner,
    refusable: by.parent === undefined,
  });
  return "answer" in begun ? begun.answer(signal) : begun;
}

/**
 * What was asked for under the same id before, or by the same place of a parent's function, needs nothing any more of what
 * it needed then: its files, its agent and its session may be gone. So it is looked for when preparing it again failed.
 */
export async function unlessKnown(
  engine: Engine,
  by: Controller,
  { id, identity, signal }: Pick<Plan, "id" | "identity" | "signal">,
  prepare: () => Promise<RequestRecord>,
): Promise<RequestRecord> {
  try {
    return await prepare();
  } catch (error) {
    const mayBeKnown = id !== undefined || by.parent?.call !== undefined;
    // After a rollback it is this very launch that failed.
    if (!mayBeKnown || !(error instanceof HerdError) || error.rollbackOccurred || engine.closed) throw error;
    const { idKey, hash } = callerIdOf(by, id, identity);
    const known = await engine.kernel.run(by.treeId, (step) => knownCall(engine, step, by, idKey, hash, id), {
      operation: "assign",
      owner: by.owner,
    });
    if (known === undefined) throw error;
    return "answer" in known ? known.answer(signal) : known;
  }
}

/** Accepted at once, or on its way to be accepted by its backend. */
export type Begun = RequestRecord | { answer(signal: AbortSignal | undefined): Promise<RequestRecord> };

/** Launches a worker as part of a step, or finds the one that was launched under the same id. */
export function beginLaunch(engine: Engine, step: Step, by: Controller, plan: Plan): Begun {
  const { agent, backend, id, saved, metadata, deadlineMs } = plan;
  if (engine.closed) throw engine.closed;
  const { idKey, hash } = callerIdOf(by, id, plan.identity);
  const known = knownCall(engine, step, by, idKey, hash, id);
  if (known) return known;
  checkRoom(engine, step, by);
  const { workspace } = by;
  const label = chooseLabel(step, workspace, { explicit: plan.label, agent, ceiling: engine.options.labelCeiling });
  const runId = newId();
  const requestId = by.parent?.call?.requestId ?? newId();
  const path = join(by.path, runId);
  const sessionId = saved?.how === "continues" ? saved.session.id : randomUUID();
  if (saved?.how === "continues") claimSession(step, saved.session, { tree: by.treeId, path, runId });
  const record: RequestRecord = {
    requestId,
    runId,
    tree: by.treeId,
    path,
    owner: by.owner,
    ...(by.parent && { parentRunId: by.parent.runId }),
    workspace,
    label,
    agent,
    backend,
    task: plan.task,
    files: plan.files,
    cwd: plan.cwd,
    sessionId,
    ...(saved && { continues: true as const }),
    ...(metadata !== undefined && { metadata }),
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(idKey !== undefined && { callerKey: idKey }),
    ...(plan.input !== undefined && { input: plan.input }),
    ...(plan.extras && { extras: plan.extras }),
    acceptedAt: step.now,
  };
  const input: WorkerInput = {
    runId,
    label,
    agent,
    backend,
    sessionId,
    ownerSessionId: by.owner.id,
    workspace,
    cwd: plan.cwd,
    delegates: by.parent === undefined && plan.delegates,
    reusable: plan.reusable,
    ...(saved?.how === "continues" && { leased: true as const }),
    assignment: {
      requestId,
      acceptedAt: step.now,
      metadata: metadata !== undefined,
      deadline: deadlineMs !== undefined,
    },
  };
  if (by.parent === undefined) indexSubject(step, by);
  step.put(keys.label(workspace, label), { tree: by.treeId, path, runId } satisfies LabelRecord);
  const parent = by.parent?.runId;
  if (parent === undefined) step.sendTo("", { type: "worker.launch", input });
  else step.send(parent, { type: "worker.launch", input });
  if (saved && saved.lines.length > 0) engine.sessions.copied(step, sessionId, engine.newNumber(), saved.lines);
  const timeoutMs = plan.timeoutMs;
  const session = sessionOf(saved);
  engine.backends.launched(step, input, { request: record, hash, timeoutMs, policy: plan.policy, ...session });
  if (backend !== FUNCTIONS) return onItsWay(engine, step, by, runId);
  step.put(keys.request(requestId), record);
  engine.sessions.accepted(step, record, engine.newNumber());
  if (idKey !== undefined) step.put(idKey, { hash, requestId } satisfies CallerIdRecord);
  if (deadlineMs !== undefined) startDeadline(step, requestId, runId, step.now + deadlineMs);
  by.parent?.call?.journal(step, record);
  return record;
}

/** Everybody on the same scope who shares a key finds what is parked here, and its owner the runs that visits start. */
function indexSubject(step: Step, { owner: { scope, keys: subject = {} } }: Controller): void {
  const { ownerKey, id } = step.tree;
  if (id !== ownerKey) step.put(keys.visited(ownerKey, id), {});
  if (scope === undefined) return;
  for (const [name, value] of Object.entries(subject)) {
    const key = keys.subject(scope, name, value, ownerKey);
    if (step.read(key) === undefined) step.put(key, {});
  }
}

/** The same call was made before: under the caller's id, or by the same place of a parent's function. */
function knownCall(
  engine: Engine,
  step: Step,
  by: Controller,
  idKey: string | undefined,
  hash: string,
  id: string | undefined,
): Begun | undefined {
  const used = idKey === undefined ? undefined : step.read<CallerIdRecord>(idKey);
  const before = used && repeated(engine, used, hash, id as string);
  if (before) return "launching" in before ? onItsWay(engine, step, by, before.launching) : before;
  const call = by.parent?.call;
  if (call === undefined) return undefined;
  const request = step.read<RequestRecord>(keys.request(call.requestId));
  if (request) {
    call.journal(step, request);
    return request;
  }
  for (const { context } of step.tree.childrenOf(by.path)) {
    if (context.assignment?.requestId === call.requestId) return onItsWay(engine, step, by, context.runId);
  }
  return undefined;
}

/** A launch that has no answer yet; undefined when it has. */
export function launchUnderWay(engine: Engine, step: Step, runId: string): Begun | undefined {
  const launch = step.read<LaunchRecord>(keys.launch(runId));
  return launch?.pending && onItsWay(engine, step, { treeId: launch.tree }, runId);
}

/** Waits from within the step, so that no answer is missed. */
function onItsWay(engine: Engine, step: Step, by: Pick<Controller, "treeId" | "parent">, runId: string): Begun {
  const answer = engine.backends.launches.answer(step, runId, by.parent?.call?.journal);
  return { answer: (signal) => engine.backends.launches.outcome(by.treeId, runId, answer, signal) };
}

function checkRoom(engine: Engine, step: Step, by: Controller): void {
  const refusal = by.parent && whyNotDelegate(engine, step.worker(by.parent.runId));
  if (refusal) throw refusal;
  const limit = engine.options.maxChildren;
  let living = 0;
  for (const _ of step.tree.childrenOf(by.path)) if (++living >= limit) break;
  if (living < limit) return;
  throw new HerdError({
    category: "worker_busy",
    reason: "too_many_workers",
    message: `This owner already has ${living} workers, the limit maxChildren is ${limit}`,
    nextAction: "wait for results or close workers, then assign again",
    operation: "assign",
    details: { maxChildren: limit },
  });
}

function sessionOf(saved: Plan["saved"]): { session?: NonNullable<LaunchRecord["session"]> } {
  const path = saved?.session.path;
  if (saved === undefined || path === undefined) return {};
  return { session: saved.how === "continues" ? { continues: path } : { forks: path } };
}
