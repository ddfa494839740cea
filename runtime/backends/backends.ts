import type { WorkerFact, WorkerInput } from "../../machines/vocabulary.ts";
import { askOwner } from "../asks/ask.ts";
import { FUNCTIONS, type Backend, type BackendEvent, type BackendFactory, type BackendHost } from "../backend.ts";
import { acknowledgeIn } from "../deliveries/record.ts";
import { recordUnpersisted } from "../deliveries/unpersisted.ts";
import type { Engine, LaunchPlan, ProcessExecutor, Teller } from "../engine.ts";
import { HerdError, internalFailure, invalidRequest } from "../errors.ts";
import type { DeliveryRecord, LaunchRecord, OrderRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import type { WorkerView } from "../kernel/tree.ts";
import type { Agent } from "../roster.ts";
import { keys, prefixed } from "../store/keys.ts";
import { controllerOf } from "../subagent/parent.ts";
import { subagent } from "../subagent/tools.ts";
import { endsAnyway, isActivity, isNewsAt, needsProcess, toWorkerEvent } from "./events.ts";
import { Launches } from "./launches.ts";
import { Orders } from "./orders.ts";
import { Presence } from "./presence.ts";
import { Recovery } from "./recovery.ts";
import { Stops } from "./stops.ts";

/** Where orders go out to the processes of workers, and where what they report comes in. */
export class Backends implements BackendHost, ProcessExecutor {
  readonly launches: Launches;
  readonly presence: Presence;
  readonly stops: Stops;
  readonly #engine: Engine;
  readonly #backends = new Map<string, Backend>();
  /** The backend that was given first. */
  readonly #first: string | undefined;
  readonly #backendOf: (agent: string) => string | undefined;
  readonly #orders: Orders;
  readonly #recovery: Recovery;

  constructor(engine: Engine, factories: readonly BackendFactory[], backendOf?: (agent: string) => string | undefined) {
    this.#engine = engine;
    this.#backendOf = backendOf ?? (() => undefined);
    for (const factory of factories) {
      const backend = factory(this);
      this.#backends.set(backend.name, backend);
    }
    this.#first = this.#backends.keys().next().value;
    this.#orders = new Orders(engine, this.#backends, (treeId, runId) => this.#recovery.prove(treeId, runId));
    this.presence = new Presence(engine, this.#backends);
    this.launches = new Launches(engine, this.#backends, this.#orders, this.presence);
    this.stops = new Stops(engine, this.#backends, this.#orders, this.presence);
    this.#recovery = new Recovery(engine, this.#orders, this.presence, this.launches, this.stops);
  }

  /**
   * The name of the backend that runs an agent's workers: functions in this process, definition files on the first
   * backend.
   * @throws HerdError `no_backend` for a definition file without any.
   */
  backendFor({ name, definition }: Agent): string {
    const backend = this.#backendOf(name) ?? (definition === undefined ? FUNCTIONS : this.#first);
    if (backend !== undefined) return backend;
    throw invalidRequest(
      "assign",
      "no_backend",
      `The agent "${name}" is a definition file, and this herd has no backend that runs those`,
      "open the herd with a backend (createHerd({ backends })), or assign a function of this program",
      { field: "agent" },
    );
  }

  /** Looks whether workers could be started on a backend at all. @throws HerdError what speaks against it. */
  preflight(name: string): void | Promise<void> {
    // A function is accepted before it begins; a process has to begin before it is.
    if (!this.#engine.options.runWorkers && this.#backends.has(name)) {
      throw invalidRequest(
        "assign",
        "no_backend",
        `This herd runs no workers (runWorkers: false), and one of the backend "${name}" has to be started to be accepted`,
        "assign it in the program that runs the workers",
        { field: "agent" },
      );
    }
    return this.#backends.get(name)?.preflight?.();
  }

  /** Every folder in which a backend keeps session files. */
  get sessionFolders(): string[] {
    return [...this.#backends.values()].flatMap(({ sessionFolders = [] }) => sessionFolders);
  }

  /** Whether something is under way here that nobody outside has to push. */
  get running(): number {
    return this.launches.running + this.#recovery.running;
  }

  /** The rest of a launch: a function is accepted in the same batch, a process has to accept first. */
  launched(step: Step, input: WorkerInput, plan: LaunchPlan): void {
    if (input.backend === FUNCTIONS) this.#engine.functions.launched(step, input);
    else this.launches.begin(step, input, plan);
  }

  /** A parent's children have news. */
  wake(step: Step, parent: WorkerView): void {
    if (parent.context.backend === FUNCTIONS) this.#engine.functions.wake(step, parent);
  }

  /** A question or a result is addressed to a parent in a process: its backend hands it over. */
  deliver(step: Step, delivery: DeliveryRecord): void {
    const parent = step.worker(delivery.owner);
    if (parent === undefined || parent.context.backend === FUNCTIONS) return;
    const orderId = `deliver.${delivery.deliveryId}`;
    this.#orders.put(step, { ...this.#base(step, parent), orderId, kind: "deliver", delivery });
  }

  /** A delivery to a parent in a process is over, handed over or not. */
  withdraw(step: Step, { owner, deliveryId }: Pick<DeliveryRecord, "owner" | "deliveryId">): void {
    if (owner === step.tree.ownerKey) return;
    this.#orders.drop(step, owner, `deliver.${deliveryId}`);
    step.after(() => this.#orders.handedOver(owner, `deliver.${deliveryId}`));
  }

  /** Whether a delivery to a parent in a process is still on its way to it. */
  delivering(step: Step, { owner, deliveryId }: Pick<DeliveryRecord, "owner" | "deliveryId">): boolean {
    return owner !== step.tree.ownerKey && step.read(keys.order(owner, `deliver.${deliveryId}`)) !== undefined;
  }

  /** Facts become orders. */
  recorded(fact: WorkerFact, worker: Teller, step: Step): void {
    if (worker.context.backend === FUNCTIONS) {
      this.#engine.functions.recorded(fact, worker, step);
      return;
    }
    const base = this.#base(step, worker);
    const { runId, assignment, reusable } = worker.context;
    switch (fact.type) {
      case "order.run": {
        const { answerOf, next } = fact;
        if (answerOf !== undefined) {
          this.#orders.put(step, { ...base, orderId: `answer.${answerOf}`, kind: "answer", answerOf });
        } else if (next) {
          const requestId = step.worker(runId)?.context.assignment?.requestId ?? "";
          this.#orders.put(step, { ...base, requestId, orderId: `task.${requestId}`, kind: "task" });
        }
        break;
      }
      case "order.resume":
        this.#resume(step, worker, base);
        break;
      case "order.steer": {
        const { steerId, message, files } = fact;
        this.#orders.put(step, { ...base, orderId: `steer.${steerId}`, kind: "steer", message, files });
        break;
      }
      case "order.stop":
        // Proven gone before it was told: nothing is left to stop.
        if (step.worker(runId)?.state === "closed") break;
        this.#stop(step, base);
        break;
      case "ask.opened":
        // Who asks has begun, although no turn said so.
        this.#orders.drop(step, runId, ...this.#orders.beginnings(worker.context));
        break;
      case "result.stored":
        this.#orders.drop(step, runId, "watch", ...this.#orders.beginnings(worker.context));
        // What executed a one-shot worker is not needed any more; only its row waits for the owner.
        if (!reusable && step.worker(runId)?.context.lost !== true) this.#stop(step, base);
        else if (!reusable) step.after(() => this.stops.forget(base.backend, runId));
        // What it never heard was meant for this assignment.
        if (worker.context.unacknowledged > 0) {
          step.after(() => this.#engine.kernel.inBackground(this.#forget(runId, ({ kind }) => kind === "steer")));
        }
        break;
      case "assignment.closed":
        if (assignment) this.#orders.drop(step, runId, "watch", ...this.#orders.beginnings(worker.context));
        break;
      case "worker.closed":
        step.after(() => this.#engine.kernel.inBackground(this.#forgetRun(runId)));
        break;
      default:
    }
    this.watch(step, runId);
  }

  /** Repeats what was not confirmed before the last end of the process, and looks after the processes of workers. */
  async resume(): Promise<void> {
    if (!this.#engine.options.runWorkers) return;
    const rows = await this.#engine.kernel.range(prefixed("o!"));
    const orders = rows.map(([, text]) => JSON.parse(text) as OrderRecord);
    this.#recovery.begin(orders.filter(({ backend }) => backend !== undefined));
    await this.#engine.functions.resume(orders.filter(({ backend }) => backend === undefined));
  }

  async report(runId: string, event: BackendEvent, requestId?: string): Promise<boolean> {
    // Also before the store is open: what lives is asked for at the opening.
    const treeId = this.#engine.kernel.takes ? this.#treeOf(runId, requestId) : undefined;
    if (treeId === undefined) return false;
    try {
      if (event.type === "start.failed") return await this.#startFailed(treeId, runId, event);
      return await this.#engine.kernel.run(treeId, (step) => this.#take(step, runId, event, requestId), {
        operation: event.type,
      });
    } catch (error) {
      if (this.#engine.kernel.ended || error === this.#engine.closed) return false;
      if (event.type !== "settled" || !(error instanceof HerdError) || error.reason !== "undone") throw error;
      await recordUnpersisted(this.#engine, { treeId, runId, outcome: event.outcome, cause: error });
      return false;
    }
  }

  async askOwner(
    runId: string,
    request: unknown,
    { batch, requestId }: { batch: readonly string[]; requestId?: string },
  ) {
    const treeId = this.#treeOf(runId, requestId);
    return askOwner(this.#engine, {
      treeId,
      runId,
      request,
      calls: batch,
      ...(requestId !== undefined && { requestId }),
    });
  }

  async subagent(runId: string, request: unknown): Promise<object> {
    try {
      const by = await controllerOf(this.#engine, this.#treeOf(runId), runId, request);
      return await subagent(this.#engine, by, request);
    } catch (error) {
      const failure = error instanceof HerdError ? error : internalFailure("subagent", error);
      return { ok: false, error: failure.toJSON() };
    }
  }

  /** Everything that is due: orders and stops are tried again, and doubts looked at. */
  tick(now: number): void {
    this.#orders.tick();
    this.stops.tick(now);
    this.#recovery.tick(now);
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all([...this.#backends.values()].map((backend) => backend.close(graceMs)));
  }

  /** A row says whose process has to be there, so that opening the store looks after those and no others. */
  watch(step: Step, runId: string): void {
    const worker = step.worker(runId);
    const key = keys.order(runId, "watch");
    const stands = step.read(key) !== undefined;
    const wanted = worker !== undefined && needsProcess(worker);
    if (wanted && !stands) step.put(key, { ...this.#base(step, worker), orderId: "watch", kind: "watch" });
    if (!wanted && stands) step.del(key);
  }

  /** One event of a run, inside a step. @returns whether it was taken. */
  #take(step: Step, runId: string, event: BackendEvent, requestId: string | undefined): boolean {
    const worker = step.worker(runId);
    if (event.type === "stop.failed") return this.stops.failed(step, runId, event.message);
    if (event.type === "gone" || (event.type === "exited" && endsAnyway(worker))) {
      return this.stops.gone(step, worker, runId, event.type === "gone" ? event.cleanupError : undefined);
    }
    if (worker === undefined) return false;
    if (event.type === "identity") return this.#identify(step, worker, event);
    if (event.type === "exited") return this.exited(step, worker);
    if (worker.context.unproven !== undefined) return false;
    if (requestId !== undefined && worker.context.assignment?.requestId !== requestId) return false;
    if (event.type === "accepted") return this.launches.accept(step, runId, event.place);
    if (event.type === "delivered") return this.#delivered(step, worker, event.orderId);
    if (isActivity(event) && !isNewsAt(worker.context, step.now)) return true;
    const told = toWorkerEvent(event, step.now);
    if (!step.can(runId, told)) return false;
    step.send(runId, told);
    if (event.type === "turn.started") {
      this.#orders.drop(step, runId, ...this.#orders.beginnings(worker.context));
      if (worker.context.restarted) step.after(() => this.#recovery.repeat(runId));
    }
    this.watch(step, runId);
    return true;
  }

  /** A process that nobody told to stop is gone. Without a proof of its own a launch just failed. */
  exited(step: Step, { state, context }: WorkerView, why?: string): boolean {
    const { runId } = context;
    if (state === "settling.launching") {
      const failure = { stage: "agent_start" as const, message: "its process ended before it took the task" };
      step.after(() => this.#engine.kernel.inBackground(this.launches.fail(step.tree.id, runId, failure)));
      return true;
    }
    const exited = { type: "process.exited" as const, at: step.now, ...(why !== undefined && { why }) };
    if (!step.can(runId, exited)) return false;
    step.send(runId, exited);
    this.presence.trust(runId);
    this.watch(step, runId);
    return true;
  }

  #delivered(step: Step, { context }: WorkerView, orderId: string): boolean {
    const { runId } = context;
    const order = step.read<OrderRecord>(keys.order(runId, orderId));
    if (order === undefined) return false;
    step.del(keys.order(runId, orderId));
    // One of an earlier assignment says nothing of what the present one still has to hear.
    if (order.kind === "steer" && order.requestId === context.assignment?.requestId)
      step.send(runId, { type: "delivered" });
    // A question stays open until its reply; only the handing over is done.
    if (order.delivery?.kind === "result") acknowledgeIn(this.#engine, step, order.delivery);
    step.after(() => this.#orders.handedOver(runId, orderId));
    return true;
  }

  /** What the process says of itself: another session is no proof of this worker, whatever else it says. */
  #identify(step: Step, worker: WorkerView, event: Extract<BackendEvent, { type: "identity" }>): boolean {
    const { context } = worker;
    const { runId, sessionId } = context;
    if (event.sessionId !== sessionId) {
      if (worker.state === "settling.launching") {
        const message = `its process speaks for session ${event.sessionId} instead of ${sessionId}`;
        const failure = { stage: "ownership_capture" as const, category: "target_not_found", message };
        step.after(() => this.#engine.kernel.inBackground(this.launches.fail(step.tree.id, runId, failure)));
        return false;
      }
      const diagnostic = `Its backend speaks for session ${event.sessionId}, but the worker's session is ${sessionId}.`;
      step.after(() =>
        this.#engine.kernel.inBackground(this.presence.doubt(step.tree.id, runId, diagnostic, event.sessionId)),
      );
      return false;
    }
    if (event.place) {
      this.#engine.sessions.located(step, worker, event.place);
      step.send(runId, { type: "located", place: event.place });
    }
    if (context.unproven !== undefined) {
      step.send(runId, { type: "identity.proven" });
      this.watch(step, runId);
      this.presence.trust(runId);
      step.after(() => this.#recovery.goOn(step.tree.id, runId));
    }
    return true;
  }

  /** A launch that failed, or a process that could not be started again: then its session is gone too. */
  async #startFailed(
    treeId: string,
    runId: string,
    event: Extract<BackendEvent, { type: "start.failed" }>,
  ): Promise<boolean> {
    const worker = (await this.#engine.kernel.tree(treeId)).worker(runId);
    if (worker?.state === "settling.launching") {
      await this.launches.fail(treeId, runId, event);
      return true;
    }
    return this.#engine.kernel.run(
      treeId,
      (step) => {
        const again = step.worker(runId);
        return again?.context.restarted === true && this.exited(step, again, event.message ?? `${event.stage} failed`);
      },
      { operation: event.type },
    );
  }

  #stop(step: Step, base: Omit<OrderRecord, "orderId" | "kind">): void {
    const order: OrderRecord = { ...base, orderId: "stop", kind: "stop" };
    step.after(() => this.stops.told(order));
    this.#orders.put(step, order);
  }

  /** Starts the process again: with what it had not begun yet, else to go on. */
  #resume(step: Step, { context }: Teller, base: Omit<OrderRecord, "orderId" | "kind">): void {
    const { runId } = context;
    const begun = this.#orders.beginnings(context).filter((orderId) => orderId !== "resume");
    const unconfirmed = begun.map((orderId) => step.read<OrderRecord>(keys.order(runId, orderId))).find((row) => row);
    if (unconfirmed) step.after(() => this.#orders.perform(unconfirmed));
    else {
      const number = this.#engine.newNumber();
      this.#orders.put(step, { ...base, orderId: "resume", kind: "resume", number });
    }
  }

  #base(step: Step, { path, context }: Teller) {
    const { runId, backend, label, assignment } = context;
    const requestId = assignment && { requestId: assignment.requestId };
    return { tree: step.tree.id, path, runId, backend, label, ...requestId };
  }

  #treeOf(runId: string, requestId?: string): string | undefined {
    return (
      this.#orders.trees.get(runId) ??
      this.#engine.kernel.read<LaunchRecord>(keys.launch(runId))?.tree ??
      (requestId === undefined ? undefined : this.#engine.request(requestId)?.tree)
    );
  }

  /** Takes orders back that have become pointless. */
  async #forget(runId: string, isDone: (order: OrderRecord) => boolean): Promise<void> {
    const rows = await this.#engine.kernel.range(prefixed(keys.order(runId, "")));
    const done = rows.filter(([, text]) => isDone(JSON.parse(text) as OrderRecord));
    if (done.length > 0) await this.#engine.kernel.write(done.map(([key]) => ({ type: "del" as const, key })));
  }

  /** Nothing is left to do for a run that is gone, except what could not be tidied up. */
  async #forgetRun(runId: string): Promise<void> {
    await this.#forget(runId, ({ error }) => error === undefined);
    const left = await this.#engine.kernel.range(prefixed(keys.order(runId, "")));
    if (left.length === 0) this.#orders.trees.delete(runId);
  }
}
