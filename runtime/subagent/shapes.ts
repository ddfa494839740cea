import type { Finding } from "../definitions/roster.ts";
import type { AgentRow } from "../definitions/definition.ts";
import type { Json } from "../../machines/vocabulary.ts";

/** What every start may carry. */
export interface StartOptions {
  /** The caller's id of this assignment: the same id from the same owner gives the same handle, also later. */
  id?: string;
  /** JSON up to 16 KB that comes back on questions, results, status and entries. */
  metadata?: Json;
  /** Milliseconds of the worker's own time; then it is closed and fails with `deadline_exceeded`. */
  deadlineMs?: number;
  /** Aborted before acceptance it rolls back; after it only the waiting stops. */
  signal?: AbortSignal;
  files?: string[];
}

/** A task for a fresh worker of an agent, or for a live reusable worker by its label. */
export type AssignRequest<Agent extends string> = StartOptions &
  (
    | {
        agent: Agent;
        task: string;
        label?: string;
        cwd?: string;
        /** Keep the worker available after its result was delivered. */
        reusable?: boolean;
        /** The exact path or full id of a saved session; the worker begins with a copy of it. */
        fork?: string;
        /** The whole budget of the start in milliseconds, 5,001 to 300,000. A function needs none. */
        timeoutMs?: number;
      }
    | {
        /** The exact path or full id of a saved session, which goes on. */
        session: string;
        task: string;
        /** The name of a new run; of the session's live worker the label that it must have. */
        label?: string;
        /** Must be where the session worked. */
        cwd?: string;
        reusable?: boolean;
        timeoutMs?: number;
      }
    | {
        label: string;
        task: string;
        /** Wait until the worker is ready instead of being refused. */
        wait?: boolean;
      }
  );

/** One visible worker. */
export interface WorkerRow {
  label: string;
  state: string;
  steerable: boolean;
  agentDefinition: string;
  workspaceId?: string;
  paneId?: string;
  tabId?: string;
  tabLabel?: string;
  /** Best available, where the backend reports it. */
  model?: string;
  thinking?: string;
  cwd?: string;
  piSessionId?: string;
  piSessionPath?: string;
  ownerSessionId?: string;
  activeRequestId?: string;
  /** The beginning of the task that it has, or had last: its first line, not more than 200 characters. */
  task?: string;
  /** ISO 8601, UTC. */
  lastActivityAt?: string;
  stale?: true;
  inactiveMs?: number;
  parentLabel?: string;
  /** Its parent is proven gone; the root may close it. */
  orphan?: true;
  cleanupError?: string;
  resultError?: object;
  /** Its ancestry cannot be believed: it is shown so that somebody can look for what is left. */
  recoveryOnly?: true;
  /** Its record cannot be read; the label is a guess, or the run's id. */
  unreadable?: true;
  diagnostic?: string;
  queued?: boolean;
  /** What it asks; `envelope` is what a model reads of it. */
  question?: { askId: string; question: string; envelope: string };
}

/** What an owner or a worker sees of the herd. */
export interface Listing {
  /** The workers that it can see. */
  workers: WorkerRow[];
  /** The agents that it may assign, and those that are disabled. */
  agentDefinitions: AgentRow[];
  /** What could not be tidied up after workers, by label; it is tried again. */
  cleanupErrors?: Record<string, string>;
  /** What is wrong with definition files, and what hides what; for the root. */
  findings?: Finding[];
}

/** The model-facing answer of `ask_owner` when the owner replied. */
export interface AskOwnerAnswer {
  ok: true;
  askId: string;
  assignmentRequestId: string;
  answer: string;
}

/** A public failure as the tools spell it: structured, not thrown. */
export interface ToolRefusal {
  ok: false;
  error: { category: string; message: string; [key: string]: unknown };
}

/** What an accepted steer is known by. */
export interface SteerReceipt {
  requestId: string;
  sessionId: string;
  assignmentRequestId: string;
}

/** What a close came to. */
export interface CloseReceipt {
  label: string;
  /** The worker is gone, but something of it could not be tidied up; that is tried again. */
  cleanupError?: string;
}

/** What whoever carries a model's call knows of it beside what the model said. */
export interface ToolCall {
  /** The caller's id of a reply: made again under it, it is the same reply. */
  replyId?: string;
  /** The same of an assignment. */
  assignId?: string;
  /** The same of a steer, as long as this program lives. */
  steerId?: string;
  /** The question that a reply means: it reaches no later one. */
  askId?: string;
  /** Aborted when nobody waits for an assignment any more: a launch that is under way is undone. */
  signal?: AbortSignal;
}
