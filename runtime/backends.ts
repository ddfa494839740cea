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
import type { OrderRecord } from "./kernel/records.ts";
import type { Step } from "./kernel/step.ts";
import type { WorkerView } from "./kernel/tree.ts";
import { passFailpoint } from "./store/failpoint.ts";
import { keys, prefixed } from "./store/keys.ts";

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
    const { runId } = worker.context;
    const base = { tree: step.tree.id, path: worker.path, runId };
    if (fact.type === "order.run") {
      const orderId = fact.answerOf === undefined ? "start" : `answer.${fact.answerOf}`;
      this.#order(step, { ...base, orderId, kind: "run", ...(fact.answerOf && { answerOf: fact.answerOf }) });
    } else if (fact.type === "order.steer") {
      const { steerId, message, files } = fact;
      this.#order(step, { ...base, orderId: `steer.${steerId}`, kind: "steer", message, files });
    } else if (fact.type === "order.stop") {
      this.#order(step, { ...base, orderId: "stop", kind: "stop" });
    } else if (fact.type === "worker.closed") {
      step.del(keys.order(runId, "stop"));
      step.after(() => this.#trees.delete(runId));
    }
  }

  /** Repeats what was not confirmed before the last end of the process. */
  async resume(): Promise<void> {
    const rows = await this.#engine.kernel.range(prefixed("o!"));
    const functions: OrderRecord[] = [];
    for (const [, text] of rows) {
      const order = JSON.parse(text) as OrderRecord;
      const tree = await this.#engine.kernel.tree(order.tree);
      const worker = tree.worker(order.runId);
      if (worker === undefined || worker.context.backend === FUNCTIONS) functions.push(order);
      else this.#perform(order);
    }
    await this.#engine.functions.resume(functions);
  }

  async report(runId: string, event: BackendEvent, requestId?: string): Promise<boolean> {
    const treeId = this.#trees.get(runId) ?? this.#engine.request(requestId ?? "")?.tree;
    if (treeId === undefined) return false;
    return this.#engine.kernel.run(
      treeId,
      (step) => {
        const worker = step.worker(runId);
        if (worker === undefined) return false;
        // That nothing executes it any more is true of every assignment it had.
        const belongs = event.type === "gone" || requestId === undefined;
        if (!belongs && worker.context.assignment?.requestId !== requestId) return false;
        const told = toWorkerEvent(event, step.now);
        if (event.type === "delivered" && step.read(keys.order(runId, event.orderId)) === undefined) return false;
        if (!step.can(runId, told)) return false;
        step.send(runId, told);
        if (event.type === "turn.started") {
          step.del(keys.order(runId, "start"));
          const requestOfWorker = worker.context.assignment?.requestId;
          if (requestOfWorker !== undefined && worker.context.asks > 0) {
            step.del(keys.order(runId, `answer.${lastAskId(requestOfWorker, worker.context.asks)}`));
          }
        }
        if (event.type === "delivered") step.del(keys.order(runId, event.orderId));
        return true;
      },
      { operation: event.type },
    );
  }

  async askOwner(runId: string, request: unknown, { batch }: { batch: readonly string[] }) {
    const treeId = this.#trees.get(runId);
    return askOwner(this.#engine, { treeId, runId, request, calls: batch });
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all([...this.#backends.values()].map((backend) => backend.close(graceMs)));
  }

  #order(step: Step, order: OrderRecord): void {
    step.put(keys.order(order.runId, order.orderId), order);
    step.after(() => this.#perform(order));
  }

  #perform(record: OrderRecord): void {
    const tree = this.#engine.kernel.loaded(record.tree);
    const worker = tree?.worker(record.runId);
    if (worker === undefined) return;
    this.#trees.set(record.runId, record.tree);
    const backend = this.#backends.get(worker.context.backend);
    const order = this.#orderOf(record, worker.context);
    if (backend === undefined || order === undefined) return;
    passFailpoint("order.before");
    backend.perform(order);
    passFailpoint("order.after");
  }

  #orderOf(record: OrderRecord, context: WorkerContext): Order | undefined {
    const requestId = context.assignment?.requestId;
    const base = { orderId: record.orderId, runId: record.runId, label: context.label, requestId };
    if (record.kind === "stop") return { ...base, kind: "stop" };
    if (record.kind === "steer") {
      return { ...base, kind: "steer", message: record.message ?? "", files: record.files ?? [] };
    }
    if (record.answerOf !== undefined) {
      const answer = this.#engine.kernel.read<{ answer?: { message: string; files: [] } }>(
        keys.ask(record.answerOf),
      )?.answer;
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

function lastAskId(requestId: string, asks: number): string {
  return `${requestId}.${String(asks).padStart(4, "0")}`;
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
