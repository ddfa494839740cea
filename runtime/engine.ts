import type { WorkerContext, WorkerFact } from "../machines/vocabulary.ts";
import type { Question } from "./asks/question.ts";
import type { AssignmentStatus } from "./deliveries/assignment.ts";
import type { Result } from "./deliveries/result.ts";
import type { Deliveries } from "./deliveries/deliveries.ts";
import type { Events } from "./events.ts";
import type { Agents } from "./functions/agent.ts";
import type { Kernel } from "./kernel/kernel.ts";
import type { AskRecord, OrderRecord, OutcomeRecord, RequestRecord, SteerRecord } from "./kernel/records.ts";
import type { Step } from "./kernel/step.ts";
import type { Tree, WorkerView } from "./kernel/tree.ts";
import type { ResolvedOptions } from "./options.ts";
import type { SessionFiles } from "./sessions/session-files.ts";

/** What time is it, and how to wait: the system's, or a test's. */
export interface Clock {
  /** UTC milliseconds. */
  now(): number;
  pause(ms: number): Promise<void>;
}

/** The worker that told a fact, as it was when it told it. */
export interface Teller {
  path: string;
  context: WorkerContext;
}

/** What carries out workers, as the rest of the engine sees it. */
export interface Executor {
  /** The rest of a launch, in the batch that accepts it. */
  launched(step: Step, context: Pick<WorkerContext, "runId" | "backend" | "agent">): void;
  /** A parent's children have news. */
  wake(step: Step, parent: WorkerView): void;
  /** Facts become orders, in the batch that tells them. */
  recorded(fact: WorkerFact, worker: Teller, step: Step): void;
}

/** Workers that are functions in this process. */
export interface FunctionExecutor extends Executor {
  /** Goes on with the runs that were executing when the store was last closed or the process ended. */
  resume(orders: readonly OrderRecord[]): Promise<void>;
  /** The answer to an open question is on disk. */
  answered(runId: string, ask: AskRecord): void;
  /** A steer is on disk. */
  steered(runId: string, steer: SteerRecord): void;
}

/** What the parts of the engine need of each other. `HerdEngine` wires them together. */
export interface Engine {
  readonly options: ResolvedOptions;
  readonly clock: Clock;
  /** The working directory of owners that name none. */
  readonly cwd: string;
  readonly events: Events;
  readonly agents: Agents;
  readonly kernel: Kernel;
  readonly deliveries: Deliveries;
  readonly sessions: SessionFiles;
  readonly functions: FunctionExecutor;
  readonly backends: Executor & { backendFor(agent: string): string };
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
  /** The label is free again, unless another worker has it by now. */
  releaseLabel(step: Step, context: WorkerContext): void;
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
  /** Something may have come to rest: whoever waits for that looks again. */
  quieter(): void;
}
