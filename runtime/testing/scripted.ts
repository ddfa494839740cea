import type { Outcome } from "../../machines/vocabulary.ts";
import type { Backend, BackendEvent, BackendHost, Identity, Order } from "../backend.ts";

export const SCRIPTED = "scripted";

/** A worker whose every move the test makes. Each call resolves to whether the engine took the event. */
export class ScriptedRun {
  readonly runId: string;
  readonly label: string;
  /** Every order it was given, repetitions included, in the order of arrival. */
  readonly orders: Order[] = [];
  requestId: string | undefined;
  readonly #host: () => BackendHost;
  readonly #script: ScriptedAgent;
  #last: BackendEvent | undefined;

  constructor(order: Order, script: ScriptedAgent, host: () => BackendHost) {
    this.runId = order.runId;
    this.label = order.label;
    this.#script = script;
    this.#host = host;
  }

  /** A turn of the model begins. */
  turn(): Promise<boolean> {
    return this.#report({ type: "turn.started" });
  }

  /** The model calls a tool other than `ask_owner`. */
  tool(name: string): Promise<boolean> {
    return this.#report({ type: "tool.called", name });
  }

  endTurn(): Promise<boolean> {
    return this.#report({ type: "turn.ended" });
  }

  /** The model calls `ask_owner`, alone in its turn unless `batch` says otherwise. */
  ask(question: string, options: { files?: string[]; batch?: string[] } = {}) {
    const { files, batch = ["ask_owner"] } = options;
    return this.#host().askOwner(
      this.runId,
      { question, ...(files && { files }) },
      {
        batch,
        ...(this.requestId !== undefined && { requestId: this.requestId }),
      },
    );
  }

  /** The work is over, with a text or with an error. */
  settle(end: string | { code: string; message: string }): Promise<boolean> {
    const outcome: Outcome =
      typeof end === "string" ? { status: "completed", text: end } : { status: "failed", error: end };
    return this.#report({ type: "settled", outcome });
  }

  /** The model has what the owner said: the newest steer, or the one of an order. */
  hear(orderId = this.orders.findLast(({ kind }) => kind === "steer")?.orderId): Promise<boolean> {
    if (orderId === undefined) throw new Error("no steer was ordered yet");
    return this.#report({ type: "delivered", orderId });
  }

  /** Whatever executes it is proven gone. */
  exit(): Promise<boolean> {
    this.#script.identities.set(this.runId, "absent");
    return this.#report({ type: "gone" });
  }

  /** The same event once more, as a backend does that lost track of what it sent. */
  duplicate(): Promise<boolean> {
    if (this.#last === undefined) throw new Error("nothing was reported yet");
    return this.#host().report(this.runId, this.#last, this.requestId);
  }

  /** An event that names an assignment the worker does not have (any more). */
  late(event: BackendEvent, requestId = "another-assignment"): Promise<boolean> {
    return this.#host().report(this.runId, event, requestId);
  }

  /** An event under a run id that is not this worker's. */
  wrongIdentity(event: BackendEvent): Promise<boolean> {
    return this.#host().report(`${this.runId}x`, event, this.requestId);
  }

  #report(event: BackendEvent): Promise<boolean> {
    this.#last = event;
    return this.#host().report(this.runId, event, this.requestId);
  }
}

/** The workers of one agent that a test plays. They survive a crash of the herd, as panes would. */
export class ScriptedAgent {
  readonly agent: string;
  readonly runs: ScriptedRun[] = [];
  /** What the backend can prove about a run; `present` unless set. */
  readonly identities = new Map<string, Identity>();
  /** `false`: a stop order is not carried out until the test calls `exit()`. */
  stopsAtOnce = true;
  #arrivals: (() => void)[] = [];

  constructor(agent: string) {
    this.agent = agent;
  }

  /** The newest run, or the one with a label; waits until it was started. */
  async run(label?: string): Promise<ScriptedRun> {
    for (;;) {
      const found = this.runs.findLast((run) => label === undefined || run.label === label);
      if (found) return found;
      await new Promise<void>((resolve) => this.#arrivals.push(resolve));
    }
  }

  /** Called by the backend for every order. */
  receive(order: Order, host: () => BackendHost): void {
    let run = this.runs.find(({ runId }) => runId === order.runId);
    if (run === undefined) {
      run = new ScriptedRun(order, this, host);
      this.runs.push(run);
    }
    run.requestId = order.requestId ?? run.requestId;
    run.orders.push(order);
    for (const arrive of this.#arrivals.splice(0)) arrive();
    if (order.kind === "stop" && this.stopsAtOnce) void run.exit();
  }
}

/** A backend without anything behind it: the test is the worker. */
export class ScriptedBackend implements Backend {
  readonly name = SCRIPTED;
  readonly #scripts: ReadonlyMap<string, ScriptedAgent>;
  readonly #agents: Map<string, string>;
  readonly #host: () => BackendHost;

  /** @param agents remembers which agent a run belongs to, over crashes. */
  constructor(scripts: ReadonlyMap<string, ScriptedAgent>, agents: Map<string, string>, host: () => BackendHost) {
    this.#scripts = scripts;
    this.#agents = agents;
    this.#host = host;
  }

  perform(order: Order): void {
    if (order.kind === "start") this.#agents.set(order.runId, order.agent);
    this.#scripts.get(this.#agents.get(order.runId) ?? "")?.receive(order, this.#host);
  }

  async identify(runId: string): Promise<Identity> {
    const script = this.#scripts.get(this.#agents.get(runId) ?? "");
    return script === undefined ? "absent" : (script.identities.get(runId) ?? "present");
  }

  async close(): Promise<void> {}
}
