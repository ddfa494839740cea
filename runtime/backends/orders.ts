import type { OwnersAnswer, Backend, Launch, Order } from "../backend.ts";
import type { Engine } from "../engine.ts";
import { messageOf } from "../errors.ts";
import { questionText } from "../asks/question.ts";
import type {
  AskRecord,
  DeliveryRecord,
  LaunchRecord,
  OrderRecord,
  OutcomeRecord,
  RequestRecord,
} from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import type { WorkerContext } from "../../machines/vocabulary.ts";
import { passFailpoint } from "../store/failpoint.ts";
import { askIdOf, keys } from "../store/keys.ts";

/** What a start may take whose task is accepted already. Source: `timeoutMs`, when it is omitted. */
const AGAIN_MS = 300_000;

/**
 * Orders on their way out. They are rows until the event that confirms them is on disk, so that a restart repeats
 * exactly those.
 */
export class Orders {
  readonly #engine: Engine;
  readonly #backends: ReadonlyMap<string, Backend>;
  /** The trees of runs that backends know. */
  readonly trees = new Map<string, string>();
  /** Orders that a backend threw at. */
  readonly #failed: OrderRecord[] = [];
  /** Results on their way to parents, one at a time, so that each says what is still to come when it is read. */
  readonly #handing = new Map<string, { orderId: string; next: OrderRecord[] }>();
  readonly #prove: (treeId: string, runId: string) => void;

  /** @param prove finds out whether a run's process is there; its orders follow. */
  constructor(engine: Engine, backends: ReadonlyMap<string, Backend>, prove: (treeId: string, runId: string) => void) {
    this.#engine = engine;
    this.#backends = backends;
    this.#prove = prove;
  }

  /** Gives an order in the batch of a step; it goes out once that is on disk. */
  put(step: Step, order: OrderRecord): void {
    step.put(keys.order(order.runId, order.orderId), order);
    step.after(() => this.#begin(order));
  }

  /** Who only waited when the store was opened was not looked after since: its process may be gone by now. */
  #begin(order: OrderRecord): void {
    // A herd that runs no workers knows nothing of their processes, and judges none.
    if (!this.#engine.options.runWorkers) return;
    const known = order.kind === "start" || order.kind === "stop" || this.trees.has(order.runId);
    if (known) this.perform(order);
    else this.#prove(order.tree, order.runId);
  }

  /** Takes orders back, or notes that they are confirmed. */
  drop(step: Step, runId: string, ...orderIds: string[]): void {
    for (const orderId of orderIds) {
      const key = keys.order(runId, orderId);
      if (step.read(key) !== undefined) step.del(key);
    }
  }

  /** The orders that a turn of the worker confirms: whatever it was told to begin with. */
  beginnings({ assignment, asks }: WorkerContext): string[] {
    const { requestId } = assignment ?? {};
    return [
      "start",
      "resume",
      ...(requestId === undefined ? [] : [`task.${requestId}`]),
      ...(requestId === undefined || asks === 0 ? [] : [`answer.${askIdOf(requestId, asks)}`]),
    ];
  }

  /** Hands an order to its backend; one that throws at it gets it again at the next tick. */
  perform(record: OrderRecord): void {
    // A herd that has ended orders nothing any more: the next one does.
    if (
      this.#engine.kernel.ended ||
      !this.#engine.options.runWorkers ||
      this.#isHeld(record) ||
      this.#waitsItsTurn(record)
    )
      return;
    const backend = this.#backends.get(record.backend ?? "");
    const order = backend && this.#orderOf(record);
    if (backend === undefined || order === undefined) return;
    this.trees.set(record.runId, record.tree);
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

  /** A result that was on its way is read, or not wanted any more: the next one goes out. */
  handedOver(runId: string, orderId: string): void {
    const handing = this.#handing.get(runId);
    if (handing === undefined) return;
    if (handing.orderId !== orderId) {
      handing.next = handing.next.filter((order) => order.orderId !== orderId);
      return;
    }
    this.#handing.delete(runId);
    for (const order of handing.next) this.perform(order);
  }

  /** What was on its way to a process that is gone goes out again. */
  handAgain(runId: string): void {
    this.#handing.delete(runId);
  }

  #waitsItsTurn(record: OrderRecord): boolean {
    const { kind, delivery, runId, orderId } = record;
    if (kind !== "deliver" || delivery?.kind !== "result") return false;
    const handing = this.#handing.get(runId);
    if (handing === undefined) this.#handing.set(runId, { orderId, next: [] });
    else if (handing.orderId !== orderId && !handing.next.some((order) => order.orderId === orderId)) {
      handing.next.push(record);
    }
    return handing !== undefined && handing.orderId !== orderId;
  }

  /** Nothing goes to what may be another worker's process, and nobody reads what a lost parent is told. */
  #isHeld({ tree, runId, kind }: OrderRecord): boolean {
    const context = this.#engine.kernel.loaded(tree)?.worker(runId)?.context;
    return (context?.unproven !== undefined && kind !== "stop") || (context?.lost === true && kind === "deliver");
  }

  tick(): void {
    for (const order of this.#failed.splice(0)) {
      // Taken back meanwhile, it must not be carried out any more.
      const stands = this.#engine.kernel.read(keys.order(order.runId, order.orderId)) !== undefined;
      if (stands) this.perform(order);
    }
  }

  /** The order as its backend gets it, or undefined when it has become pointless. */
  #orderOf(record: OrderRecord): Order | undefined {
    const { orderId, number, runId, label = "", requestId, kind, message = "", files = [] } = record;
    const base = { orderId: number === undefined ? orderId : `${orderId}.${number}`, runId, label, requestId };
    switch (kind) {
      case "stop":
        return { ...base, kind };
      case "steer": {
        const worker = this.#engine.kernel.loaded(record.tree)?.worker(runId);
        // Of an assignment that ended: nobody wants it heard any more.
        if (worker && worker.context.assignment?.requestId !== requestId) return undefined;
        return { ...base, kind, message, files };
      }
      case "start":
        return this.#startOf(record, base);
      case "task": {
        const request = this.#request(requestId);
        if (request === undefined) return undefined;
        const launch = this.#launchAgain(record);
        return { ...base, kind, task: request.task, files: request.files, ...(launch && { launch }) };
      }
      case "resume": {
        const request = this.#request(requestId);
        const launch = this.#launchOf(record, request);
        if (request === undefined || launch === undefined) return undefined;
        const asks = this.#engine.kernel.loaded(record.tree)?.worker(runId)?.context.asks ?? 0;
        const answer = asks === 0 ? undefined : this.#answerTo(askIdOf(request.requestId, asks));
        return { ...base, kind, ...launch, task: request.task, files: request.files, ...(answer && { answer }) };
      }
      case "answer": {
        const answer = this.#answerTo(record.answerOf ?? "");
        const launch = this.#launchAgain(record);
        return answer && { ...base, kind, ...answer, ...(launch && { launch }) };
      }
      case "deliver":
        return this.#deliveryOf(record.delivery as DeliveryRecord, base);
      case "run":
      case "watch":
        return undefined;
    }
  }

  /** What the owner of a worker in a process said; undefined while it has said nothing. */
  #answerTo(askId: string): OwnersAnswer | undefined {
    const answer = this.#engine.kernel.read<AskRecord>(keys.ask(askId))?.answer;
    // Such a worker asks its owner alone, and that answers in text.
    return answer && { askId, message: answer.message as string, files: answer.files };
  }

  #startOf(record: OrderRecord, base: Pick<Order, "orderId" | "runId" | "label" | "requestId">): Order | undefined {
    const pending = this.#engine.kernel.read<LaunchRecord>(keys.launch(record.runId))?.pending;
    const request = pending?.request ?? this.#request(record.requestId);
    if (request === undefined) return undefined;
    const launch = this.#launchOf(record, request) as Launch;
    const timeoutMs = pending ? Math.max(0, pending.dueAt - this.#engine.kernel.now()) : AGAIN_MS;
    return { ...base, kind: "start", ...launch, task: request.task, files: request.files, timeoutMs };
  }

  /** What the process needs that has to be started again before it gets an order. */
  #launchAgain(record: OrderRecord): Launch | undefined {
    const worker = this.#engine.kernel.loaded(record.tree)?.worker(record.runId);
    return worker?.context.restarted === true ? this.#launchOf(record) : undefined;
  }

  #launchOf({ tree, runId, requestId }: OrderRecord, request = this.#request(requestId)): Launch | undefined {
    if (request === undefined) return undefined;
    const { kernel } = this.#engine;
    const launch = kernel.read<LaunchRecord>(keys.launch(runId));
    const { agent, cwd, sessionId, owner } = request;
    const sessionPath = kernel.loaded(tree)?.worker(runId)?.context.place?.sessionPath;
    return {
      agent,
      cwd,
      sessionId,
      ...(sessionPath !== undefined && { sessionPath }),
      owner: kernel.loaded(tree)?.owner.id ?? owner.id,
      ...(launch?.session && { session: launch.session }),
      ...(launch?.policy !== undefined && { policy: launch.policy }),
    };
  }

  #deliveryOf(
    delivery: DeliveryRecord,
    base: Pick<Order, "orderId" | "runId" | "label" | "requestId">,
  ): Order | undefined {
    const { kernel } = this.#engine;
    const request = this.#request(delivery.requestId);
    if (request === undefined) return undefined;
    const attempt = 1 + Math.max(0, kernel.epoch - delivery.epoch);
    if (delivery.kind === "question") {
      const ask = kernel.read<AskRecord>(keys.ask(delivery.askId ?? ""));
      if (ask === undefined || ask.answer || ask.abandoned) return undefined;
      const text = questionText(request.label, ask);
      const { runId, label, workspace, sessionId } = request;
      const details = { askId: ask.askId, requestId: request.requestId, runId, label, workspace, sessionId, attempt };
      return { ...base, kind: "deliver", what: "question", text, details };
    }
    const outcome = kernel.read<OutcomeRecord>(keys.outcome(delivery.requestId));
    if (outcome === undefined) return undefined;
    const result = this.#engine.result(request, outcome, attempt);
    return { ...base, kind: "deliver", what: "result", text: result.envelope, details: result.details };
  }

  #request(requestId: string | undefined): RequestRecord | undefined {
    return requestId === undefined ? undefined : this.#engine.request(requestId);
  }
}
