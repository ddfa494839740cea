import type { WorkerContext, WorkerEvent, WorkerFact } from "../machines/vocabulary.ts";
import { askOwner } from "./asks/ask.ts";
import {
  FUNCTIONS,
  type Backend,
  type BackendEvent,
  type BackendFactory,
  type BackendHost,
  type Order,
} from "./backend.ts";
import { boundedOutcome } from "./deliveries/outcome.ts";
import type { Engine, Executor, Teller } from "./engine.ts";
import { messageOf } from "./errors.ts";
import type { AskRecord, OrderRecord } from "./kernel/records.ts";
import type { Step } from "./kernel/step.ts";
import type { WorkerView } from "./kernel/tree.ts";
import { passFailpoint } from "./store/failpoint.ts";
import { askIdOf, keys, prefixed } from "./store/keys.ts";

/**
 * Where orders go out and events come in. Orders are rows until the event that confirms them is on disk, so that
 * a restart repeats exactly those.
 */
export class BackendDesk implements BackendHost, Executor {
  readonly #engine: Engine;
  readonly #backends = new Map<string, Backend>();
  readonly #backendOf: (agent: string) => string | undefined;
  /** The trees of runs that backends know. */
  readonly #trees = new Map<string, string>();
  /** Orders that a backend threw at. */
  readonly #failed: OrderRecord[] = [];

  constructor(engine: Engine, factories: readonly BackendFactory[], backendOf?: (agent: string) => string | undefined) {
    this.#engine = engine;
    this.#backendOf = backendOf ?? (() => undefined);
    for (const factory of factories) {
      const backend = factory(this);
      this.#backends.set(backend.name, backend);
    }
  }

  /** The name of the backend that runs an agent's workers. */
  backendFor(agent: string): string {
    return this.#backendOf(agent) ?? FUNCTIONS;
  }

  /** The rest of a launch, in the batch that accepts it. */
  launched(step: Step, context: Pick<WorkerContext, "runId" | "backend" | "agent">): void {
    if (context.backend === FUNCTIONS) this.#engine.functions.launched(step, context);
    else step.send(context.runId, { type: "launch.accepted", at: step.now });
  }

  /** A parent's children have news. */
  wake(step: Step, parent: WorkerView): void {
    if (parent.context.backend === FUNCTIONS) this.#engine.functions.wake(step, parent);
  }

  /** Facts become orders. */
  recorded(fact: WorkerFact, worker: Teller, step: Step): void {
    if (worker.context.backend === FUNCTIONS) {
      this.#engine.functions.recorded(fact, worker, step);
      return;
    }
    const { runId, backend, label, assignment, reusable } = worker.context;
    const base = {
      tree: step.tree.id,
      path: worker.path,
      runId,
      backend,
      label,
      ...(assignment && { requestId: assignment.requestId }),
    };
    switch (fact.type) {
      case "order.run": {
        const { answerOf } = fact;
        const orderId = answerOf === undefined ? "start" : `answer.${answerOf}`;
        this.#order(step, { ...base, orderId, kind: "run", ...(answerOf !== undefined && { answerOf }) });
        break;
      }
      case "order.steer": {
        const { steerId, message, files } = fact;
        this.#order(step, { ...base, orderId: `steer.${steerId}`, kind: "steer", message, files });
        break;
      }
      case "order.stop":
        this.#order(step, { ...base, orderId: "stop", kind: "stop" });
        break;
      case "result.stored":
        this.#confirm(step, worker.context);
        // What executed a one-shot worker is not needed any more; only its row waits for the owner.
        if (!reusable) this.#order(step, { ...base, orderId: "stop", kind: "stop" });
        break;
      case "worker.closed":
        step.after(() => this.#engine.kernel.inBackground(this.#forget(runId)));
        break;
      default:
    }
  }

  /** Repeats what was not confirmed before the last end of the process. */
  async resume(): Promise<void> {
    const rows = await this.#engine.kernel.range(prefixed("o!"));
    const functions: OrderRecord[] = [];
    for (const [, text] of rows) {
      const order = JSON.parse(text) as OrderRecord;
      if (order.backend === undefined) functions.push(order);
      else this.#perform(order);
    }
    await this.#engine.functions.resume(functions);
  }

  async report(runId: string, event: BackendEvent, requestId?: string): Promise<boolean> {
    const treeId = this.#treeOf(runId, requestId);
    if (treeId === undefined) return false;
    return this.#engine.kernel.run(
      treeId,
      (step) => {
        const worker = step.worker(runId);
        if (worker === undefined) return event.type === "gone" && this.#goneUnasked(step, runId);
        // That nothing executes it any more is true of every assignment it had.
        const belongs = event.type === "gone" || requestId === undefined;
        if (!belongs && worker.context.assignment?.requestId !== requestId) return false;
        const told = toWorkerEvent(event, step.now);
        if (event.type === "delivered" && step.read(keys.order(runId, event.orderId)) === undefined) return false;
        if (!step.can(runId, told)) return false;
        step.send(runId, told);
        if (event.type === "turn.started") this.#confirm(step, worker.context);
        if (event.type === "delivered") step.del(keys.order(runId, event.orderId));
        return true;
      },
      { operation: event.type },
    );
  }

  async askOwner(
    runId: string,
    request: unknown,
    { batch, requestId }: { batch: readonly string[]; requestId?: string },
  ) {
    return askOwner(this.#engine, { treeId: this.#treeOf(runId, requestId), runId, request, calls: batch });
  }

  /** Orders that a backend could not take are tried again. */
  tick(): void {
    for (const order of this.#failed.splice(0)) this.#perform(order);
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all([...this.#backends.values()].map((backend) => backend.close(graceMs)));
  }

  #order(step: Step, order: OrderRecord): void {
    step.put(keys.order(order.runId, order.orderId), order);
    step.after(() => this.#perform(order));
  }

  #treeOf(runId: string, requestId: string | undefined): string | undefined {
    return this.#trees.get(runId) ?? (requestId === undefined ? undefined : this.#engine.request(requestId)?.tree);
  }

  /** The worker runs: what it was told to begin with is confirmed. */
  #confirm(step: Step, { runId, assignment, asks }: WorkerContext): void {
    for (const orderId of [
      "start",
      ...(assignment && asks > 0 ? [`answer.${askIdOf(assignment.requestId, asks)}`] : []),
    ]) {
      if (step.read(keys.order(runId, orderId)) !== undefined) step.del(keys.order(runId, orderId));
    }
  }

  /** A stopped run whose worker needs no actor any more. */
  #goneUnasked(step: Step, runId: string): boolean {
    const key = keys.order(runId, "stop");
    if (step.read(key) === undefined) return false;
    step.del(key);
    step.after(() => this.#trees.delete(runId));
    return true;
  }

  /** Nothing is left to do for a run that is gone. */
  async #forget(runId: string): Promise<void> {
    const rows = await this.#engine.kernel.range(prefixed(keys.order(runId, "")));
    if (rows.length > 0) await this.#engine.kernel.write(rows.map(([key]) => ({ type: "del" as const, key })));
    this.#trees.delete(runId);
  }

  #perform(record: OrderRecord): void {
    const backend = this.#backends.get(record.backend ?? "");
    const order = this.#orderOf(record);
    if (backend === undefined || order === undefined) return;
    this.#trees.set(record.runId, record.tree);
    passFailpoint("order.before");
    try {
      backend.perform(order);
    } catch (error) {
      this.#failed.push(record);
      process.emitWarning(`the backend "${backend.name}" failed at ${record.kind}, retrying: ${messageOf(error)}`, {
        type: "HerdBackendWarning",
      });
    }
    passFailpoint("order.after");
  }

  #orderOf(record: OrderRecord): Order | undefined {
    const { orderId, runId, label = "", requestId } = record;
    const base = { orderId, runId, label, requestId };
    if (record.kind === "stop") return { ...base, kind: "stop" };
    if (record.kind === "steer") {
      return { ...base, kind: "steer", message: record.message ?? "", files: record.files ?? [] };
    }
    if (record.answerOf !== undefined) {
      const answer = this.#engine.kernel.read<AskRecord>(keys.ask(record.answerOf))?.answer;
      return (
        answer && { ...base, kind: "answer", askId: record.answerOf, message: answer.message, files: answer.files }
      );
    }
    const request = requestId === undefined ? undefined : this.#engine.request(requestId);
    if (request === undefined) return undefined;
    const { task, files, agent, cwd, sessionId } = request;
    return { ...base, kind: "start", task, files, agent, cwd, sessionId };
  }
}

function toWorkerEvent(event: BackendEvent, at: number): WorkerEvent {
  switch (event.type) {
    case "accepted":
      return { type: "launch.accepted", at };
    case "turn.started":
    case "turn.ended":
    case "activity":
      return { type: event.type, at };
    case "tool.called":
      return { type: "tool.called", at };
    case "settled":
      return { type: "settled", outcome: boundedOutcome(event.outcome), at };
    case "delivered":
      return { type: "delivered" };
    case "gone":
      return { type: "backend.gone" };
  }
}
