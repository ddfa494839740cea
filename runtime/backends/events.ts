import type { WorkerContext, WorkerEvent } from "../../machines/vocabulary.ts";
import { FUNCTIONS, type BackendEvent } from "../backend.ts";
import { boundedOutcome } from "../deliveries/outcome.ts";
import type { WorkerView } from "../kernel/tree.ts";

/** Activity of a process is written at most this often. Source: specification of the stale advisory. */
const ACTIVITY_MS = 5_000;

/** Whose end is what was wanted, or needs no notice: it is told to stop, or has no assignment to go on with. */
export function endsAnyway(worker: WorkerView | undefined): boolean {
  if (worker === undefined) return true;
  const { state, context } = worker;
  return state.startsWith("clos") || (state === "settling.undelivered" && !context.reusable);
}

/**
 * Whether the worker is what it is shown as only while its process lives: it works, or it takes the next task. One that
 * waits for its owner can do without, but as long as it is in doubt no reply reaches it.
 */
export function needsProcess({ state, context }: WorkerView): boolean {
  if (context.lost) return false;
  const waits = state === "ready" || (state === "settling.undelivered" && context.reusable);
  const doubted = state.startsWith("blocked") && context.unproven !== undefined;
  const held = state === "blocked.onBackend" && context.backend !== FUNCTIONS;
  return state.startsWith("working") || state === "blocked.onChildren" || held || waits || doubted;
}

export function isActivity({ type }: BackendEvent): boolean {
  return type === "activity" || type === "tool.called";
}

/** Also when the clock was set back: the older time is the wrong one then. */
export function isNewsAt({ lastActivityAt }: WorkerContext, now: number): boolean {
  return now < lastActivityAt || now - lastActivityAt >= ACTIVITY_MS;
}

/** What a turn of the model comes to. */
type TurnEvent = Extract<
  BackendEvent,
  { type: "turn.started" | "tool.called" | "turn.ended" | "settled" | "activity" | "blocked" }
>;

/** Longest diagnostic that a row keeps. */
export const DIAGNOSTIC_LIMIT = 256;

export function toWorkerEvent(event: BackendEvent, at: number): WorkerEvent {
  const told = event as TurnEvent;
  if (told.type === "settled") return { type: "settled", outcome: boundedOutcome(told.outcome), at };
  if (told.type === "blocked") return { type: "hold", diagnostic: told.diagnostic.slice(0, DIAGNOSTIC_LIMIT) };
  return { type: told.type, at };
}
