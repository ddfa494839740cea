import { activeRequest, openAsks, shownState } from "../../machines/projection.ts";
import type { WorkerContext } from "../../machines/vocabulary.ts";
import type { Question } from "../asks/question.ts";
import type { Engine } from "../engine.ts";
import type { AskRecord, DeliveryRecord, OutcomeRecord, RequestRecord } from "../kernel/records.ts";
import { addressOf } from "../owners.ts";
import { asksOf, keys } from "../store/keys.ts";
import type { AssignmentStatus } from "./assignment.ts";
import type { HandleSource } from "./handle.ts";
import { acknowledge } from "./record.ts";
import type { Result } from "./result.ts";

/** As long as a timer may take. */
const LONG_MS = 2 ** 31 - 1;

/** What handles look at: where assignments stand, as far as it is on disk. */
export class Lookout implements HandleSource {
  readonly #engine: Engine;
  #waiting = 0;
  /** Keeps the process alive. Nothing else of a herd does, and what is waited for may come from another process. */
  #alive: NodeJS.Timeout | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async openQuestions(request: RequestRecord): Promise<Question[]> {
    const { kernel } = this.#engine;
    const asks: (AskRecord | undefined)[] = [];
    const tree = kernel.loaded(request.tree);
    if (tree) {
      const context = tree.worker(request.runId)?.context;
      if (context?.assignment?.requestId !== request.requestId) return [];
      asks.push(...openAsks(context.ask).map((askId) => kernel.committed<AskRecord>(keys.ask(askId))));
    } else if (kernel.committed(keys.outcome(request.requestId)) === undefined) {
      const rows = await kernel.store.range(asksOf(request.requestId));
      asks.push(...rows.map(([, text]) => JSON.parse(text) as AskRecord));
    }
    return asks.flatMap((ask) => {
      // What is meant for a person waits in the inbox.
      if (ask === undefined || ask.answer || ask.abandoned || ask.parked?.to === "user") return [];
      return [this.#engine.question(ask, request, 1 + Math.max(0, kernel.epoch - epochOf(ask.deliveryId)))];
    });
  }

  endedResult(request: RequestRecord): Result | undefined {
    // While its worker is at work there is no outcome, and no need to look for one.
    const live = this.#engine.kernel.loaded(request.tree)?.worker(request.runId);
    if (live && activeRequest(live.state, live.context) === request.requestId) return undefined;
    const outcome = this.#engine.kernel.committed<OutcomeRecord>(keys.outcome(request.requestId));
    if (outcome === undefined) return undefined;
    if (this.#engine.deliveries.hasResultReceiver(request) && this.#openDelivery(request, outcome)) return undefined;
    const attempt = outcome.deliveryId === undefined ? 1 : 1 + this.#engine.kernel.epoch - epochOf(outcome.deliveryId);
    return this.#engine.result(request, outcome, attempt);
  }

  async status(request: RequestRecord): Promise<AssignmentStatus> {
    const { live, unknown } = await this.#engine.kernel.run(
      request.tree,
      ({ tree }) => ({
        live: tree.worker(request.runId),
        unknown: tree.unknown.find((row) => row.path === request.path),
      }),
      { operation: "status", owner: request.owner },
    );
    const result = this.endedResult(request);
    const [question] = result ? [] : await this.openQuestions(request);
    const { requestId, label, agent, metadata } = request;
    return {
      requestId,
      label,
      agent,
      state: result?.status ?? (live ? shownState(live.state, live.context) : unknown ? "unknown" : "settling"),
      ...(live?.state === "settling.queued" && { queued: true }),
      ...(live && diagnosticOf(live.context)),
      ...(unknown && { diagnostic: unknown.diagnostic }),
      ...(question && { question }),
      ...(result && { result }),
      ...(metadata !== undefined && { metadata }),
    };
  }

  returned(request: RequestRecord, deliveryId: string): void {
    if (deliveryId === "" || request.parentRunId !== undefined || this.#engine.options.passive) return;
    if (this.#engine.deliveries.hasResultReceiver(request)) return;
    const delivery = this.#engine.kernel.read<DeliveryRecord>(keys.delivery(addressOf(request), deliveryId));
    if (delivery) this.#engine.kernel.inBackground(acknowledge(this.#engine, delivery));
  }

  /** Somebody in another process has it, whatever becomes of this herd: acknowledges it unless a receiver does that. */
  async returnedElsewhere(request: RequestRecord, deliveryId: string): Promise<void> {
    if (request.parentRunId !== undefined || this.#engine.deliveries.receivesResults(request)) return;
    const delivery = this.#engine.kernel.read<DeliveryRecord>(keys.delivery(addressOf(request), deliveryId));
    if (delivery) await acknowledge(this.#engine, delivery);
  }

  wait: HandleSource["wait"] = (requestId, waiter) => this.#engine.deliveries.wait(requestId, waiter);

  async ready(): Promise<void> {
    if (this.#engine.closed) throw this.#engine.closed;
    await this.#engine.kernel.ready();
  }

  hold(): () => void {
    if (this.#waiting++ === 0) this.#alive = setInterval(() => undefined, LONG_MS);
    return () => {
      if (--this.#waiting === 0) this.release();
    };
  }

  /** Lets the process end, whoever waits: the herd is gone. */
  release(): void {
    clearInterval(this.#alive);
  }

  noteOpen(question: Question): void {
    this.#engine.deliveries.noteOpen(question);
  }

  news(requestId: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const aborted = () => {
        stop();
        reject(signal?.reason);
      };
      const stop = this.#engine.deliveries.wait(requestId, {
        hears: false,
        tell: () => {
          stop();
          signal?.removeEventListener("abort", aborted);
          resolve();
        },
      });
      signal?.addEventListener("abort", aborted);
    });
  }

  #openDelivery(request: RequestRecord, outcome: OutcomeRecord): DeliveryRecord | undefined {
    if (outcome.deliveryId === undefined) return undefined;
    return this.#engine.kernel.read<DeliveryRecord>(keys.delivery(addressOf(request), outcome.deliveryId));
  }
}

function diagnosticOf({ diagnostic, unproven }: WorkerContext): { diagnostic?: string } {
  const why = unproven ?? diagnostic;
  return why === null || why === undefined ? {} : { diagnostic: why };
}

function epochOf(deliveryId: string): number {
  return Number.parseInt(deliveryId.slice(0, 6), 36);
}
