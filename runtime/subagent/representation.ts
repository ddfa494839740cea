import { sessionBusy } from "../claims.ts";
import type { Engine } from "../engine.ts";
import { HerdError, invalidRequest, withoutUndefined } from "../errors.ts";
import type { LabelRecord } from "../kernel/records.ts";
import { parentPath } from "../kernel/tree.ts";
import type { SavedSession } from "../sessions/reference.ts";
import { keys } from "../store/keys.ts";
import type { Controller } from "./acceptance.ts";

interface Asked {
  task: string;
  label?: string | undefined;
  reusable?: boolean | undefined;
  files?: string[] | undefined;
}

/**
 * What already stands for a saved session: the one live worker of the same owner takes the task itself, everything else
 * keeps the session busy. Source: specification of `assign` to a historical session.
 * @returns the request for that worker, or undefined when nothing stands for the session.
 * @throws HerdError `target_ambiguous`, `worker_busy`, `target_not_found` or `invalid_request`.
 */
export async function reuse<Fields extends Asked>(
  engine: Engine,
  by: Controller,
  session: SavedSession,
  fields: Fields,
): Promise<object | undefined> {
  const found = await representations(engine, session);
  if (found.length === 0) return undefined;
  if (found.length > 1) {
    throw new HerdError({
      category: "target_ambiguous",
      reason: "target_ambiguous",
      message: `${found.length} runs stand for the session ${session.id}`,
      nextAction: "list your workers and close those that are not needed, or begin a copy with fork",
      operation: "assign",
      ids: { sessionId: session.id },
      details: { runIds: found.map(({ runId }) => runId) },
    });
  }
  const [{ tree: treeId, path, runId }] = found as [LabelRecord];
  const worker = (await engine.kernel.tree(treeId)).worker(runId);
  if (treeId !== by.treeId || parentPath(path) !== by.path || worker?.context.workspace !== by.workspace) {
    // Somebody else's worker is not there for this owner; what is left of one that is gone still keeps the session.
    if (worker === undefined) throw sessionBusy(session.id, runId);
    throw notYours(session.id);
  }
  const { label, reusable } = worker.context;
  if (fields.label !== undefined && fields.label !== label) throw otherLabel(fields.label, label);
  if (fields.reusable !== undefined && fields.reusable !== reusable) {
    throw invalidRequest(
      "assign",
      "other_lifetime",
      `"${label}" was launched with reusable: ${reusable}, which cannot change while it lives`,
      "leave reusable out",
      { field: "reusable" },
    );
  }
  const { task, files } = fields;
  const { id, metadata, deadlineMs, signal } = fields as Asked & Record<string, unknown>;
  return withoutUndefined({ label, task, files, id, metadata, deadlineMs, signal });
}

/** Every run that has this session by its id or its path and is not gone. */
async function representations(engine: Engine, { id, path }: SavedSession): Promise<LabelRecord[]> {
  const { kernel, sessions } = engine;
  await kernel.settled();
  const leases = [keys.lease("id", id), ...(path === undefined ? [] : [keys.lease("path", path)])];
  const candidates = [
    ...leases.flatMap((key) => kernel.committed<LabelRecord>(key) ?? []),
    ...(await sessions.runsOf(id)).map(({ tree, path: at, runId }) => ({ tree, path: at, runId })),
  ];
  const found = new Map<string, LabelRecord>();
  for (const candidate of candidates) {
    const tree = await kernel.tree(candidate.tree);
    const there =
      tree.worker(candidate.runId) !== undefined ||
      tree.resting.has(candidate.runId) ||
      tree.unknown.some((row) => row.path === candidate.path);
    if (there) found.set(candidate.runId, candidate);
  }
  return [...found.values()];
}

function notYours(session: string): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: "target_not_found",
    message: `The session ${session} belongs to a live worker that is not yours`,
    nextAction: "begin a copy with fork",
    operation: "assign",
    ids: { sessionId: session },
  });
}

function otherLabel(asserted: string, label: string): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: "target_not_found",
    message: `The session's live worker is labelled "${label}", not "${asserted}"`,
    nextAction: "use that label, or leave label out",
    operation: "assign",
    ids: { label: asserted },
  });
}
