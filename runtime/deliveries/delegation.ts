import type { WorkerContext } from "../../machines/vocabulary.ts";
import type { RequestRecord } from "../kernel/records.ts";
import { parentPath, type Tree } from "../kernel/tree.ts";
import type { Delegation } from "./envelope.ts";

/** The direct workers of the same owner, in the same workspace, without the assignment whose result this is. */
export function delegationOf(tree: Tree | undefined, { path, runId, requestId, workspace }: RequestRecord): Delegation {
  const counts = { active: 0, pending: 0 };
  if (tree === undefined) return counts;
  const owner = parentPath(path);
  const isOther = (worker: WorkerContext) =>
    worker.workspace === workspace && !(worker.runId === runId && worker.assignment?.requestId === requestId);
  for (const { state, context } of tree.childrenOf(owner)) {
    if (context.assignment === null || !isOther(context)) continue;
    if (state.startsWith("settling.un")) counts.pending++;
    else counts.active++;
  }
  for (const { path: at, context } of tree.resting.values()) {
    if (parentPath(at) === owner && isOther(context)) counts.pending++;
  }
  return counts;
}
