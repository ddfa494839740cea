import type { WorkerContext } from "../../machines/vocabulary.ts";
import { HerdError } from "../errors.ts";
import { join, parentPath, type Tree } from "../kernel/tree.ts";

/** A worker as its owner may act on it. */
export interface Target {
  kind: "live" | "resting";
  path: string;
  state: string;
  context: WorkerContext;
}

/**
 * The one worker with this label, in this workspace, directly below a path: an owner acts on its own workers only.
 * @throws HerdError `target_not_found` or `target_ambiguous`.
 */
export function findWorker(
  tree: Tree,
  { path, workspace }: { path: string; workspace: string },
  label: string,
  operation: string,
): Target {
  const found: Target[] = [];
  const meant = (context: WorkerContext) => context.label === label && context.workspace === workspace;
  for (const child of tree.childrenOf(path)) {
    if (meant(child.context)) found.push({ kind: "live", ...child });
  }
  for (const resting of tree.resting.values()) {
    if (!meant(resting.context) || parentPath(resting.path) !== path) continue;
    found.push({ kind: "resting", state: "settling.undelivered", ...resting });
  }
  if (found.length === 1) return found[0] as Target;
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

/** The paths below a worker, deepest first. */
export function descendants(tree: Tree, path: string): string[] {
  const below: string[] = [];
  for (const child of tree.childrenOf(path)) {
    const at = join(path, child.context.runId);
    below.push(...descendants(tree, at), at);
  }
  return below;
}
