import type { WorkerContext } from "../../machines/vocabulary.ts";
import { HerdError } from "../errors.ts";
import { join, parentPath, runIdOf, type Tree } from "../kernel/tree.ts";

/** A worker as its owner may act on it. */
export interface Target {
  kind: "live" | "resting";
  path: string;
  state: string;
  context: WorkerContext;
}

/**
 * The one worker with this label, in this workspace, directly below a path: an owner acts on its own workers only.
 * @param options.orphans also those below a parent that is proven gone, which the root may tidy up.
 * @throws HerdError `target_not_found` or `target_ambiguous`.
 */
export function findWorker(
  tree: Tree,
  { path, workspace }: { path: string; workspace: string },
  label: string,
  operation: string,
  { orphans = false }: { orphans?: boolean } = {},
): Target {
  const found: Target[] = [];
  const others: string[] = [];
  for (const target of everyWorker(tree)) {
    if (target.context.label !== label || target.context.workspace !== workspace) continue;
    if (parentPath(target.path) === path || (orphans && isOrphan(tree, target.path))) found.push(target);
    else if (path === "") others.push(target.path);
  }
  if (found.length === 1) return found[0] as Target;
  const parent = others.length > 0 && tree.worker(runIdOf(parentPath(others[0] as string)));
  if (found.length === 0 && parent) throw notYours(label, parent.context, operation);
  const unreadable = tree.unknown.some((row) => row.label === label);
  throw new HerdError({
    category: found.length === 0 ? "target_not_found" : "target_ambiguous",
    reason: found.length === 0 ? "target_not_found" : "target_ambiguous",
    message:
      found.length > 0
        ? `${found.length} workers of yours are labelled "${label}"`
        : unreadable
          ? `The record of the worker "${label}" cannot be read, so it cannot be acted on`
          : `You have no worker labelled "${label}"`,
    nextAction: "list your workers and use a label from the list",
    operation,
    ids: { label },
  });
}

/** A worker whose direct parent is proven gone for good. Source: specification of orphans. */
export function isOrphan(tree: Tree, path: string): boolean {
  return path.includes("/") && isGone(tree, parentPath(path));
}

/** Proven, not merely unreadable: its process is gone for good, or nothing of it is left. */
export function isGone(tree: Tree, path: string): boolean {
  const worker = tree.worker(runIdOf(path));
  if (worker) return worker.context.lost === true;
  return !tree.resting.has(runIdOf(path)) && !tree.unknown.some((row) => row.path === path);
}

function* everyWorker(tree: Tree): Generator<Target> {
  for (const worker of tree.workers()) yield { kind: "live", ...worker };
  for (const resting of tree.resting.values()) yield { kind: "resting", state: "settling.undelivered", ...resting };
}

function notYours(label: string, { label: parent, lost }: WorkerContext, operation: string): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: "not_yours",
    message: `"${label}" is a worker of "${parent}", ${lost ? "whose process is lost" : "which still lives"}`,
    nextAction: lost
      ? `close "${label}", which is all that can be done with it`
      : `close "${parent}", which takes it along, or leave it to "${parent}"`,
    operation,
    ids: { label, parentLabel: parent },
  });
}

/** The paths below a worker, deepest first. */
export function descendants(tree: Tree, path: string): string[] {
  const below: string[] = [];
  for (const child of tree.childrenOf(path)) {
    const at = join(path, child.context.runId);
    below.push(...descendants(tree, at), at);
  }
  return below;
}
