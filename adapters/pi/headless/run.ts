import { existsSync } from "node:fs";
import type { BackendEvent, BackendHost, Identity, Launch, Order } from "../../../runtime/backend.ts";
import { orderText, type ControlClient } from "../../../runtime/index.ts";
import { messageOf, Repeats } from "../../../runtime/client.ts";
import type { Log } from "../../host/log.ts";
import type { ToldOrder } from "../../host/shapes.ts";
import type { WorkerProcess } from "./process.ts";
import type { ProcessRecord, ProcessRecords } from "./records.ts";

/** How long the connection of a process that has ended may take to end too, in milliseconds. */
const HANGS_UP_MS = 1_000;

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
  sessionId = "";
  /** Whether a person is asked when an extension opens a dialog in it, while no session says so. */
  dialogs: "ask" | "deny" = "ask";
  /** Which of its starts this is. */
  launch = "";
  process: WorkerProcess | undefined;
  client: ControlClient | undefined;
  /** It is being started: what it is asked to do waits. */
  starting: Promise<void> | undefined;
  stopping: Promise<void> | undefined;
  /** The process has said who it is. */
  isGreeted = false;
  /** Its process is its first one: a failure is one of the launch. */
  isFirst = true;
  /** What its process was started with; `lacks`: that cannot be, as long as its session has not come. */
  begun: Launch | undefined;
  lacks: Launch | undefined;
  /** It is to be started no more. */
  readonly halted = new AbortController();
  /** A turn of its model runs. */
  inTurn = false;
  /** Where its session is, or will be once its model has said something. */
  sessionFile: string | undefined;
  readonly #host: BackendHost;
  readonly #log: Log;
  readonly #records: ProcessRecords;
  #record: ProcessRecord | undefined;
  #keeping: Promise<void> = Promise.resolve();
  readonly #pending = new Map<string, Pending>();
  /** Calls of its model, by their ids. */
  readonly #calls = new Repeats();
  #reports: Promise<unknown> = Promise.resolve();

  constructor(runId: string, { host, log, records }: { host: BackendHost; log: Log; records: ProcessRecords }) {
    this.runId = runId;
    this.#host = host;
    this.#log = log;
    this.#records = records;
  }

  get identity(): Identity {
    return this.starting !== undefined || this.process?.isAlive === true ? "present" : "absent";
  }

  /** It is being started, its model is at a turn, or it has not confirmed yet what begins one. */
  get isBusy(): boolean {
    return this.starting !== undefined || !this.isGreeted || this.inTurn || this.#pending.size > 0;
  }

  /** Reports an event, after those before it. @returns whether the worker took it. */
  report(event: BackendEvent, requestId = this.requestId): Promise<boolean> {
    const reported = this.#reports.then(() => this.#host.report(this.runId, event, requestId));
    // It is over with the rollback, which waits for whatever is reported before.
    if (event.type === "start.failed") {
      reported.catch((error: unknown) => this.#notReported(event, error));
      return reported;
    }
    // A herd whose store takes nothing any more asks what lives when it is opened again.
    this.#reports = reported.catch((error: unknown) => this.#notReported(event, error));
    return reported;
  }

  #notReported(event: BackendEvent, error: unknown): void {
    this.#log.warn({ runId: this.runId, event: event.type, error: messageOf(error) }, "not reported");
  }

  /**
   * Makes a call of its model, after what it told before; made again, because its connection broke before it had the
   * answer, it is the same call.
   */
  once(id: string, call: () => Promise<object>): Promise<object> {
    return this.#calls.once(id, () => this.reported().then(call));
  }

  /** Resolves once everything that was reported is in. */
  async reported(): Promise<void> {
    await this.#reports;
  }

  /** Resolves once everything is in that its process told before it ended. */
  async heardOut(): Promise<void> {
    const { client } = this;
    if (client !== undefined && !client.gone.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const late = setTimeout(resolve, HANGS_UP_MS);
      client.gone.addEventListener("abort", () => resolve());
      await promise;
      clearTimeout(late);
    }
    await this.reported();
  }

  /** Keeps what the next host has to know of its process. @throws Error what the disk says. */
  async keep(record: ProcessRecord): Promise<void> {
    this.#record = record;
    const keeping = this.#keeping.then(() => this.#records.write(record));
    this.#keeping = keeping.catch(() => undefined);
    await keeping;
  }

  /** Resolves once nothing of it is on its way to the disk any more. */
  async kept(): Promise<void> {
    await this.#keeping;
  }

  /** Looks whether its session is on disk by now: from then on it cannot go on without. */
  noteSession(): void {
    const { sessionFile } = this;
    const record = this.#record;
    if (record === undefined || record.hasSession || sessionFile === undefined || !existsSync(sessionFile)) return;
    // Not noted, its work is begun anew in case that the session is lost.
    this.keep({ ...record, hasSession: true }).catch((error: unknown) =>
      this.#log.warn({ runId: this.runId, error: messageOf(error) }, "cannot note that its session is there"),
    );
  }

  /** It is to be told this, now or when it is there. */
  tell(ordered: Exclude<Order, { kind: "stop" }>): void {
    const order = toldOf(ordered);
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
    this.#calls.clear();
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

function toldOf(order: Exclude<Order, { kind: "stop" }>): ToldOrder {
  const { requestId } = order;
  // A session outlives its run: what the next one is told first is not what this one was.
  const orderId = order.kind === "start" ? `start.${requestId}` : order.orderId;
  const kind = order.kind === "start" ? "task" : order.kind === "deliver" ? order.what : order.kind;
  const details = order.kind === "deliver" ? order.details : {};
  const askId = order.kind === "answer" ? order.askId : details["askId"];
  return {
    orderId,
    kind,
    text: orderText(order),
    ...(requestId !== undefined && { requestId }),
    ...(typeof askId === "string" && { askId }),
    ...(typeof details["label"] === "string" && { label: details["label"] }),
    ...(order.kind === "resume" && againOf(order)),
  };
}

/** What its session may lack: Pi writes no file before the first answer of a model, and a kill may come before that. */
function againOf(order: Extract<Order, { kind: "resume" }>): Pick<ToldOrder, "task" | "answer"> {
  const { answer } = order;
  return {
    task: orderText({ ...order, kind: "task" }),
    ...(answer && { answer: { askId: answer.askId, text: orderText({ ...order, ...answer, kind: "answer" }) } }),
  };
}
