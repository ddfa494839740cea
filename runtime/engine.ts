import type { WorkerContext, WorkerFact, WorkerInput } from "../machines/vocabulary.ts";
import type { Cap, CapKind } from "./asks/caps.ts";
import type { Next, Watch } from "./asks/found.ts";
import type { Question } from "./asks/question.ts";
import type { BackendEvent, Identity, StartFailure } from "./backend.ts";
import type { Clock } from "./clock.ts";
import type { AssignmentStatus } from "./deliveries/assignment.ts";
import type { Result } from "./deliveries/result.ts";
import type { Deliveries } from "./deliveries/deliveries.ts";
import type { Events } from "./events.ts";
import type { HerdError } from "./errors.ts";
import type { Limits } from "./evidence/owner-limits.ts";
import type { LaunchPolicy } from "./definitions/definition.ts";
import type { Agents } from "./functions/agent.ts";
import type { Kernel } from "./kernel/kernel.ts";
import type {
  AskRecord,
  DeliveryRecord,
  LaunchRecord,
  OrderRecord,
  OutcomeRecord,
  RequestRecord,
  SteerRecord,
} from "./kernel/records.ts";
import type { Step } from "./kernel/step.ts";
import type { Tree, WorkerView } from "./kernel/tree.ts";
import type { ResolvedOptions } from "./options.ts";
import type { Repeats } from "./repeats.ts";
import type { Agent, Roster } from "./roster.ts";
import type { SessionFiles } from "./sessions/session-files.ts";

/** The worker that told a fact, as it was when it told it. */
export interface Teller {
  path: string;
  context: WorkerContext;
}

/** What carries out workers, as the rest of the engine sees it. */
export interface Executor {
  /** A parent's children have news. */
  wake(step: Step, parent: WorkerView): void;
  /** Facts become orders, in the batch that tells them. */
  recorded(fact: WorkerFact, worker: Teller, step: Step): void;
}

/** Workers that are functions in this process. */
export interface FunctionExecutor extends Executor {
  /** The rest of a launch, in the batch that accepts it. */
  launched(step: Step, context: Pick<WorkerContext, "runId" | "agent">): void;
  /** Goes on with the runs that were executing when the store was last closed or the process ended. */
  resume(orders: readonly OrderRecord[]): Promise<void>;
  /** Why a run waits although somebody could do something about it. */
  waitsFor(runId: string): string | undefined;
  /** Whether its function, if it is in memory at all, only waits. */
  rests(runId: string): boolean;
  /** The answer to an open question is on disk. */
  answered(runId: string, ask: AskRecord): void;
  /** A steer is on disk. */
  steered(runId: string, steer: SteerRecord): void;
}

/** What a launch needs besides the worker's input. */
export interface LaunchPlan {
  /** Stored when the worker's backend accepts it. */
  request: RequestRecord;
  /** Tells a repetition under the caller's id from another request. */
  hash: string;
  /** The whole budget in milliseconds. */
  timeoutMs: number | undefined;
  session?: NonNullable<LaunchRecord["session"]>;
  policy?: LaunchPolicy | undefined;
}

/** Workers in processes, and which backend runs whom. */
export interface ProcessExecutor extends Executor {
  /** Every folder in which a backend keeps session files. */
  readonly sessionFolders: readonly string[];
  /** The name of the backend that runs an agent's workers. @throws HerdError `no_backend` when there is none. */
  backendFor(agent: Agent): string;
  /** Whether workers could be started on a backend at all. @throws HerdError what speaks against it. */
  preflight(backend: string): void | Promise<void>;
  /** The rest of a launch: a function is accepted in the same batch, a process has to accept first. */
  launched(step: Step, input: WorkerInput, plan: LaunchPlan): void;
  report(runId: string, event: BackendEvent, requestId?: string): Promise<boolean>;
  /** Keeps the row that says whether opening the store has to look after a worker's process. */
  watch(step: Step, runId: string): void;
  /** A question or a result is addressed to a parent in a process. */
  deliver(step: Step, delivery: DeliveryRecord): void;
  /** That delivery is over. */
  withdraw(step: Step, delivery: Pick<DeliveryRecord, "owner" | "deliveryId">): void;
  /** Whether it is still on its way to the parent. */
  delivering(step: Step, delivery: Pick<DeliveryRecord, "owner" | "deliveryId">): boolean;
  readonly launches: {
    /** These rows say that it was started: they go when it comes to nothing. */
    takesBack(step: Step, runId: string, rows: string[]): void;
    answer(step: Step, runId: string, accepted?: (step: Step, request: RequestRecord) => void): Promise<RequestRecord>;
    outcome(
      treeId: string,
      runId: string,
      answer: Promise<RequestRecord>,
      signal: AbortSignal | undefined,
    ): Promise<RequestRecord>;
    fail(treeId: string, runId: string, failure: StartFailure): Promise<void>;
    /** Whether a launch is being rolled back: its answer comes with the proof of that. */
    rollsBack(runId: string): boolean;
  };
  readonly presence: {
    identify(worker: Pick<WorkerContext, "backend" | "runId" | "speaksFor">): Promise<Identity>;
    ended(treeId: string, worker: Pick<WorkerContext, "backend" | "runId" | "speaksFor">): Promise<string | undefined>;
  };
  readonly stops: {
    errorsIn(treeId: string): Record<string, string>;
    errorOf(runId: string): string | undefined;
    failed(step: Step, runId: string, error: string): boolean;
    gone(step: Step, worker: WorkerView | undefined, runId: string, cleanupError: string | undefined): boolean;
  };
}

/** Who waits inline for which run, in this process. */
export interface VisitWaits {
  /** Waits for what a run comes to, from now on. @param request that of the outermost run. */
  watch(request: RequestRecord, visitor?: string): Watch;
  /** What a run has come to by now; undefined while something of it goes on. */
  now(request: RequestRecord): Promise<Next | undefined>;
  /** Something of a tree is on disk, or came to rest. */
  look(treeId: string): void;
  /** The runs that wait, also over others, for a worker. @param chain the worker's own chain. */
  waitingFor(chain: readonly WorkerView[]): Set<string>;
}

/** The records of submitted runs, as the rest of the engine sees them. */
export interface RunRecords {
  /** An assignment ended: in that batch its record does. */
  ended(step: Step, requestId: string, outcome: OutcomeRecord["outcome"]): void;
  /** A question of a run is about to be answered. */
  answers(step: Step, runId: string): void;
  /** A worker resumed or took these entries. */
  noted(runId: string, ids: readonly string[]): Promise<void>;
}

/** What people are told of, as the rest of the engine sees it. */
export interface InboxDesk {
  /** A question to a person is on disk. */
  asked(ask: AskRecord, request: RequestRecord): void;
  /** A question needs no person any more, if it ever did. */
  ended(ask: AskRecord, why: "answered" | "expired" | "removed"): void;
}

/** What the parts of the engine need of each other. `HerdEngine` wires them together. */
export interface Engine {
  readonly options: ResolvedOptions;
  readonly clock: Clock;
  /** The working directory of owners that name none. */
  readonly cwd: string;
  readonly events: Events;
  /** The functions of this program. */
  readonly agents: Agents;
  /** Every agent that can be assigned. */
  readonly roster: Roster;
  readonly kernel: Kernel;
  /** How much of a message and its files is taken, by its owner. */
  readonly limits: Limits;
  readonly deliveries: Deliveries;
  /** Who waits inline for what a run comes to. */
  readonly visits: VisitWaits;
  /** Of submitted runs. */
  readonly runs: RunRecords;
  /** What is asked of people. */
  readonly inbox: InboxDesk;
  /** Steers that their callers have given ids. */
  readonly steers: Repeats;
  /** How many asks there may be, of either kind. */
  readonly caps: Readonly<Record<CapKind, Cap>>;
  readonly sessions: SessionFiles;
  readonly functions: FunctionExecutor;
  readonly backends: ProcessExecutor;
  /** An accepted request. */
  request(requestId: string): RequestRecord | undefined;
  /** A worker's last sign of life: on disk, or a progress note of this process. UTC milliseconds. */
  lastActivityAt(context: WorkerContext): number;
  /** Unique in this store, and in the order of the calls: the id of a delivery, the place of an order. */
  newNumber(): string;
  /** Whom a worker's deliveries are addressed to: its parent's run, or the tree's owner. */
  ownerKey(tree: Tree, path: string): string;
  /** A child has news: a parent that waits for its children goes on. */
  wakeParent(step: Step, path: string): void;
  /** The agents that a parent worker may start: as its definition said when it was launched. */
  subagentsOf(context: WorkerContext): readonly string[];
  /** Parents that are being closed, workers first: they start no further ones meanwhile. */
  readonly closings: Set<string>;
  /** Finished work stays readable for a while. */
  retain(step: Step, requestId: string): void;
  /** A result as its owner gets it, with what else that owner waits for. */
  result(request: RequestRecord, outcome: OutcomeRecord, attempt: number): Result;
  /** A question as its owner gets it, with its reply. */
  question(ask: AskRecord, request: RequestRecord, attempt: number): Question;
  /** Where an assignment stands now, for whoever looks on. */
  status(request: RequestRecord): Promise<AssignmentStatus>;
  /** Resolves with the next news of an assignment. Rejects with the signal's reason. */
  news(requestId: string, signal: AbortSignal | undefined): Promise<void>;
  /** Resolves when a worker is gone, with whatever executed it. */
  gone(treeId: string, runId: string): Promise<void>;
  /** Set when the herd takes nothing any more. */
  readonly closed: HerdError | undefined;
  /** Somebody waits: the process is not over yet. @returns how to end that. */
  hold(): () => void;
  /** Waits for what may never come once the herd closes. @throws HerdError `herd_closed` then. */
  whileOpen<T>(work: Promise<T>): Promise<T>;
  /** Something may have come to rest: whoever waits for that looks again. */
  quieter(): void;
}
