import type { Evidence, Json, Outcome, Place } from "../machines/vocabulary.ts";
import type { LaunchPolicy } from "./definitions/definition.ts";

/** The backend name of workers that are async functions in this process. */
export const FUNCTIONS = "functions";

/** Where a worker runs, as evidence: functions and backends without panes name the run. */
export function paneIdOf({ backend, runId }: { backend: string; runId: string }, place?: Place): string {
  if (place?.paneId !== undefined) return place.paneId;
  return backend === FUNCTIONS ? `function:${runId}` : `${backend}:${runId}`;
}

/**
 * The port that backends implement: what carries out a worker's turns. Orders go out after they are on disk,
 * events come in, both correlated by run id. `backend.contract.ts` is the suite every backend must pass.
 */
export interface Backend {
  /** Stored with every worker it runs, so keep it the same for ever. */
  readonly name: string;
  /** Folders in which it keeps session files, searched when a session is named by its id. */
  readonly sessionFolders?: readonly string[];
  /**
   * Carries out an order. Called at least once per order, also after a restart: the same `orderId` again must
   * not be done twice by one process. It is repeated at every opening until the event that confirms it was reported, and
   * for the process that takes the place of one that ended without confirming it.
   */
  perform(order: Order): void;
  /** Only `absent` allows a clean-up and only `present` a kill; what cannot be proved is left alone. */
  identify(runId: string): Promise<Identity>;
  /**
   * What is left to see of a start that reported nothing usable, for the one diagnostic of a failed launch. The engine
   * keeps at most 40 lines and 8 KiB of it, and waits at most two seconds.
   */
  diagnose?(runId: string): Promise<string>;
  /** The worker is gone for good, whether or not it had to be stopped: what is kept of it can go. May come again. */
  forget?(runId: string): void;
  /**
   * Whether a worker could be started here at all, looked at before anything changes.
   * @throws HerdError `not_running_inside_herdr` or `invalid_request`.
   */
  preflight?(): void | Promise<void>;
  /** The herd closes: stop touching the host. Workers that live outside this process stay as they are. */
  close(graceMs: number): Promise<void>;
}

/** What a backend can prove about the process of a run. */
export type Identity = "present" | "absent" | "unprovable";

/** What a worker's process is started with, every time it is started. */
export interface Launch {
  agent: string;
  cwd: string;
  sessionId: string;
  /** Where the worker's session file is, once its backend has told that. */
  sessionPath?: string;
  /** The id of the owner at the top of its tree: the person, program or subject that it works for in the end. */
  owner: string;
  /** The saved session that is continued, or whose copy the new session begins with. */
  session?: { continues: string } | { forks: string };
  /** What the agent's definition file says, as it was when the worker was launched. */
  policy?: LaunchPolicy;
}

/** What a backend is told to do, and the event that confirms it. */
export type Order =
  /**
   * Start a process for the worker and give it its task. Confirmed by `accepted`, then `turn.started`; `start.failed`
   * says why not. `timeoutMs` is what is left of the launch's budget.
   */
  | (OrderBase & Launch & { kind: "start"; task: string; files: Evidence[]; timeoutMs: number })
  /**
   * Give the live worker its next task. Confirmed by `turn.started`. With `launch` the process is gone and has to be
   * started again from its session first.
   */
  | (OrderBase & { kind: "task"; task: string; files: Evidence[]; launch?: Launch })
  /**
   * The process is gone: start it again from its session and tell it to go on. Confirmed by `turn.started`;
   * `start.failed` when its session is gone too. What the process had not yet written into its session when it ended is
   * to be told again: the task, and the answer to its last question where it has one.
   */
  | (OrderBase & Launch & { kind: "resume"; task: string; files: Evidence[]; answer?: OwnersAnswer })
  /**
   * Go on with the owner's answer. Confirmed by `turn.started`. With `launch` the process is gone and has to be started
   * again from its session first.
   */
  | (OrderBase & OwnersAnswer & { kind: "answer"; launch?: Launch })
  /** Tell the worker at work what its owner says. Confirmed by `delivered` with this order's id. */
  | (OrderBase & { kind: "steer"; message: string; files: Evidence[] })
  /**
   * Hand the worker what one of its own workers asks or ended with; it starts a turn when the worker is idle. Confirmed by
   * `delivered` with this order's id once it stands in the worker's session. `text` is what its model reads.
   */
  | (OrderBase & { kind: "deliver"; what: "question" | "result"; text: string; details: { [key: string]: Json } })
  /** End whatever executes it. Confirmed by `gone`, with proof; `stop.failed` says why not. */
  | (OrderBase & { kind: "stop" });

/** What the owner said to a question. */
export interface OwnersAnswer {
  askId: string;
  message: string;
  files: Evidence[];
}

interface OrderBase {
  orderId: string;
  runId: string;
  label: string;
  requestId: string | undefined;
}

/** Where a launch came to its end. Source: the specification of the error object, "Stages". */
export type Stage = "topology" | "pane_readiness" | "ownership_capture" | "agent_start" | "agent_result";

/** Why a launch failed, as its backend tells it. */
export interface StartFailure {
  stage: Stage;
  /** One of the public categories; `pane_not_ready` unless the backend knows better. */
  category?: string;
  /** What happened. Without it the engine asks the backend for its one diagnostic. */
  message?: string;
  /** What the start printed instead of a proof. */
  output?: "empty" | "malformed";
}

/** What a backend reports about a run. */
export type BackendEvent =
  /** The worker has durably accepted its task. */
  | { type: "accepted"; place?: Place }
  | ({ type: "start.failed" } & StartFailure)
  /** Which session the process speaks for: another one than the worker's is no proof of the worker. */
  | { type: "identity"; sessionId: string; place?: Place }
  | { type: "turn.started" }
  | { type: "tool.called"; name: string }
  | { type: "turn.ended" }
  | { type: "settled"; outcome: Outcome }
  | { type: "activity" }
  /** Its turn waits for a person: an approval, a dialog. `diagnostic` says what is wanted; `turn.started` ends it. */
  | { type: "blocked"; diagnostic: string }
  | { type: "delivered"; orderId: string }
  /** Its process ended, and nobody had told it to. */
  | { type: "exited" }
  /** Told to stop, it is proven gone. What could not be tidied up after it is `cleanupError`; the stop is tried again. */
  | { type: "gone"; cleanupError?: string }
  | { type: "stop.failed"; message: string };

/** What the engine hands to a backend when the herd opens. */
export interface BackendHost {
  /**
   * Reports an event. `requestId` names the assignment it belongs to, where the backend knows it: an event of an
   * assignment that ended, or of a run that is gone, changes nothing.
   * @returns whether the worker took it, once that is on disk; false while the herd is not open.
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
  /** The model called `subagent`: snake_case JSON in and out, nothing thrown. */
  subagent(runId: string, request: unknown): Promise<object>;
}

/** A backend is made for one herd, which gives it its host. */
export type BackendFactory = (host: BackendHost) => Backend;
