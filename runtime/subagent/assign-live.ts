import { z } from "zod";
import { rules, whyNot } from "../../machines/eligibility.ts";
import { shownState } from "../../machines/projection.ts";
import { LABEL_PATTERN, type Evidence, type Json } from "../../machines/vocabulary.ts";
import { startDeadline } from "../asks/deadline.ts";
import type { Engine } from "../engine.ts";
import { HerdError } from "../errors.ts";
import { noEvidence, readEvidence } from "../evidence/evidence.ts";
import { newId } from "../ids.ts";
import type { CallerIdRecord, RequestRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { parseRequest } from "../request.ts";
import { keys } from "../store/keys.ts";
import { callerIdOf, checkMetadata, Common, limitsOf, repeated, type Controller } from "./acceptance.ts";
import { unlessKnown } from "./launch.ts";
import { findWorker, type Target } from "./target.ts";

const Fields = z.strictObject({
  label: z.string().regex(LABEL_PATTERN, `must match ${LABEL_PATTERN.source}`),
  wait: z.boolean().optional(),
  ...Common,
});

type Live = z.infer<typeof Fields> & { identity: readonly unknown[] };

/**
 * Assigns the next task to a live reusable worker, which keeps its session, its label and its launch configuration.
 * @param identity what tells a repetition under the id from another request, when it is not the label that does.
 * @throws HerdError `worker_busy` with the worker's state, unless `wait` lets the call wait until it is ready.
 */
export async function assignLive(
  engine: Engine,
  by: Controller,
  request: unknown,
  identity?: readonly unknown[],
): Promise<RequestRecord> {
  const fields = parseRequest("assign", Fields, request);
  checkMetadata(fields.metadata);
  const { label, task, files = [], id, signal } = fields;
  const live = { ...fields, identity: identity ?? [label, task, files] };
  return unlessKnown(engine, by, { id, identity: live.identity, signal }, () => accept(engine, by, live));
}

async function accept(engine: Engine, by: Controller, fields: Live): Promise<RequestRecord> {
  const { task, files = [], wait = false, signal } = fields;
  const reading = { cwd: by.cwd, text: task, operation: "assign", limits: limitsOf(engine, by) };
  const evidence = files.length === 0 ? noEvidence(reading) : await readEvidence(files, reading);
  for (;;) {
    signal?.throwIfAborted();
    const outcome = await engine.kernel.run(by.treeId, (step) => attempt(engine, step, by, fields, evidence), {
      operation: "assign",
      owner: by.owner,
      refusable: by.parent === undefined,
    });
    if ("requestId" in outcome) return outcome;
    if (!wait || outcome.news === undefined) throw outcome.refusal;
    await outcome.news();
  }
}

/** Accepts the task, or says why not and how to wait for news of the assignment that the worker is busy with. */
function attempt(
  engine: Engine,
  step: Step,
  by: Controller,
  fields: Live,
  evidence: Evidence[],
): RequestRecord | { refusal: HerdError; news: (() => Promise<void>) | undefined } {
  const { label, task, metadata, deadlineMs } = fields;
  if (engine.closed) throw engine.closed;
  const { idKey, hash } = callerIdOf(by, fields.id, fields.identity);
  const used = idKey === undefined ? undefined : step.read<CallerIdRecord>(idKey);
  const before = used && repeated(engine, used, hash, fields.id as string);
  if (before && "requestId" in before) return before;
  const target = findWorker(step.tree, by, label, "assign");
  const rule = whyNot(rules.assign, target);
  if (rule) {
    const busy = fields.wait === true ? busyWith(target) : undefined;
    // Listens from within the step, so that nothing is missed between the look and the waiting.
    const news = busy === undefined ? undefined : engine.news(busy, fields.signal);
    news?.catch(() => undefined);
    return { refusal: notReady(target), news: news && (() => news) };
  }
  const { context, path } = target;
  const requestId = by.parent?.call?.requestId ?? newId();
  const record: RequestRecord = {
    requestId,
    runId: context.runId,
    tree: by.treeId,
    path,
    owner: by.owner,
    ...(by.parent && { parentRunId: by.parent.runId }),
    workspace: context.workspace,
    label,
    agent: context.agent,
    backend: context.backend,
    task,
    files: evidence,
    cwd: context.cwd,
    sessionId: context.sessionId,
    ...(metadata !== undefined && { metadata: metadata as Json }),
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(idKey !== undefined && { callerKey: idKey }),
    continues: true,
    acceptedAt: step.now,
  };
  step.put(keys.request(requestId), record);
  engine.sessions.accepted(step, record, engine.newNumber());
  if (idKey !== undefined) step.put(idKey, { hash, requestId } satisfies CallerIdRecord);
  if (deadlineMs !== undefined) startDeadline(step, requestId, context.runId, step.now + deadlineMs);
  by.parent?.call?.journal(step, record);
  step.send(context.runId, {
    type: "assign",
    assignment: {
      requestId,
      acceptedAt: step.now,
      metadata: metadata !== undefined,
      deadline: deadlineMs !== undefined,
    },
  });
  return record;
}

/** A reusable worker's assignment ends; one-shot and closing workers never become ready. */
function busyWith({ kind, context, state }: Target): string | undefined {
  if (kind === "resting" || !context.reusable || state.startsWith("clos")) return undefined;
  return context.assignment?.requestId;
}

function notReady({ context, state: path }: Target): HerdError {
  const state = shownState(path, context);
  const lost = state === "unknown" && context.lost;
  const why = context.reusable ? `it is ${state}` : `it is ${state} and was not assigned with reusable: true`;
  return new HerdError({
    category: "worker_busy",
    reason: "not_ready",
    message: `"${context.label}" takes no task now: ${why}`,
    nextAction: lost
      ? "close it, then assign its session"
      : context.reusable
        ? "wait for its result and acknowledge it (or use wait: true), list the workers, and assign when it is ready"
        : "assign a fresh worker with agent",
    operation: "assign",
    ids: { label: context.label, ...(context.assignment && { requestId: context.assignment.requestId }) },
    details: { state },
  });
}
