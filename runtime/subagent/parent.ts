import { rules, whyNot } from "../../machines/eligibility.ts";
import type { WorkerContext } from "../../machines/vocabulary.ts";
import type { Engine } from "../engine.ts";
import { HerdError, invalidRequest } from "../errors.ts";
import type { WorkerView } from "../kernel/tree.ts";
import type { Controller } from "./acceptance.ts";

/**
 * A parent worker in a process as whoever assigns, steers, replies and closes.
 * @throws HerdError `target_not_found` while it is not proved who calls; `invalid_request`, operation `controller`, for a
 * worker that has no workers of its own.
 */
export async function controllerOf(
  engine: Engine,
  treeId: string | undefined,
  runId: string,
  request: unknown,
): Promise<Controller> {
  const worker = treeId === undefined ? undefined : (await engine.kernel.tree(treeId)).worker(runId);
  const { action } = (request ?? {}) as { action?: unknown };
  if (treeId === undefined || !isInitialised(worker)) throw notInitialised(runId, action);
  if (!worker.context.delegates) throw notController(worker.context.label, "delegate");
  const { sessionId, workspace, cwd } = worker.context;
  return {
    treeId,
    owner: { id: sessionId },
    workspace,
    cwd,
    path: worker.path,
    parent: { runId, sessionId, allowed: engine.subagentsOf(worker.context) },
  };
}

/** Refuses what only a worker with workers of its own may do. */
export function notController(label: string, operation: string): HerdError {
  return invalidRequest(
    "controller",
    "controller",
    `"${label}" has no workers of its own, so it cannot ${operation}`,
    "do the work in this worker, or list subagents in its definition",
  );
}

function isInitialised(worker: WorkerView | undefined): worker is WorkerView {
  return worker !== undefined && worker.state !== "settling.launching" && worker.context.unproven === undefined;
}

function notInitialised(runId: string, action: unknown): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: "not_initialised",
    message: "It is not proved that the caller is a worker of this herd",
    nextAction: "wait until the worker has accepted its task, then try again",
    operation: typeof action === "string" ? action : "subagent",
    ids: { runId },
  });
}

/** Why a parent cannot start another worker now, if it cannot. */
export function whyNotDelegate(engine: Engine, parent: WorkerView | undefined): HerdError | undefined {
  const closing = parent && engine.closings.has(parent.context.runId) ? closingRule : undefined;
  const rule = parent && (closing ?? whyNot(rules.delegate, parent));
  if (parent !== undefined && rule === undefined) return undefined;
  const controller = rule?.reason === "controller";
  return new HerdError({
    category: controller ? "invalid_request" : "worker_busy",
    reason: rule?.reason ?? "closed",
    message: `No worker was started: ${rule?.message ?? "the parent is gone"}`,
    nextAction: rule?.nextAction ?? "nothing; the parent was closed",
    operation: controller ? "controller" : "assign",
    ...(parent && { ids: idsOf(parent.context) }),
  });
}

const closingRule = {
  reason: "transition_pending",
  message: "the parent is being closed",
  nextAction: "nothing; the parent goes with its workers",
};

function idsOf({ runId, label }: WorkerContext): Record<string, string> {
  return { runId, label };
}
