import { steerRules, whyNot, type StatePath } from "./eligibility.ts";
import { NO_CHILDREN, type Children, type WorkerContext } from "./vocabulary.ts";

/** The public states. `unknown` is what the list shows when a record or an identity cannot be proved. */
export type PublicState = "ready" | "working" | "blocked" | "settling" | "closing" | "closed" | "unknown";

type StateValue = string | { [key: string]: StateValue | undefined };

/** A worker's state as a dotted path: `{ blocked: "onOwner" }` is `blocked.onOwner`. */
export function statePath(value: StateValue): StatePath {
  if (typeof value === "string") return value;
  const [name = "", inner] = Object.entries(value)[0] ?? [];
  return inner === undefined ? name : `${name}.${statePath(inner)}`;
}

/** The top state, which is what people and models see. */
export function publicState(path: StatePath): PublicState {
  return path.split(".")[0] as PublicState;
}

/** The state that a list shows: `unknown` where nothing proves what runs, or where nothing is left to run it. */
export function shownState(path: StatePath, { unproven, lost }: WorkerContext): PublicState {
  return unproven !== undefined || (lost === true && path === "ready") ? "unknown" : publicState(path);
}

/** Whether a steer would be taken now. Source: specification of `steerable`. */
export function isSteerable(state: StatePath, context: WorkerContext): boolean {
  return whyNot(steerRules, { state, context }) === undefined;
}

/** An assignment counts as active until its result is stored. */
export function activeRequest(state: StatePath, context: WorkerContext): string | undefined {
  return state.startsWith("settling.un") ? undefined : context.assignment?.requestId;
}

/** A finished one-shot worker that only waits for its owner: it needs no actor any more. */
export function isResting(state: StatePath, context: WorkerContext): boolean {
  return state === "settling.undelivered" && !context.reusable && context.children.living === 0;
}

/** The questions that still need an answer, oldest first. */
export function openAsks(ask: WorkerContext["ask"]): string[] {
  if (ask === null || ask.answered) return [];
  return ask.open ?? [ask.askId];
}

/** Only its owner can help it on. Its question may be there a moment before the turn has ended that asked it. */
function asksItsOwner(state: StatePath, { ask }: WorkerContext): boolean {
  if (ask?.group !== undefined) return false;
  return state === "blocked.onOwner" || (state === "working.inTurn" && ask !== null && !ask.answered);
}

/** What the direct children of a worker owe it, from each child's state and context. */
export function countChildren(
  living: Iterable<{ state: StatePath; context: WorkerContext }>,
  resting: number,
): Children {
  const counts = { ...NO_CHILDREN, undelivered: resting };
  for (const { state, context } of living) {
    counts.living++;
    if (state.startsWith("settling.un")) counts.undelivered++;
    else if (asksItsOwner(state, context)) counts.asking++;
    else if (context.assignment !== null) counts.active++;
  }
  return counts;
}
