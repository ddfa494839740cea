import { setTimeout as pause } from "node:timers/promises";
import type { WorkerContext, WorkerFact } from "../../machines/vocabulary.ts";
import type { Engine, FunctionExecutor, Teller } from "../engine.ts";
import type { AskRecord, OrderRecord, SteerRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import type { WorkerView } from "../kernel/tree.ts";
import { passFailpoint } from "../store/failpoint.ts";
import { keys } from "../store/keys.ts";
import { Execution } from "./execution.ts";
import { progressOf, settleLost } from "./finish.ts";
import { Slots } from "./slots.ts";
import type { StopReason } from "./worker.ts";

const RUN = "run";
/** Orders looked at together when a store is opened. */
const AT_ONCE = 200;

/** What a run's order remembers over ends of the process. */
interface RunOrder extends OrderRecord {
  agent: string;
  /** Orders by when they were given: runs that wait for a place start in this order. */
  since: string;
  /** Ends of the process in a row while this run executed, and how far its journal was at the first. */
  restarts: number;
  progress: number;
}

/**
 * Workers that are async functions. Their order `run` stands in the store exactly while there is something for the
 * function to do, so that opening the store starts those runs and no others.
 */
export class Functions implements FunctionExecutor {
  readonly #engine: Engine;
  readonly #executions = new Map<string, Execution>();
  readonly #slots: Slots;
  /** Launches that have their place already. */
  readonly #reserved = new Set<string>();
  /** Runs that wait for a place, with how to give up waiting. */
  readonly #queued = new Map<string, () => void>();
  /** Runs that wait in memory, longest first. */
  readonly #waiting = new Set<Execution>();
  readonly #waits = new Map<string, string>();
  readonly #stops = new Map<string, StopReason["code"]>();
  #closing = false;

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#slots = new Slots(engine.options.concurrency, (agent) => engine.agents.find(agent)?.concurrency);
  }

  /** How many functions execute, rather than wait for an answer or for children. */
  get executing(): number {
    let executing = 0;
    for (const execution of this.#executions.values()) if (!execution.waiting) executing++;
    return executing;
  }

  execution(runId: string): Execution | undefined {
    return this.#executions.get(runId);
  }

  /** In the batch that accepts an assignment: execute at once, or queue for a place. */
  launched(step: Step, { runId, agent }: Pick<WorkerContext, "runId" | "agent">): void {
    if (!this.#slots.tryTake(agent)) {
      step.send(runId, { type: "launch.queued" });
      return;
    }
    this.#reserved.add(runId);
    step.ifUndone(() => {
      if (this.#reserved.delete(runId)) this.#slots.release(agent);
    });
    step.send(runId, { type: "launch.accepted", at: step.now });
  }

  /** A waiting parent has news of its children: it goes on. */
  wake(step: Step, parent: WorkerView): void {
    const { runId } = parent.context;
    if (parent.state === "blocked.onChildren") {
      step.send(runId, { type: "turn.started", at: step.now });
      this.order(step, parent);
    }
    step.after(() => this.#go(step.tree.id, runId, parent.context.agent));
  }

  /** What facts of these workers mean for their functions, in the same batch. */
  recorded(fact: WorkerFact, worker: Teller, step: Step): void {
    const { runId, agent } = worker.context;
    switch (fact.type) {
      case "order.run":
        this.order(step, worker);
        step.after(() => this.#go(step.tree.id, runId, agent));
        break;
      case "order.steer": {
        step.send(runId, { type: "delivered" });
        // Waiting for its children it goes on at once, to read what came.
        const steered = step.worker(runId);
        if (steered) this.order(step, steered);
        step.after(() => this.#go(step.tree.id, runId, agent));
        break;
      }
      case "ask.opened":
        // Between two waits of a function there is a turn only where its chart opened one.
        if (step.worker(runId)?.state === "working.inTurn") step.send(runId, { type: "turn.ended", at: step.now });
        step.del(keys.order(runId, RUN));
        step.after(() => this.#executions.get(runId)?.asked(fact.askId));
        break;
      case "result.stored":
        step.del(keys.order(runId, RUN));
        break;
      case "assignment.closed": {
        const code = fact.reason.code === "deadline_exceeded" ? "deadline_exceeded" : "closed";
        this.#stops.set(runId, code);
        step.ifUndone(() => this.#stops.delete(runId));
        // At once, also while its children are still being closed.
        step.after(() => this.#revoke(runId));
        break;
      }
      case "order.stop":
        // A revoked handle is the proof that nothing executes it: whatever the function still does is nobody's.
        step.after(() => this.#stop(runId));
        step.send(runId, { type: "backend.gone" });
        break;
      case "worker.closed":
        if (step.read(keys.order(runId, RUN)) !== undefined) step.del(keys.order(runId, RUN));
        break;
      default:
    }
  }

  /** Writes down that a run has something to do. */
  order(step: Step, { path, context }: Teller): void {
    const order: RunOrder = {
      orderId: RUN,
      kind: "run",
      tree: step.tree.id,
      path,
      runId: context.runId,
      agent: context.agent,
      since: this.#engine.newNumber(),
      restarts: 0,
      progress: 0,
    };
    step.put(keys.order(context.runId, RUN), order);
  }

  /** Why a run waits although somebody could do something about it. Known of runs in memory. */
  waitsFor(runId: string): string | undefined {
    return this.#waits.get(runId);
  }

  noteWait(runId: string, why: string | undefined): void {
    if (why === undefined) this.#waits.delete(runId);
    else this.#waits.set(runId, why);
  }

  rests(runId: string): boolean {
    return this.#executions.get(runId)?.waiting ?? true;
  }

  /** The answer to an open question is on disk. */
  answered(runId: string, ask: AskRecord): void {
    this.#executions.get(runId)?.answered(ask);
  }

  steered(runId: string, steer: SteerRecord): void {
    this.#executions.get(runId)?.steers.add(steer);
  }

  /** Goes on with the runs that were executing when the store was last closed or the process ended. */
  async resume(orders: readonly OrderRecord[]): Promise<void> {
    const crashed = !this.#engine.kernel.cleanBefore;
    const inOrder = (orders as RunOrder[]).toSorted((a, b) => (a.since < b.since ? -1 : 1));
    for (let at = 0; at < inOrder.length; at += AT_ONCE) {
      const some = inOrder.slice(at, at + AT_ONCE);
      const lost = await Promise.all(some.map(async (order) => crashed && (await this.#countRestart(order))));
      for (const [index, order] of some.entries()) if (!lost[index]) this.#go(order.tree, order.runId, order.agent);
    }
  }

  /** Parks or starts what time has made due. */
  tick(now: number): void {
    const { parkAfter } = this.#engine.options;
    if (parkAfter === undefined) return;
    for (const execution of [...this.#executions.values()]) {
      if (execution.waitingSince !== undefined && now - execution.waitingSince >= parkAfter) execution.park();
    }
  }

  /** Called when a run has come to wait; keeps only so many of them in memory. */
  cameToWait(execution: Execution): void {
    const { parkAfter, maxParkedRuns } = this.#engine.options;
    if (parkAfter === 0) execution.park();
    // Insertion order is waiting order.
    this.#waiting.delete(execution);
    if (!execution.revoked) this.#waiting.add(execution);
    for (const oldest of this.#waiting) {
      if (this.#waiting.size <= maxParkedRuns) break;
      oldest.park();
    }
    this.#engine.visits.look(execution.treeId);
    this.#engine.quieter();
  }

  /** A waiting run has something to do again. */
  wentOn(execution: Execution): void {
    this.#waiting.delete(execution);
  }

  /** An execution is over or revoked. */
  ended(execution: Execution): void {
    this.#waits.delete(execution.runId);
    this.#waiting.delete(execution);
    if (this.#executions.get(execution.runId) === execution) this.#executions.delete(execution.runId);
    this.#engine.quieter();
  }

  takeSlot(agent: string, enter: () => void): () => void {
    return this.#slots.take(agent, enter);
  }

  releaseSlot(agent: string): void {
    this.#slots.release(agent);
  }

  /** Stops every function; what they have not journalled happens again at the next start. */
  stopAll(code: "herd_closing" | "fenced" | "parked", message: string): void {
    for (const leave of this.#queued.values()) leave();
    this.#queued.clear();
    for (const execution of [...this.#executions.values()]) execution.stop(code, message);
  }

  /** Asks every function to stop and waits for those that execute, at most `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    for (const leave of this.#queued.values()) leave();
    this.#queued.clear();
    const finishing: Promise<unknown>[] = [];
    for (const execution of [...this.#executions.values()]) {
      if (execution.waiting) execution.park();
      else finishing.push(execution.finishEarly());
    }
    if (finishing.length > 0 && graceMs > 0) {
      const grace = new AbortController();
      const over = pause(graceMs, undefined, { signal: grace.signal }).catch(() => undefined);
      await Promise.race([Promise.all(finishing), over]);
      grace.abort();
    }
    this.stopAll("herd_closing", "The herd is closing.");
  }

  /** Starts the function, or lets the one that waits look again. */
  #go(treeId: string, runId: string, agent: string): void {
    const running = this.#executions.get(runId);
    if (running) return running.wake();
    if (this.#closing || !this.#engine.options.runWorkers || this.#queued.has(runId)) return;
    if (this.#reserved.delete(runId)) return this.#start({ treeId, runId, agent, fresh: true });
    const leave = this.#slots.take(agent, () => {
      this.#queued.delete(runId);
      this.#start({ treeId, runId, agent, fresh: false });
    });
    if (!this.#executions.has(runId)) this.#queued.set(runId, leave);
  }

  /** With its place taken. */
  #start(run: { treeId: string; runId: string; agent: string; fresh: boolean }): void {
    passFailpoint("order.before");
    const execution = new Execution(this.#engine, this, run);
    this.#executions.set(run.runId, execution);
    execution.start();
    passFailpoint("order.after");
  }

  #stop(runId: string): void {
    this.#revoke(runId);
    this.#stops.delete(runId);
  }

  #revoke(runId: string): void {
    this.#queued.get(runId)?.();
    this.#queued.delete(runId);
    const code = this.#stops.get(runId) ?? "closed";
    this.#executions.get(runId)?.stop(code, code === "closed" ? "The worker was closed." : "The deadline passed.");
  }

  /** Counts ends of the process without progress. @returns true when the run was given up. */
  async #countRestart(order: RunOrder): Promise<boolean> {
    const tree = await this.#engine.kernel.tree(order.tree);
    if (tree.unknown.some((row) => row.path === order.path)) return true;
    const progress = await progressOf(this.#engine, order);
    const restarts = progress > order.progress ? 1 : order.restarts + 1;
    if (restarts >= this.#engine.options.restarts) {
      await settleLost(this.#engine, order, restarts);
      return true;
    }
    await this.#engine.kernel.run(
      order.tree,
      (step) => {
        if (step.worker(order.runId)) step.put(keys.order(order.runId, RUN), { ...order, restarts, progress });
        else step.del(keys.order(order.runId, RUN));
      },
      { operation: "restart" },
    );
    return false;
  }
}
