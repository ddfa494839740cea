import type { BackendEvent, BackendHost, Identity } from "../../../runtime/backend.ts";
import type { ControlClient } from "../../../runtime/index.ts";
import { messageOf } from "../../../runtime/client.ts";
import type { Log } from "../../host/log.ts";
import type { ToldOrder } from "../../host/shapes.ts";
import type { WorkerProcess } from "./process.ts";

interface Pending {
  order: ToldOrder;
  /** Who was told; nobody else has heard it. */
  told?: ControlClient;
}

/** One worker as its backend sees it: its process, the connection of that, and what it has not confirmed yet. */
export class HeadlessRun {
  readonly runId: string;
  label = "";
  requestId: string | undefined;
  owner = "";
  /** Which of its starts this is. */
  launch = "";
  process: WorkerProcess | undefined;
  client: ControlClient | undefined;
  /** It is being started: what it is asked to do waits. */
  starting: Promise<void> | undefined;
  stopping: Promise<void> | undefined;
  /** The process has said who it is. */
  isGreeted = false;
  /** A turn of its model runs. */
  inTurn = false;
  readonly #host: BackendHost;
  readonly #log: Log;
  readonly #pending = new Map<string, Pending>();
  #reports: Promise<unknown> = Promise.resolve();

  constructor(runId: string, host: BackendHost, log: Log) {
    this.runId = runId;
    this.#host = host;
    this.#log = log;
  }

  get identity(): Identity {
    return this.starting !== undefined || this.process?.isAlive === true ? "present" : "absent";
  }

  /** Reports an event, after those before it. @returns whether the worker took it. */
  report(event: BackendEvent, requestId = this.requestId): Promise<boolean> {
    const reported = this.#reports.then(() => this.#host.report(this.runId, event, requestId));
    // A herd whose store takes nothing any more asks what lives when it is opened again.
    this.#reports = reported.catch((error: unknown) => {
      this.#log.warn({ runId: this.runId, event: event.type, error: messageOf(error) }, "not reported");
    });
    return reported;
  }

  /** Resolves once everything that was reported is in. */
  async reported(): Promise<void> {
    await this.#reports;
  }

  /** It is to be told this, now or when it is there. */
  tell(order: ToldOrder): void {
    const pending = this.#pending.get(order.orderId);
    if (pending) delete pending.told;
    else this.#pending.set(order.orderId, { order });
    this.flush();
  }

  confirmed(orderId: string): void {
    this.#pending.delete(orderId);
  }

  /** Nothing is left for the process that is gone: what matters is ordered again. */
  forget(): void {
    this.#pending.clear();
  }

  /** Hands over what waits, in the order in which it came. */
  flush(): void {
    const { client } = this;
    if (client === undefined || !this.isGreeted) return;
    for (const pending of this.#pending.values()) {
      if (pending.told === client) continue;
      pending.told = client;
      client.call("worker/order", pending.order).catch((error: unknown) => {
        // A connection that broke: the next one gets it.
        if (pending.told === client) delete pending.told;
        this.#log.warn({ runId: this.runId, order: pending.order.kind, error: messageOf(error) }, "order not taken");
      });
    }
  }
}
