/// <reference lib="esnext.disposable" preserve="true" />
import type { Json } from "../machines/vocabulary.ts";
import type { ReplyReceipt } from "./asks/question.ts";
import type { ParkedEntry } from "./asks/entry.ts";
import type { HerdInbox } from "./asks/people.ts";
import type { ParkedToolName } from "./asks/visit-shapes.ts";
import type { VisitOutcome, VisitRequest } from "./asks/visit-shapes.ts";
import type { Assignment } from "./deliveries/assignment.ts";
import type { Receiver } from "./deliveries/desk.ts";
import type { Door, DoorRequest, DoorRun } from "./doors/shapes.ts";
import type { Result } from "./deliveries/result.ts";
import type { MessageLimits } from "./evidence/limits.ts";
import type { HerdEventName, HerdEvents } from "./events.ts";
import type { OwnerRef } from "./kernel/records.ts";
import type { Subject } from "./owners.ts";
import type { ToolCall } from "./subagent/shapes.ts";
import type { AssignRequest, CloseReceipt, Listing, SteerReceipt } from "./subagent/shapes.ts";

/** Whoever assigns and answers. The id is the whole identity: the same id after a restart is the same owner. */
export interface Owner<Agent extends string> {
  /**
   * The model-facing `subagent` tool: snake_case JSON in and out, public errors never thrown.
   * @param call what is known of the model's call besides: ids under which it can be made again, and the question that a
   * reply means.
   */
  subagent(request: unknown, call?: ToolCall): Promise<any>;
  /**
   * Assigns a task to a fresh worker; resolves when it is accepted on disk.
   *
   * What can happen twice: with `id` nothing: the same id gives the same handle, also after a restart and after the
   * end. Without it every call is a new assignment.
   * @throws HerdError `unknown_agent`, `worker_label_exists`, `id_reused`, `overloaded`, … before anything changed.
   */
  assign(request: AssignRequest<Agent>): Promise<Assignment>;
  /**
   * Changes what a worker works on now; it never makes a second result.
   *
   * What can happen twice: the worker may hear the same steer again after a restart.
   */
  steer(request: { label: string; message: string; files?: string[] }): Promise<SteerReceipt>;
  /**
   * Answers one question. With `askId` exactly that one; with `label` whatever the worker asks now.
   *
   * What can happen twice: nothing. The same `id` succeeds quietly, any other second reply is `already_answered`.
   */
  reply(
    request: ({ askId: string } | { label: string }) & { message: Json; files?: string[]; id?: string },
  ): Promise<ReplyReceipt>;
  /** Closes a worker and everything below it. Its assignment ends as `closed` for whoever waits for it. */
  close(request: { label: string }): Promise<CloseReceipt>;
  /** The workers of this owner's workspace as a tree in rows, and the agents it may assign. Changes nothing. */
  list(): Promise<Listing>;
  /** What waits for this owner, oldest first: its workers' questions, and outcomes that it has not acknowledged. */
  parked(): Promise<ParkedEntry[]>;
  /**
   * One call of `list_parked`, `resume_parked` or `cancel_parked` on what waits for this owner: snake_case JSON in and out,
   * public errors never thrown.
   */
  parkedTool(name: ParkedToolName, input: unknown): Promise<any>;
  /** Gives the place of the receiver back; what is open stays open. */
  detach(): void;
}

/** How an owner works and hears. */
export interface OwnerOptions extends Receiver {
  /** What labels are unique in; the owner id unless set. */
  workspace?: string;
  /**
   * Where its workers work and its files are looked up; the process's directory at `createHerd` or `connectHerd` unless
   * set.
   */
  cwd?: string;
  /**
   * How large its messages may be, where that differs from the herd's; so are the questions of its workers, and what those
   * give their own workers. The last that were given to this owner count, whoever gave them, until the process that has the
   * store ends.
   */
  limits?: MessageLimits;
  /** Takes over from another receiver of this owner. */
  replace?: boolean;
}

/** A herd's whole condition in one word. */
export type HerdStatus = "opening" | "open" | "fenced" | "closing" | "closed";

/** An owner that has something open in the store, and how much. */
export interface OwnerRow extends OwnerRef {
  /** What its workers' labels are unique in; more than one if it was used with several. */
  workspaces: string[];
  /** Its workers, those below others included. */
  workers: number;
  /** Questions that wait for its reply. */
  asking: number;
  /** Results that it has not acknowledged. */
  results: number;
}

/** What a backup holds. */
export interface BackupReceipt {
  /** Absolute. */
  directory: string;
  /** Rows of the store. */
  rows: number;
  /** Session and result files beside it. */
  files: number;
}

/** An engine over one store: in this process (`createHerd`) or in another one (`connectHerd`). */
export interface Herd<Agent extends string = string> extends AsyncDisposable {
  readonly status: HerdStatus;
  /**
   * An owner by its id (1 to 512 characters) or its subject. With `onQuestion` or `onResult` it is a live receiver:
   * it hears what is open, then what comes, until `detach`.
   * @throws HerdError `bad_owner`, `receiver_exists`.
   */
  owner(id: string | Subject, options?: OwnerOptions): Owner<Agent>;
  /**
   * Receives for every owner of a scope that has no receiver of its own: what is open there, then what comes.
   * @returns how to stop.
   * @throws HerdError `receiver_exists`, `bad_owner`.
   */
  receive(filter: { scope: string }, receiver: Receiver): () => void;
  /** Every owner that has workers or results in the store, by id. Reads the whole store and changes nothing. */
  owners(): Promise<OwnerRow[]>;
  /**
   * What waits on a subject, oldest first, each once. **Any** shared key of the same scope gives sight and power over an
   * entry: put into `keys` only what each holder may act on, and the rest into `scope` or `metadata`. An owner id `"x"`
   * is the subject `{ scope: "owner", keys: { id: "x" } }`.
   * @throws HerdError `bad_owner`.
   */
  parked(subject: Subject): Promise<ParkedEntry[]>;
  /**
   * Takes an outcome that waits on a subject, which acknowledges it; the oldest unless `id` names one. A failed one is
   * a result with status `failed`, nothing is thrown for it; undefined when none waits.
   *
   * What can happen twice: nothing; of two who take at once, one gets it. A taken result stays readable by its handle.
   * @throws HerdError `entry_gone`, `visit_request` for an id that has no outcome, `being_delivered`.
   */
  take(subject: Subject, id?: string): Promise<Result | undefined>;
  /**
   * Visits a subject: cancels first, then at most one of resume, take and start; all of it, or nothing. What a resumed or
   * started run comes to next is what the visit resolves to: nobody else gets its result, and a receiver of the subject
   * hears its questions too.
   *
   * What can happen twice: nothing; of two that resume the same ask one wins. With `id` the same visit made again finds what
   * it did and waits for the same outcome.
   * @throws HerdError `visit_request` with its `rule`, `entry_gone`, `answer_mismatch`, `undeclared_extras`, or what an
   * assign is refused for, before anything changed; `run_failed` with what the run failed of, which is consumed then.
   */
  visit(request: VisitRequest<Agent>): Promise<VisitOutcome>;
  /**
   * Makes a door: something outside that visits. Its programs are compiled, one with a name is saved, and the same name again
   * updates it. A contract of plain functions is not saved: until it is registered again its fires wait.
   * @throws HerdError `door_contract` with line and column, `invalid_field`, `unknown_agent`, … before anything changed.
   */
  door(request: DoorRequest<Agent>): Promise<Door>;
  /**
   * When the next deadline, expiry, launch budget or schedule comes; undefined when none does. What is only tidied up at
   * some time does not count.
   */
  nextDue(): Promise<Date | undefined>;
  /** The saved doors, by name. */
  doors(): Promise<Door[]>;
  /**
   * The record of a submitted run, by the id that its door gave.
   * @throws HerdError `target_not_found`.
   */
  run(id: string): Promise<DoorRun>;
  /** The records of all submitted runs, oldest first, without what they came to. */
  runs(): Promise<DoorRun[]>;
  /** What people are asked by any worker of this herd. */
  readonly inbox: HerdInbox;
  /**
   * The handle of an assignment by its request id, in any process that has the store.
   * @throws HerdError `target_not_found`.
   */
  assignment(requestId: string): Promise<Assignment>;
  /** Listens to what was committed. @returns how to stop. */
  on<Name extends HerdEventName>(event: Name, listener: (event: HerdEvents[Name]) => void): () => void;
  /** Lets everything happen that is due; `createHerd` calls it every `tickMs`. */
  tick(now?: Date): Promise<void>;
  /**
   * Writes a copy of the store, as it is at one moment, and its session and result files into a folder that is new or
   * empty. Whatever is accepted meanwhile is not in it.
   * @param directory absolute, or relative to this process's directory; `createHerd({ directory })` opens the copy.
   * @throws HerdError `bad_backup` before anything is written, `no_disk`, `backup_failed`.
   */
  backup(directory: string): Promise<BackupReceipt>;
  /**
   * Stops the program without failing the work: takes no new commands, aborts every `worker.signal`, waits up to
   * `graceMs` (10,000) for functions that execute, and closes the store. Open work goes on at the next start.
   * Of a connected herd it ends the connection only.
   */
  close(options?: { graceMs?: number }): Promise<void>;
}
