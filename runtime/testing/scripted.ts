import type { Outcome } from "../../machines/vocabulary.ts";
import type { Backend, BackendEvent, BackendHost, Identity, Order, StartFailure } from "../backend.ts";
import type { Place } from "../../machines/vocabulary.ts";

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

  /** The worker has accepted its task. Done by itself unless the script says otherwise. */
  accept(place?: Place): Promise<boolean> {
    return this.#report({ type: "accepted", ...(place && { place }) });
  }

  /** The start came to nothing. */
  failStart(failure: StartFailure): Promise<boolean> {
    return this.#report({ type: "start.failed", ...failure });
  }

  /** The process says for which session it speaks. */
  identify(sessionId: string, place?: Place): Promise<boolean> {
    return this.#report({ type: "identity", sessionId, ...(place && { place }) });
  }

  /** The newest order of a kind. */
  order<Kind extends Order["kind"]>(kind: Kind): Extract<Order, { kind: Kind }> {
    const found = this.orders.findLast((order) => order.kind === kind);
    if (found === undefined) throw new Error(`no ${kind} was ordered yet`);
    return found as Extract<Order, { kind: Kind }>;
  }

  /** A turn of the model begins. */
  turn(): Promise<boolean> {
    return this.#report({ type: "turn.started" });
  }

  /** The model calls a tool other than `ask_owner`. */
  tool(name: string): Promise<boolean> {
    return this.#report({ type: "tool.called", name });
  }

  /** A turn of the model ends. */
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

  /** The model calls `subagent`. */
  subagent(request: unknown): Promise<any> {
    return this.#host().subagent(this.runId, request);
  }

  /** What was handed over stands in the worker's session: the newest delivery, or the one of an order. */
  take(orderId = this.order("deliver").orderId): Promise<boolean> {
    return this.#report({ type: "delivered", orderId });
  }

  /** The work is over, with a text or with an error. */
  settle(
    end: string | { code: string; message: string },
    usage: Pick<Outcome, "usage" | "contextUsage"> = {},
  ): Promise<boolean> {
    const outcome: Outcome =
      typeof end === "string"
        ? { status: "completed", text: end, ...usage }
        : { status: "failed", error: end, ...usage };
    return this.#report({ type: "settled", outcome });
  }

  /** The model has what the owner said: the newest steer, or the one of an order. */
  hear(orderId = this.orders.findLast(({ kind }) => kind === "steer")?.orderId): Promise<boolean> {
    if (orderId === undefined) throw new Error("no steer was ordered yet");
    return this.#report({ type: "delivered", orderId });
  }

  /** Told to stop, it is proven gone. */
  exit(cleanupError?: string): Promise<boolean> {
    this.#script.identities.set(this.runId, "absent");
    return this.#report({ type: "gone", ...(cleanupError !== undefined && { cleanupError }) });
  }

  /** Its process ends although nobody told it to. */
  die(): Promise<boolean> {
    this.#script.identities.set(this.runId, "absent");
    return this.#report({ type: "exited" });
  }

  /** It could not be stopped. */
  failStop(message: string): Promise<boolean> {
    return this.#report({ type: "stop.failed", message });
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
  /** `false`: nobody hears whether a process is there. */
  answers = true;
  /** What the backend can prove about a run; `present` unless set. */
  readonly identities = new Map<string, Identity>();
  /** `false`: a stop order is not carried out until the test calls `exit()`. */
  stopsAtOnce = true;
  /** `false`: a start is not accepted until the test calls `accept()`. */
  acceptsAtOnce = true;
  /** What the one look at a failed start shows; looks are counted. */
  screen = "";
  looks = 0;
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

  /**
   * Called by the backend for every order.
   * @internal
   */
  receive(order: Order, host: () => BackendHost): void {
    let run = this.runs.find(({ runId }) => runId === order.runId);
    if (run === undefined) {
      run = new ScriptedRun(order, this, host);
      this.runs.push(run);
    }
    run.requestId = order.requestId ?? run.requestId;
    run.orders.push(order);
    if (order.kind === "start" || order.kind === "resume" || ("launch" in order && order.launch)) {
      this.identities.set(order.runId, this.identities.get(order.runId) === "unprovable" ? "unprovable" : "present");
    }
    for (const arrive of this.#arrivals.splice(0)) arrive();
    if (order.kind === "start" && this.acceptsAtOnce) void run.accept();
    if (order.kind === "stop" && this.stopsAtOnce) void run.exit();
  }
}

/** A backend without anything behind it: the test is the worker. */
export class ScriptedBackend implements Backend {
  readonly name = SCRIPTED;
  readonly sessionFolders: readonly string[];
  readonly #scripts: ReadonlyMap<string, ScriptedAgent>;
  readonly #agents: Map<string, string>;
  readonly #host: () => BackendHost;

  /** @param agents remembers which agent a run belongs to, over crashes. */
  constructor(
    scripts: ReadonlyMap<string, ScriptedAgent>,
    agents: Map<string, string>,
    host: () => BackendHost,
    sessionFolders: readonly string[] = [],
  ) {
    this.sessionFolders = sessionFolders;
    this.#scripts = scripts;
    this.#agents = agents;
    this.#host = host;
  }

  perform(order: Order): void {
    if (order.kind === "start") this.#agents.set(order.runId, order.agent);
    this.#scripts.get(this.#agents.get(order.runId) ?? "")?.receive(order, this.#host);
  }

  async diagnose(runId: string): Promise<string> {
    const script = this.#scripts.get(this.#agents.get(runId) ?? "");
    if (script) script.looks++;
    return script?.screen ?? "";
  }

  async identify(runId: string): Promise<Identity> {
    const script = this.#scripts.get(this.#agents.get(runId) ?? "");
    if (script?.answers === false) await new Promise(() => undefined);
    return script === undefined ? "absent" : (script.identities.get(runId) ?? "present");
  }

  async close(): Promise<void> {}
}
