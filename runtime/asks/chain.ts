import { activeRequest } from "../../machines/projection.ts";
import type { CloseReason } from "../../machines/vocabulary.ts";
import type { Engine } from "../engine.ts";
import type { Step } from "../kernel/step.ts";
import { parentPath, runIdOf, type Tree, type WorkerView } from "../kernel/tree.ts";
import { closeIn } from "../subagent/close.ts";

/** The runs of one tree that wait for each other: from the outermost to the one that asks. */

/** The run itself and every run above it that waits for it, the outermost first; empty when it is gone. */
export function chainOf(tree: Tree, runId: string): WorkerView[] {
  const chain: WorkerView[] = [];
  for (let id = runId; ;) {
    const worker = tree.worker(id);
    // A parent without an assignment waits for nobody.
    if (worker === undefined || (chain.length > 0 && activeRequest(worker.state, worker.context) === undefined)) break;
    chain.unshift(worker);
    const above = parentPath(worker.path);
    if (above === "") break;
    id = runIdOf(above);
  }
  return chain;
}

/**
 * Tears a run down with every run above it that waits for it, and everything below those. The outermost one's owner is told
 * once, where anybody is to be told. Source: "Asking the caller", "Resume, take, and cancel".
 */
export function closeChain(engine: Engine, step: Step, runId: string, reason: CloseReason): void {
  const top = chainOf(step.tree, runId)[0];
  if (top) closeIn(engine, step, top.path, reason, reason);
}
