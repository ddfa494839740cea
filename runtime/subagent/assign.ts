import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { z } from "zod";
import { rules, whyNot } from "../../machines/eligibility.ts";
import { LABEL_PATTERN, type Json, type WorkerInput } from "../../machines/vocabulary.ts";
import { startDeadline } from "../asks/deadline.ts";
import type { Engine } from "../engine.ts";
import { HerdError, invalidRequest } from "../errors.ts";
import { noEvidence, readEvidence } from "../evidence/evidence.ts";
import { newId } from "../ids.ts";
import type { CallerIdRecord, LabelRecord, RequestRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { join } from "../kernel/tree.ts";
import { parseRequest } from "../request.ts";
import { keys } from "../store/keys.ts";
import { callerIdOf, checkMetadata, Common, nonBlank, repeated, type Controller } from "./acceptance.ts";
import { assignLive } from "./assign-live.ts";

const LABEL_CEILING = 999;

const Fields = z.strictObject({
  agent: nonBlank,
  label: z.string().regex(LABEL_PATTERN, `must match ${LABEL_PATTERN.source}`).optional(),
  cwd: nonBlank.optional(),
  reusable: z.boolean().optional(),
  timeoutMs: z.number().int().min(5_001, "must be 5001 to 300000").max(300_000, "must be 5001 to 300000").optional(),
  ...Common,
});

/**
 * Assigns a task: to a fresh worker of an agent, or to a live reusable one by its label. Resolves when the task is accepted on disk.
 *
 * What can happen twice: nothing, when `id` is given: a repetition gets the same assignment. Without it every call
 * is a new one.
 * @throws HerdError; before acceptance nothing was changed.
 */
export function assign(engine: Engine, by: Controller, request: unknown): Promise<RequestRecord> {
  const { agent, label } = (request ?? {}) as { agent?: unknown; label?: unknown };
  return agent === undefined && label !== undefined
    ? assignLive(engine, by, request)
    : assignFresh(engine, by, request);
}

async function assignFresh(engine: Engine, by: Controller, request: unknown): Promise<RequestRecord> {
  const fields = parseRequest("assign", Fields, request);
  const { agent, task, files = [], id, metadata, signal } = fields;
  checkMetadata(metadata);
  const definition = engine.agents.assignable(agent, "assign");
  checkController(by, fields, agent);
  const cwd = fields.cwd === undefined ? by.cwd : resolve(by.cwd, fields.cwd);
  const reading = { cwd: by.cwd, text: task, operation: "assign" };
  const evidence = files.length === 0 ? noEvidence(reading) : await readEvidence(files, reading);
  signal?.throwIfAborted();
  const { idKey, hash } = callerIdOf(by, id, [agent, task, files]);

  return engine.kernel.run(
    by.treeId,
    (step) => {
      const used = idKey === undefined ? undefined : step.read<CallerIdRecord>(idKey);
      if (used) return repeated(engine, used, hash, id as string);
      checkParent(engine, step, by);
      const { workspace } = by;
      const label = chooseLabel(step, workspace, fields.label, agent);
      const backend = engine.backends.backendFor(agent);
      const runId = newId();
      const requestId = by.parent?.requestId ?? newId();
      const record: RequestRecord = {
        requestId,
        runId,
        tree: by.treeId,
        path: join(by.path, runId),
        owner: by.owner,
        ...(by.parent && { parentRunId: by.parent.runId }),
        workspace,
        label,
        agent,
        backend,
        task,
        files: evidence,
        cwd,
        sessionId: randomUUID(),
        ...(metadata !== undefined && { metadata: metadata as Json }),
        ...(fields.deadlineMs !== undefined && { deadlineMs: fields.deadlineMs }),
        ...(idKey !== undefined && { callerKey: idKey }),
        acceptedAt: step.now,
      };
      const input: WorkerInput = {
        runId,
        label,
        agent,
        backend,
        sessionId: record.sessionId,
        ownerSessionId: by.owner.id,
        workspace,
        cwd,
        delegates: by.parent === undefined && (definition.subagents?.length ?? 0) > 0,
        reusable: fields.reusable === true,
        assignment: {
          requestId,
          acceptedAt: step.now,
          metadata: metadata !== undefined,
          deadline: fields.deadlineMs !== undefined,
        },
      };
      step.put(keys.request(requestId), record);
      step.put(keys.label(workspace, label), { tree: by.treeId, path: record.path, runId } satisfies LabelRecord);
      if (idKey !== undefined) step.put(idKey, { hash, requestId } satisfies CallerIdRecord);
      if (fields.deadlineMs !== undefined) startDeadline(step, requestId, runId, step.now + fields.deadlineMs);
      if (by.parent) {
        by.parent.journal(step, record);
        step.send(by.parent.runId, { type: "worker.launch", input });
      } else {
        step.sendTo("", { type: "worker.launch", input });
      }
      engine.backends.launched(step, input);
      step.after(() => engine.sessions.mark(requestId));
      return record;
    },
    { operation: "assign", owner: by.owner, refusable: by.parent === undefined },
  );
}

/** What a parent worker may not decide: its children work where it works, and only some agents are its own. */
function checkController(by: Controller, { cwd }: { cwd?: string | undefined }, agent: string): void {
  if (by.parent === undefined) return;
  if (!by.parent.allowed.includes(agent)) {
    throw invalidRequest(
      "assign",
      "not_allowed",
      `This worker may not start "${agent}"`,
      by.parent.allowed.length > 0
        ? `assign one of its subagents: ${by.parent.allowed.join(", ")}`
        : "do the work in this worker, or ask its owner for another one",
      { field: "agent" },
    );
  }
  if (cwd !== undefined && resolve(by.cwd, cwd) !== resolve(by.cwd)) {
    throw invalidRequest("assign", "other_cwd", "A child works in its parent's working directory", "leave cwd out", {
      field: "cwd",
    });
  }
}

function checkParent(engine: Engine, step: Step, by: Controller): void {
  if (by.parent) {
    const parent = step.worker(by.parent.runId);
    const rule = parent && whyNot(rules.delegate, parent);
    if (parent === undefined || rule) {
      throw new HerdError({
        category: rule?.reason === "controller" ? "invalid_request" : "worker_busy",
        reason: rule?.reason ?? "closed",
        message: `No worker was started: ${rule?.message ?? "the parent is gone"}`,
        nextAction: rule?.nextAction ?? "nothing; the parent was closed",
        operation: rule?.reason === "controller" ? "controller" : "assign",
        ids: { runId: by.parent.runId },
      });
    }
  }
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

/** An explicit label is taken as it is or refused; without one the agent's name is numbered until one is free. */
function chooseLabel(step: Step, workspace: string, explicit: string | undefined, agent: string): string {
  const taken = (label: string) => step.read(keys.label(workspace, label)) !== undefined;
  if (explicit !== undefined) {
    if (!taken(explicit)) return explicit;
    throw new HerdError({
      category: "worker_label_exists",
      reason: "worker_label_exists",
      message: `The label "${explicit}" is taken in workspace "${workspace}"`,
      nextAction: "use another label, or leave it out to get a free one",
      operation: "assign",
      ids: { label: explicit },
    });
  }
  for (let number = 1; number <= LABEL_CEILING; number++) {
    const label = number === 1 ? agent : `${agent}-${number}`;
    if (!LABEL_PATTERN.test(label)) {
      throw invalidRequest(
        "assign",
        "bad_label",
        `"${label}" cannot be a label: it must match ${LABEL_PATTERN.source}`,
        "give the assignment a label of its own",
        { field: "label" },
      );
    }
    if (!taken(label)) return label;
  }
  throw new HerdError({
    category: "worker_label_exists",
    reason: "labels_exhausted",
    message: `All labels from "${agent}" to "${agent}-${LABEL_CEILING}" are taken in workspace "${workspace}"`,
    nextAction: "give the assignment a label of its own, or acknowledge results that wait",
    operation: "assign",
  });
}
