import type { Evidence, Outcome } from "../machines/vocabulary.ts";

/** The backend name of workers that are async functions in this process. */
export const FUNCTIONS = "functions";

/** Where a worker runs, as evidence: functions and backends without panes name the run. */
export function paneIdOf({ backend, runId }: { backend: string; runId: string }): string {
  return backend === FUNCTIONS ? `function:${runId}` : `${backend}:${runId}`;
}

/**
 * The port that backends implement: what carries out a worker's turns. Orders go out after they are on disk,
 * events come in, both correlated by run id. `backend.contract.ts` is the suite every backend must pass.
 */
export interface Backend {
  /** Stored with every worker it runs, so keep it the same for ever. */
  readonly name: string;
  /**
   * Carries out an order. Called at least once per order, also after a restart: the same `orderId` again must
   * not be done twice. It is repeated at every opening until the event that confirms it was reported.
   */
  perform(order: Order): void;
  /** Only `absent` allows a clean-up and only `present` a kill; what cannot be proved is left alone. */
  identify(runId: string): Promise<Identity>;
  /** The herd closes: stop touching the host. Workers that live outside this process stay as they are. */
  close(graceMs: number): Promise<void>;
}

export type Identity = "present" | "absent" | "unprovable";

/** What a backend is told to do, and the event that confirms it. */
export type Order =
  /** Start the worker on its task. Confirmed by `turn.started`. */
  | (OrderBase & { kind: "start"; task: string; files: Evidence[]; agent: string; cwd: string; sessionId: string })
  /** Go on with the owner's answer. Confirmed by `turn.started`. */
  | (OrderBase & { kind: "answer"; askId: string; message: string; files: Evidence[] })
  /** Tell the worker at work what its owner says. Confirmed by `delivered` with this order's id. */
  | (OrderBase & { kind: "steer"; message: string; files: Evidence[] })
  /** End whatever executes it. Confirmed by `gone`, with proof. */
  | (OrderBase & { kind: "stop" });

interface OrderBase {
  orderId: string;
  runId: string;
  label: string;
  requestId: string | undefined;
}

/** What a backend reports about a run. */
export type BackendEvent =
  | { type: "accepted" }
  | { type: "turn.started" }
  | { type: "tool.called"; name: string }
  | { type: "turn.ended" }
  | { type: "settled"; outcome: Outcome }
  | { type: "activity" }
  | { type: "delivered"; orderId: string }
  | { type: "gone" };

/** What the engine hands to a backend when the herd opens. */
export interface BackendHost {
  /**
   * Reports an event. `requestId` names the assignment it belongs to, where the backend knows it: an event of an
   * assignment that ended, or of a run that is gone, changes nothing.
   * @returns whether the worker took it, once that is on disk.
   */
  report(runId: string, event: BackendEvent, requestId?: string): Promise<boolean>;
  /**
   * The model called `ask_owner` in a turn with these tool calls. `requestId` names its assignment, where the backend
   * knows it. Rejects with the reason when it may not.
   */
  askOwner(
    runId: string,
    request: unknown,
    options: { batch: readonly string[]; requestId?: string },
  ): Promise<{ askId: string; assignmentRequestId: string }>;
}

/** A backend is made for one herd, which gives it its host. */
export type BackendFactory = (host: BackendHost) => Backend;
