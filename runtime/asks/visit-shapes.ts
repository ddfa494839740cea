import type { Json } from "../../machines/vocabulary.ts";
import type { Subject } from "../owners.ts";
import type { ParkedEntry } from "./entry.ts";

/** The three tools with which a model looks at what is parked on its subject, and resolves it. */
export type ParkedToolName = "list_parked" | "resume_parked" | "cancel_parked";

/** What a visit starts: a run of its own on the subject. */
export interface VisitStart<Agent extends string = string> {
  agent: Agent;
  /** Non-blank text; for a function `input.task`, or `input` as JSON, unless set. */
  task?: string;
  /** For a function: `worker.input`, checked by its definition's `input` schema. */
  input?: Json;
  files?: string[];
  cwd?: string;
  /** Its name; the agent's unless set. Labels of runs that visits start are their own. */
  label?: string;
  /** The whole budget of the start in milliseconds, 5,001 to 300,000. A function needs none. */
  timeoutMs?: number;
  /** JSON up to 16 KB that comes back on questions, results and entries. */
  metadata?: Json;
}

/** What somebody outside does with what is parked on a subject: cancel, then at most one of resume, take and start. */
export interface VisitRequest<Agent extends string = string> {
  subject: Subject;
  /** Entries whose runs are torn down, with every run that waits for them. */
  cancel?: string[];
  /** Asks of one group with their answers. An item without `payload` takes that outcome. */
  resume?: { id: string; payload?: Json }[];
  /** The outcome to take. */
  take?: string;
  start?: VisitStart<Agent>;
  /** What the started run reads as `worker.extras`; its definition declares the keys. */
  extras?: Record<string, Json>;
  /**
   * `false`: what the run comes to is not for this visit, which resolves with kind `none` when it is there; it waits on the
   * subject. True unless set.
   */
  receivesOutcome?: boolean;
  /**
   * `false`: resolves once the visit is on disk, with kind `none`, for whoever cannot wait until the run goes on; what it
   * comes to waits on the subject. An outcome that is taken comes back in any case. True unless set.
   */
  waits?: boolean;
  /** The caller's id of this visit: the same id again is the same visit, also after a restart. */
  id?: string;
  /** Aborted it only stops waiting: what was done stays, and the outcome waits on the subject. */
  signal?: AbortSignal;
}

/** What has to be answered before a run goes on. */
export interface Suspended {
  /** The oldest of them. */
  interactionId: string;
  /** Every open ask of the step, oldest first, and those of them that a program answers. */
  interactionIds: string[];
  callerInteractionIds: string[];
  /** The assignment that goes on with the answers; absent when several wait for some each. */
  resumeOwner?: string;
  /** The earliest deadline of them, ISO 8601, UTC. */
  expiresAt?: string;
}

/** What a visit came to. What does not apply is absent. */
export interface VisitOutcome {
  action: "resumed" | "taken" | "started" | "none";
  /**
   * `result`: the run ended. `asks`: it waits for answers of programs. `parked`: it waits for people alone. `none`: nothing
   * ran, or its outcome is not for this visit.
   */
  kind: "result" | "asks" | "parked" | "none";
  cancelled: string[];
  /** The assignment that was resumed, taken or started. */
  requestId?: string;
  /** What the run returned: its data, or its text. */
  result?: Json;
  /** The asks that programs answer, oldest first. */
  asks?: ParkedEntry[];
  suspended?: Suspended;
}
