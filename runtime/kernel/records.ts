import type { LaunchPolicy } from "../definitions/definition.ts";
import type { Evidence, Json, Outcome, ParkedAsk } from "../../machines/vocabulary.ts";

/** The rows that are not actors. All are JSON; what is unset is absent. */

/** An owner as deliveries and results name it. A subject carries scope and keys as well. */
export interface OwnerRef {
  id: string;
  scope?: string;
  keys?: Record<string, string>;
}

/** An accepted task. Written once, with the batch that accepts it. */
export interface RequestRecord {
  requestId: string;
  runId: string;
  /** The tree and the path of the worker's actor in it. */
  tree: string;
  path: string;
  owner: OwnerRef;
  /** Set when a parent worker is the owner. */
  parentRunId?: string;
  workspace: string;
  label: string;
  agent: string;
  /** The backend that runs the worker. */
  backend: string;
  task: string;
  files: Evidence[];
  cwd: string;
  sessionId: string;
  /** Set when its session holds more than this assignment. */
  continues?: true;
  metadata?: Json;
  /** What a function reads besides its task: `worker.input` and `worker.extras`. */
  input?: Json;
  extras?: Record<string, Json>;
  deadlineMs?: number;
  /** The row of the owner's own id for it. */
  callerKey?: string;
  /** UTC milliseconds. */
  acceptedAt: number;
}

/** How an assignment ended. `deliveryId` is absent when nobody is told (a closed assignment). */
export interface OutcomeRecord {
  requestId: string;
  outcome: Outcome | { status: "closed"; error: { code: string; message: string } };
  endedAt: number;
  deliveryId?: string;
  details?: Record<string, Json>;
}

/** One question and, once there is one, the reply that won. */
export interface AskRecord {
  askId: string;
  requestId: string;
  runId: string;
  question: string;
  files: Evidence[];
  /** UTC milliseconds. */
  askedAt: number;
  /** The key of whom it is addressed to: an owner's tree, or a parent worker's run. */
  owner: string;
  /** Its place in the order. A question to a person has no delivery: it waits in the inbox. */
  deliveryId: string;
  journalKey?: string;
  /** Unset for a question of `ask_owner`. */
  parked?: ParkedAsk;
  /** The owner that it is addressed to, where that is another one than the assignment's. */
  addressee?: OwnerRef;
  answer?: { message: Json; files: Evidence[]; at: number; replyId?: string; callerKey?: string };
  /** Set when the question was given up. */
  abandoned?: { code: string; message: string };
}

/**
 * The questions of one assignment that stand in its owner's list: those that are open, and those that it goes on with.
 * Goes with the end of the assignment.
 */
export interface ParkedRecord {
  askIds: string[];
}

/** An ask or a result on its way to an owner. The row goes when the owner acknowledged it. */
export interface DeliveryRecord {
  deliveryId: string;
  kind: "question" | "result";
  requestId: string;
  runId: string;
  tree: string;
  /** The key of whom it is addressed to: an owner's tree, or a parent worker's run. */
  owner: string;
  label: string;
  askId?: string;
  /** The opening of the store that made it; later ones count as attempts. */
  epoch: number;
  /** Of an outcome that waits on a subject: when it is dropped unless somebody took it, UTC milliseconds. */
  dropAt?: number;
}

/** What the owner said while the worker was at work. */
export interface SteerRecord {
  steerId: string;
  /** Its place in the order of acceptance. */
  number: string;
  requestId: string;
  message: string;
  files: Evidence[];
  /** UTC milliseconds. */
  at: number;
}

/** What a backend still has to do, or that a run's process has to be looked after (`watch`). */
export interface OrderRecord {
  orderId: string;
  kind: "run" | "start" | "task" | "resume" | "answer" | "steer" | "deliver" | "stop" | "watch";
  tree: string;
  path: string;
  runId: string;
  /** Which backend carries it out, and what it needs to know of the worker, which may be gone by then. */
  backend?: string;
  label?: string;
  requestId?: string;
  /** Of orders that may be given again under the same name: which one it is. */
  number?: string;
  answerOf?: string;
  message?: string;
  files?: Evidence[];
  /** Of `deliver`: the delivery to the worker, which is a parent. */
  delivery?: DeliveryRecord;
  /** Of `stop`: why the process is not proven gone, or what could not be tidied up after it. */
  error?: string;
  /** Of `stop`: proven gone; something is left to tidy up. */
  gone?: true;
  /** Of `stop`: the worker is gone, and its session is free once its process is. */
  holds?: HeldSession;
}

/** A session by its id, and by the file that its process reported. */
export interface HeldSession {
  sessionId: string;
  sessionPath?: string;
}

/** How a worker in a process was launched: what every start of its process needs. Goes with the worker. */
export interface LaunchRecord {
  runId: string;
  tree: string;
  /** The accepted form of the saved session that it continues or forks. */
  session?: { continues: string } | { forks: string };
  policy?: LaunchPolicy;
  /** Until its backend has accepted the task: what is stored then, and how long that may take. */
  pending?: PendingLaunch;
}

/** A launch on its way. Nothing of it counts as accepted. */
export interface PendingLaunch {
  request: RequestRecord;
  /** Tells a repetition under the caller's id from another request. */
  hash: string;
  /** UTC milliseconds when the child's budget is used up, and the budget. */
  dueAt: number;
  timeoutMs: number;
  /** Rows that say what was started, and go when it is not. */
  takesBack?: string[];
}

/** Which worker holds a label. */
export interface LabelRecord {
  tree: string;
  path: string;
  runId: string;
}

/** Which run has a saved session. `file` is the path that it claimed besides the id. */
export interface LeaseRecord extends LabelRecord {
  file?: string;
}

/** What an owner asked for under an id of its own. `hash` tells a repetition from a reuse. */
export interface CallerIdRecord {
  hash: string;
  requestId: string;
  /** Of a reply: the question that it answered. */
  askId?: string;
  /** The launch is on its way under this run; its answer is not known yet, or not proved yet. */
  launching?: string;
  /** The launch failed: what every repetition hears, once its rollback is over. */
  failure?: Record<string, Json>;
}
