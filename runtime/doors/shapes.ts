import type { Json } from "../../machines/vocabulary.ts";
import type { ParkedEntry } from "../asks/entry.ts";
import type { Subject } from "../owners.ts";
import type { DoorContract } from "./contract.ts";

/** What kind of outside a door stands for. */
export type DoorKind = "program" | "route" | "webhook" | "schedule" | "submit";

/** What every door says. */
export interface DoorCommon<Agent extends string = string> {
  /** What the visits are about: a subject, or a jq program over the input that yields `{ scope, keys }`. */
  subject: Subject | string;
  /** The agent that is started, with a task of its own if it needs no other. */
  target: Agent | { agent: Agent; task?: string };
  /**
   * The input of a started run where no `startExpr` says another one; the door's own input unless set. A schedule has no
   * input but this one.
   */
  defaults?: Json;
  /** How an input becomes a visit. Without it every input starts a run. */
  contract?: DoorContract;
}

/**
 * A door: something outside that visits. One with a name is saved; the same name again updates it.
 *
 * `program` and `route` receive what the run comes to; what runs come to that a `webhook`, a `schedule` or a `submit`
 * starts or resumes waits on the subject.
 */
export type DoorRequest<Agent extends string = string> = DoorCommon<Agent> &
  (
    | { kind?: "program"; name?: string }
    | { kind: "route" | "submit"; name: string }
    | {
        kind: "webhook";
        name: string;
        /** What deliveries are signed with: text of at least 16 bytes, or `whsec_` with base64. */
        secret: string;
        /** Listens on this port of the loopback address; without it mount `door.fetch` in a server of your own. */
        port?: number;
      }
    | {
        kind: "schedule";
        name: string;
        /** Five fields, six with seconds first, or seven with the year last; or `@daily` and its like. */
        cron: string;
        /** The IANA name of the time zone that the times are of; UTC unless set, wherever the process runs. */
        timezone?: string;
        /**
         * When the run of the last fire still executes: `skip` (unless set) leaves this one out, `start` does not. One that
         * has ended, or that waits for answers, does not execute.
         */
        overlap?: "skip" | "start";
      }
  );

/** What a conversation is told: the run's answer, or what it asks. */
export interface RouteOutcome {
  /** What the run returned; null when it asks, or nothing ran. */
  reply: Json;
  asks: ParkedEntry[];
}

/** How a visit through a door waits. */
export interface DoorVisitOptions {
  signal?: AbortSignal;
  waits?: boolean;
}

/** A door of this herd. */
export interface Door {
  readonly name?: string;
  readonly kind: DoorKind;
  /** Where a webhook with a port listens. */
  readonly url?: string;
  /**
   * Visits through the door. What it resolves to depends on its kind: of `program` a `VisitOutcome`, of `route` a
   * `RouteOutcome`, of `submit` the id of its run record, of `webhook` and `schedule` a `VisitOutcome` of kind `none` as
   * soon as the visit is on disk.
   * @param options.signal aborted it only stops waiting: what was done stays, and the outcome waits on the subject.
   * @param options.waits `false`: resolves once the visit is on disk, and what it comes to waits on the subject.
   * @throws HerdError `door_contract`, or what a visit is refused for, before anything changed.
   */
  visit(input?: unknown, options?: DoorVisitOptions): Promise<any>;
  /**
   * Takes one signed delivery of a webhook, wherever it came in: `door.fetch(request)` in a server of your own. The same
   * delivery again does nothing and says so.
   *
   * What can happen twice: nothing, for a day; a delivery that was refused did nothing and may come again.
   * @returns 202 with what was done, 200 for a repetition, else the refusal: 400, 401, 404, 405, 409, 413, 500, 502, 503.
   * @throws HerdError `no_webhook` for a door of another kind.
   */
  fetch(request: Request): Promise<Response>;
  /** Forgets the door. What it started goes on. */
  remove(): Promise<void>;
}

/** How a submitted run stands. */
export type DoorRunStatus = "running" | "succeeded" | "failed" | "parked" | "lost";

/** The record of a submission, with the names of the public contract. What is unset is absent. */
export interface DoorRun {
  run_id: string;
  /** The door that it was submitted through, and the agent that it starts. */
  door: string;
  agent: string;
  status: DoorRunStatus;
  /** ISO 8601, UTC. */
  started_at: string;
  finished_at?: string;
  /** What the run returned; of `parked` `{ asks }`, or what the run waits for when only people are asked. */
  result?: Json;
  /** Of `failed` and `lost`. */
  error?: { code: string; message: string };
  /** The entries that the run resumed or took on its way, in that order; once it has ended. */
  resumed_interactions?: string[];
}
