import { z } from "zod";
import { LABEL_PATTERN } from "./label.ts";

/**
 * The words that charts, engine and backends share: labels, ids, what a worker remembers (context), what
 * reaches it (events) and what it tells (facts). Everything here is JSON: rows are read back by any process.
 */

/** A worker's public name inside its workspace. Source: the `subagent` API, "Common request fields". */
export { LABEL_PATTERN };

export const Label = z.string().regex(LABEL_PATTERN);

/** Ids are actor ids and parts of keys, so they hold neither `/` (paths) nor `!` (keys). */
export const Id = z.string().regex(/^[A-Za-z0-9_.-]{1,128}$/);

/** Whatever JSON can say. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** One regular file given as evidence: embedded whole when it is small strict UTF-8, else a reference. */
export const Evidence = z.object({ path: z.string(), bytes: z.number(), text: z.string().optional() });
export type Evidence = { path: string; bytes: number; text?: string };

/** The direct children of a worker or owner, counted by what they still owe it. */
export const Children = z.object({
  /** Actors that still live below it. */
  living: z.number(),
  /** Children with an assignment that is neither asking nor finished. */
  active: z.number(),
  /** Finished children whose result it has not consumed. */
  undelivered: z.number(),
  /** Children that wait, or are just about to wait, for its answer to their question. */
  asking: z.number(),
});
export type Children = z.infer<typeof Children>;

export const NO_CHILDREN: Children = { living: 0, active: 0, undelivered: 0, asking: 0 };

/** Why a result could not be stored, kept until its owner closes the worker or recovers it. */
export const ResultError = z.object({
  code: z.literal("write_failure"),
  message: z.string(),
  requestId: z.string(),
  originalStatus: z.enum(["completed", "failed"]),
  attempts: z.number(),
  failedAt: z.string(),
  retrySafe: z.literal(false),
  cleanupSafe: z.literal(true),
  nextAction: z.string(),
});
export type ResultError = z.infer<typeof ResultError>;

/** Where a worker runs and under which files, as its backend reports it: evidence for people, never a handle. */
export const Place = z.object({
  paneId: z.string().optional(),
  tabId: z.string().optional(),
  tabLabel: z.string().optional(),
  sessionPath: z.string().optional(),
  model: z.string().optional(),
  thinking: z.string().optional(),
});
export type Place = z.infer<typeof Place>;

/** What a worker remembers between steps. Its row holds exactly this; texts and files live in records. */
export const WorkerContext = z.object({
  runId: Id,
  label: Label,
  agent: z.string(),
  backend: z.string(),
  sessionId: z.string(),
  /** A session id, an owner id or a subject: whoever assigns, answers and receives. */
  ownerSessionId: z.string(),
  workspace: z.string(),
  cwd: z.string(),
  /** May start workers of its own. */
  delegates: z.boolean(),
  /** Stays available after its result was delivered. */
  reusable: z.boolean(),
  /** The accepted task; kept until its result is acknowledged. `acceptedAt` is UTC milliseconds. */
  assignment: z
    .object({
      requestId: Id,
      acceptedAt: z.number(),
      /** Which optional records exist, so that steps need not look for them. */
      metadata: z.boolean(),
      deadline: z.boolean(),
    })
    .nullable(),
  /**
   * What is asked: the one question of `ask_owner`, or a group of parked asks with those of them that are `open`, of
   * which `askId` is the oldest. `answered` while accepted replies wait for the turn to end.
   */
  ask: z
    .object({ askId: Id, answered: z.boolean(), group: z.string().optional(), open: z.array(Id).optional() })
    .nullable(),
  /** Questions asked in this assignment so far; numbers the next one. */
  asks: z.number(),
  /** Owner requests (steers, held replies) that the backend has not confirmed yet. */
  unacknowledged: z.number(),
  children: Children,
  /** Why the worker cannot go on although nobody owes it an answer, for people. */
  diagnostic: z.string().nullable(),
  resultError: ResultError.nullable(),
  /** Last sign of life, UTC milliseconds. */
  lastActivityAt: z.number(),
  /** Continues a saved session, which no other run may have meanwhile. */
  leased: z.literal(true).optional(),
  place: Place.optional(),
  /** Why it cannot be proved that what runs is this worker; set until it is proved or proven gone. */
  unproven: z.string().optional(),
  /** The session that its process speaks for, when that is another one: until it speaks for its own, nothing is proved. */
  speaksFor: z.string().optional(),
  /** Its process ended unasked, and since it was started again no turn has ended. */
  restarted: z.literal(true).optional(),
  /** Its process is proven gone for good. */
  lost: z.literal(true).optional(),
});
export type WorkerContext = z.infer<typeof WorkerContext>;

/** What a worker is spawned with: its identity, fixed for life, and its first assignment. */
export type WorkerInput = Pick<
  WorkerContext,
  | "runId"
  | "label"
  | "agent"
  | "backend"
  | "sessionId"
  | "ownerSessionId"
  | "workspace"
  | "cwd"
  | "delegates"
  | "reusable"
  | "leased"
> & { assignment: NonNullable<WorkerContext["assignment"]> };

export const SupervisorContext = z.object({
  owner: z.object({
    id: z.string(),
    scope: z.string().optional(),
    keys: z.record(z.string(), z.string()).optional(),
  }),
});
export type SupervisorContext = {
  owner: { id: string; scope?: string; keys?: Record<string, string> };
};

/** How an assignment ended, before anybody was told. `text` is whole; `data` is what a function returned. */
export type Outcome = (
  | { status: "completed"; text: string; data?: Json }
  | { status: "failed"; error: { code: string; message: string } }
) & { usage?: Usage; contextUsage?: ContextUsage; unreadSteers?: number };

/** How full a worker's context was at its end. `percent` is null where the backend cannot tell. */
export type ContextUsage = { tokens: number; contextWindow: number; percent: number | null };

/** What models took for a piece of work; what is not known is left out. */
export interface Usage {
  inputTokens?: number;
  outputTokens?: number;
  /** US dollars. */
  costUsd?: number;
}

/** What an answer must be; `text` for every question of `ask_owner`. */
export type AnswerFormat = "text" | "confirm" | "select" | "form" | "free";

/**
 * What an ask says that is not addressed to the direct owner: it parks on the subject of the outermost run (`caller`), or
 * goes to a person (`user`). Several of one group may be open at once.
 */
export interface ParkedAsk {
  to: "caller" | "user";
  groupId: string;
  /** The agents that led to it, the outermost first. */
  askedBy: string[];
  answerFormat: AnswerFormat;
  options?: Json[];
  schema?: object;
  payload?: Json;
  /** UTC milliseconds; without it it never expires. */
  expiresAt?: number;
  onExpiry: "kill" | "resume";
}

/** Which question, in full: the record is made from this, the worker keeps only the id. */
export interface AskEvent {
  type: "ask";
  askId: string;
  /** Names of all tool calls of this model turn; `ask_owner` must be alone in it. */
  calls: string[];
  question: string;
  files: Evidence[];
  at: number;
  /** The journal key under which a function worker will look for the answer. */
  journalKey?: string;
  /** Unset for a question of `ask_owner`. */
  parked?: ParkedAsk;
}

export interface ReplyEvent {
  type: "reply";
  askId: string;
  message: Json;
  files: Evidence[];
  at: number;
  /** The caller's id of this reply, for "the same reply again", and the row that remembers it. */
  replyId?: string;
  callerKey?: string;
}

/** Everything that can happen to a worker. Times are UTC milliseconds and come from outside. */
export type WorkerEvent =
  | { type: "worker.launch"; input: WorkerInput }
  | { type: "worker.rested"; runId: string }
  | { type: "launch.accepted"; at: number; place?: Place }
  | { type: "launch.queued" }
  | { type: "launch.failed" }
  | { type: "assign"; assignment: NonNullable<WorkerContext["assignment"]> }
  | { type: "located"; place: Place }
  | { type: "identity.unproven"; diagnostic: string; speaksFor?: string }
  | { type: "identity.proven" }
  /** `why` is what its backend says of a process that could not be started again. */
  | { type: "process.exited"; at: number; why?: string }
  | { type: "turn.started"; at: number }
  | { type: "tool.called"; at: number }
  | { type: "turn.ended"; at: number }
  | { type: "activity"; at: number }
  | { type: "delivered" }
  | AskEvent
  | ReplyEvent
  | { type: "steer"; steerId: string; message: string; files: Evidence[]; at: number }
  | { type: "settled"; outcome: Outcome; at: number }
  | { type: "result.unpersisted"; error: ResultError }
  | { type: "result.acknowledged" }
  | { type: "children.awaited" }
  | { type: "children.changed"; children: Children }
  | { type: "hold"; diagnostic: string }
  | { type: "close"; reason: CloseReason; at: number }
  | { type: "backend.gone" };

/**
 * Why a worker is torn down: its owner said so, its deadline passed, its parent failed, its ask was cancelled or expired.
 */
export type CloseReason = {
  code: "closed" | "deadline_exceeded" | "parent_closed" | "cancelled" | "expired";
  message: string;
};

export type SupervisorEvent = Extract<WorkerEvent, { type: "worker.launch" } | { type: "worker.rested" }>;

/** What a step brings out; the engine makes records and orders of it, in the same batch. */
export type WorkerFact =
  | ({ requestId: string } & Omit<AskEvent, "type"> & { type: "ask.opened" })
  | ({ requestId: string } & Omit<ReplyEvent, "type"> & { type: "ask.answered" })
  | { type: "asks.abandoned"; askIds: string[]; requestId: string; reason: CloseReason }
  | { type: "result.stored"; requestId: string; outcome: Outcome; at: number }
  | { type: "result.dropped"; requestId: string | null; why: "asking" | "closing" | "settled" }
  | { type: "assignment.closed"; requestId: string; reason: CloseReason; at: number }
  /** `next`: the next task of a live worker; `answerOf`: the question whose answer it goes on with. */
  | { type: "order.run"; answerOf?: string; next?: true }
  | { type: "order.resume" }
  | { type: "order.steer"; steerId: string; message: string; files: Evidence[] }
  | { type: "order.stop" }
  | { type: "worker.closed" };
