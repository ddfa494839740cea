import type { Json, WorkerContext } from "../machines/vocabulary.ts";
import { Cap, type CapKind } from "./asks/caps.ts";
import { Inbox } from "./asks/inbox.ts";
import { recordAbandoned, recordAnswered, recordAsked } from "./asks/record.ts";
import { reply, replyFields } from "./asks/reply.ts";
import { recordSteered } from "./subagent/record.ts";
import { questionOf, type Question, type ReplyReceipt } from "./asks/question.ts";
import { Visits } from "./asks/visits.ts";
import { Backends } from "./backends/backends.ts";
import { delegationOf } from "./deliveries/delegation.ts";
import { Deliveries } from "./deliveries/deliveries.ts";
import type { AssignmentStatus } from "./deliveries/assignment.ts";
import { Handle } from "./deliveries/handle.ts";
import { Lookout } from "./deliveries/lookout.ts";
import { acknowledge, forgetUnread, recordClosed, recordResult } from "./deliveries/record.ts";
import { resultOf, type Result } from "./deliveries/result.ts";
import { ResultFiles } from "./deliveries/result-files.ts";
import type { BackendFactory } from "./backend.ts";
import { Definitions } from "./definitions/roster.ts";
import type { Clock } from "./clock.ts";
import type { Engine } from "./engine.ts";
import { Doors } from "./doors/doors.ts";
import { Runs } from "./doors/runs.ts";
import { HerdError } from "./errors.ts";
import { Limits } from "./evidence/owner-limits.ts";
import { releaseClaims } from "./claims.ts";
import { Events } from "./events.ts";
import { Agents } from "./functions/agent.ts";
import { Functions } from "./functions/functions.ts";
import { Kernel } from "./kernel/kernel.ts";
import type { AskRecord, LaunchRecord, OutcomeRecord, RequestRecord } from "./kernel/records.ts";
import type { Step, Told } from "./kernel/step.ts";
import type { Tree } from "./kernel/tree.ts";
import { Roster } from "./roster.ts";
import type { ResolvedOptions } from "./options.ts";
import { Repeats } from "./repeats.ts";
import { SessionFiles } from "./sessions/session-files.ts";
import { keys } from "./store/keys.ts";
import type { Store } from "./store/store.ts";

export interface EngineOptions {
  store: Store;
  options: ResolvedOptions;
  clock: Clock;
  /** The working directory of owners that name none. */
  cwd: string;
  backends: readonly BackendFactory[];
  /** Which backend runs an agent; functions in this process unless it says otherwise. */
  backendOf?(agent: string): string | undefined;
}

/** One open store with everything that works on it, wired together. The public herd is a thin face of this. */
export class HerdEngine implements Engine {
  readonly options: ResolvedOptions;
  readonly clock: Clock;
  readonly cwd: string;
  readonly events = new Events({ begun: false });
  readonly agents: Agents;
  readonly roster: Roster;
  readonly kernel: Kernel;
  readonly limits: Limits;
  readonly deliveries: Deliveries;
  readonly visits: Visits = new Visits(this);
  readonly inbox: Inbox;
  readonly steers = new Repeats();
  readonly runs: Runs;
  readonly doors: Doors;
  readonly caps: Readonly<Record<CapKind, Cap>>;
  readonly functions: Functions;
  readonly backends: Backends;
  readonly lookout: Lookout;
  readonly sessions: SessionFiles;
  readonly resultFiles: ResultFiles;
  /** Where owners of this process look up the files of their replies, by their trees. */
  readonly folders = new Map<string, string>();
  /** Set when the herd takes nothing any more: whoever waits for news hears it. */
  closed: HerdError | undefined;
  readonly closings = new Set<string>();
  readonly #gone = new Map<string, (() => void)[]>();
  readonly #leaving = new Set<(error: HerdError) => void>();
  readonly #quiet = new Set<() => void>();
  #numbers = 0;

  constructor({ store, options, clock, cwd, backends, backendOf }: EngineOptions) {
    this.options = options;
    this.clock = clock;
    this.cwd = cwd;
    this.agents = new Agents(options.agents, options.definitions !== undefined);
    this.roster = new Roster(this.agents, options.definitions && new Definitions(options.definitions));
    this.kernel = new Kernel(store, {
      sync: options.durability !== "process",
      maxInFlight: options.maxInFlight,
      maxInFlightBytes: 16 * 1024 * 1024,
      lazyMs: 20,
      attempts: options.reopen.attempts,
      pauseMs: options.reopen.pauseMs,
      pause: (ms) => clock.pause(ms),
      maxTrees: options.maxTrees,
      passive: options.passive,
      executes: options.runWorkers,
      now: () => clock.now(),
      record: (told, step) => this.#record(told, step),
      notesChanges: () => this.events.has("state"),
      captured: (step) => this.#captured(step),
      fenced: (error) => this.#fenced(error),
    });
    this.limits = new Limits(this.kernel, options);
    this.deliveries = new Deliveries({
      kernel: this.kernel,
      events: this.events,
      request: (requestId) => this.request(requestId),
      result: (request, outcome, attempt) => this.result(request, outcome, attempt),
      question: (ask, request, attempt) => this.question(ask, request, attempt),
      acknowledge: (delivery) => this.kernel.inBackground(acknowledge(this, delivery)),
      quiet: () => this.quieter(),
    });
    this.caps = {
      caller: new Cap(this.kernel, "caller", options.maxConcurrentCaller),
      user: new Cap(this.kernel, "user", options.maxConcurrent),
    };
    this.inbox = new Inbox(this);
    this.runs = new Runs(this);
    this.doors = new Doors(this, this.runs);
    this.functions = new Functions(this);
    this.backends = new Backends(this, backends, backendOf);
    this.sessions = new SessionFiles(this.kernel);
    this.resultFiles = new ResultFiles(store.directory, options.passive);
    this.lookout = new Lookout(this);
  }

  /** Goes on with what was under way when the store was last closed, or its process ended. */
  async resume(): Promise<void> {
    if (!this.options.passive) await this.backends.resume();
  }

  /** An accepted request. */
  request(requestId: string): RequestRecord | undefined {
    return this.kernel.read<RequestRecord>(keys.request(requestId));
  }

  /** A worker's last sign of life: on disk, or a progress note of this process. UTC milliseconds. */
  lastActivityAt({ runId, lastActivityAt }: WorkerContext): number {
    return Math.max(lastActivityAt, this.functions.execution(runId)?.reports.lastAt ?? 0);
  }

  /** Unique in this store, and in the order of the calls: the id of a delivery, the place of an order. */
  newNumber(): string {
    const epoch = this.kernel.epoch.toString(36).padStart(6, "0");
    return `${epoch}${(++this.#numbers).toString(36).padStart(9, "0")}`;
  }

  /** Whom a worker's deliveries are addressed to: its parent's run, or the tree's owner. */
  ownerKey(tree: Tree, path: string): string {
    return parentRunId(path) ?? tree.ownerKey;
  }

  /** A child has news: a parent that waits for its children goes on. */
  wakeParent(step: Step, path: string): void {
    const runId = parentRunId(path);
    const parent = runId === undefined ? undefined : step.worker(runId);
    if (parent) this.backends.wake(step, parent);
  }

  /** The agents that a parent worker may start: as its definition said when it was launched. */
  subagentsOf({ agent, runId }: WorkerContext): readonly string[] {
    const frozen = this.kernel.read<LaunchRecord>(keys.launch(runId))?.policy;
    return frozen?.subagents ?? this.agents.find(agent)?.subagents ?? [];
  }

  /** Finished work stays readable for a while. */
  retain(step: Step, requestId: string): void {
    step.put(keys.due(step.now + this.options.retention.resultsMs, "retention", requestId), {});
  }

  result(request: RequestRecord, outcome: OutcomeRecord, attempt: number): Result {
    return resultOf(request, outcome, {
      attempt,
      delegation: delegationOf(this.kernel.loaded(request.tree), request),
      files: this.resultFiles,
      sessionFile: this.sessions.pathFor(request),
    });
  }

  question(ask: AskRecord, request: RequestRecord, attempt: number): Question {
    return questionOf(ask, request, attempt, (message, options) => this.replyTo(ask, request, message, options));
  }

  /** Answers a question for whoever has it. @param cwd where its files are looked up. */
  async replyTo(
    ask: AskRecord,
    request: RequestRecord,
    message: Json,
    options: { files?: string[]; id?: string } = {},
    cwd = this.folders.get(ask.owner) ?? this.cwd,
  ): Promise<ReplyReceipt> {
    return reply(this, {
      ...replyFields({ ...options, askId: ask.askId, message }),
      owner: ask.owner,
      // A parent's workers work where it works.
      cwd: request.parentRunId === undefined ? cwd : request.cwd,
      operation: "reply",
    });
  }

  /** An accepted request, from the disk. @throws HerdError `target_not_found`. */
  async accepted(requestId: string): Promise<RequestRecord> {
    await this.kernel.settled();
    const request = this.kernel.committed<RequestRecord>(keys.request(requestId));
    if (request) return request;
    throw new HerdError({
      category: "target_not_found",
      reason: "target_not_found",
      message: `There is no assignment ${JSON.stringify(requestId)} in this store`,
      nextAction: "use the requestId that assign gave; finished ones are kept for the time set in retention",
      operation: "assignment",
    });
  }

  /** The handle of an accepted request. One that only looks leaves it to others to acknowledge what it gives. */
  handle(request: RequestRecord, looks = false): Handle {
    return new Handle(request, this.lookout, looks);
  }

  status(request: RequestRecord): Promise<AssignmentStatus> {
    return this.lookout.status(request);
  }

  news(requestId: string, signal: AbortSignal | undefined): Promise<void> {
    return this.lookout.news(requestId, signal);
  }

  /** Resolves when a worker is gone, with whatever executed it. */
  async gone(treeId: string, runId: string): Promise<void> {
    const tree = await this.kernel.tree(treeId);
    // What is gone in memory may still be on its way to the disk.
    if (tree.worker(runId) === undefined) return this.kernel.settled();
    await new Promise<void>((resolve) => {
      const waiting = this.#gone.get(runId) ?? [];
      this.#gone.set(runId, [...waiting, resolve]);
    });
  }

  hold(): () => void {
    return this.lookout.hold();
  }

  async whileOpen<T>(work: Promise<T>): Promise<T> {
    const { promise: over, reject } = Promise.withResolvers<never>();
    if (this.closed) reject(this.closed);
    this.#leaving.add(reject);
    try {
      return await Promise.race([work, over]);
    } finally {
      this.#leaving.delete(reject);
    }
  }

  /** Calls back once nothing is taken any more. @returns how to stop listening. */
  whenLeaving(tell: (error: HerdError) => void): () => void {
    this.#leaving.add(tell);
    return () => void this.#leaving.delete(tell);
  }

  /** Nothing is taken any more: who waits for what may never come now hears that. */
  leave(error: HerdError): void {
    this.closed ??= error;
    this.backends.launches.abandon(error);
    for (const reject of this.#leaving) reject(error);
    this.deliveries.wakeAll();
  }

  /** Something may have come to rest: whoever waits for that looks again. */
  quieter(): void {
    for (const look of this.#quiet) look();
  }

  /**
   * Resolves once nothing happens any more unless somebody outside acts or time passes.
   * @param asleep how many functions wait for time to pass.
   */
  async idle(asleep: () => number = () => 0): Promise<void> {
    for (;;) {
      await this.kernel.settled();
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      const quiet = this.functions.executing <= asleep() && this.deliveries.running + this.backends.running === 0;
      if (this.kernel.idle && quiet) return;
      if (this.kernel.idle) {
        await new Promise<void>((resolve) => {
          const look = () => {
            this.#quiet.delete(look);
            resolve();
          };
          this.#quiet.add(look);
        });
      }
    }
  }

  #record({ fact, worker }: Told, step: Step): void {
    switch (fact.type) {
      case "ask.opened":
        recordAsked(this, fact, worker, step);
        break;
      case "ask.answered":
        recordAnswered(this, fact, worker, step);
        break;
      case "asks.abandoned":
        recordAbandoned(this, fact, step);
        break;
      case "result.stored":
        recordResult(this, fact, worker, step);
        break;
      case "assignment.closed":
        recordClosed(this, fact, worker, step);
        break;
      case "result.dropped":
        step.after(() =>
          this.events.emit("dropped", {
            label: worker.context.label,
            requestId: fact.requestId ?? undefined,
            why: fact.why,
          }),
        );
        break;
      case "order.steer":
        recordSteered(this, fact, worker, step);
        break;
      case "worker.closed":
        releaseClaims(step, worker.context);
        step.after(() => this.#tellGone(worker.context.runId));
        break;
      default:
    }
    forgetUnread(this, fact, worker, step);
    this.backends.recorded(fact, worker, step);
  }

  #captured(step: Step): void {
    this.#tellStates(step);
    if (this.visits.watches(step.tree.id)) step.after(() => this.visits.look(step.tree.id));
  }

  #tellStates(step: Step): void {
    if (step.changes.length === 0) return;
    const changes = [...step.changes];
    step.after(() => {
      for (const change of changes) this.events.emit("state", change);
    });
  }

  #tellGone(runId: string): void {
    for (const resolve of this.#gone.get(runId) ?? []) resolve();
    this.#gone.delete(runId);
  }

  #fenced(error: HerdError): void {
    this.functions.stopAll("fenced", error.message);
    this.leave(error);
  }
}

function parentRunId(path: string): string | undefined {
  const parts = path.split("/");
  return parts.length < 2 ? undefined : parts.at(-2);
}
