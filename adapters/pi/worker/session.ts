import { randomUUID } from "node:crypto";
import type {
  AgentSettledEvent,
  ExtensionAPI,
  ExtensionContext,
  MessageEndEvent,
  ToolCallEvent,
  ToolCallEventResult,
  UIPromptStartEvent,
} from "@earendil-works/pi-coding-agent";
import { Connection, HerdError, messageOf } from "../../../runtime/client.ts";
import type { Told, ToldOrder, Silence, WorkerSays } from "../../host/shapes.ts";
import { Arrivals } from "../arrivals.ts";
import { HERD, type HerdDetails } from "../branch.ts";
import { NO_DIALOG } from "../environment.ts";
import { Link } from "../link.ts";
import { Outbox, type Outgoing } from "../outbox.ts";
import type { Looks } from "../looks.ts";
import { silenceMessage } from "../silence.ts";
import { ToolCalls } from "../tool-calls.ts";
import { version } from "../version.ts";
import type { WorkerIdentity } from "./identity.ts";
import { Reports } from "./reports.ts";
import { registerWorkerTools } from "./tools.ts";
import { branchState, outcomeOf } from "./turns.ts";

/** A sign of life is told this often at most, in milliseconds. */
const ACTIVITY_MS = 5_000;
/** How long a turn that was broken off waits for the end of its process, which would have been the reason; in milliseconds. */
const BROKEN_OFF_MS = 2_000;
/** Orders with which a turn begins; the others reach one that runs. */
const BEGINNINGS = new Set<HerdDetails["kind"]>(["task", "answer", "resume"]);

/** The Pi session of a worker: it hears its orders, asks its owner, and tells of its turns. */
export class WorkerSession {
  readonly #pi: ExtensionAPI;
  readonly #ctx: ExtensionContext;
  readonly #identity: WorkerIdentity;
  readonly #looks: Looks;
  readonly #link: Link;
  readonly #outbox: Outbox;
  readonly #arrivals: Arrivals;
  readonly #calls: ToolCalls;
  /** Orders that stand in the session, or are on their way into it. */
  readonly #seen: Set<string>;
  readonly #reports: Reports;
  #requestId: string | undefined;
  /** It has asked and waits for the answer. */
  #askId: string | undefined;
  #toldActivityAt = 0;
  /** A run of its model is on. */
  #isRunning = false;
  /** Dialogs that wait for a person, and what the last one wants. */
  #dialogs = 0;
  #wanted = "";
  /** A turn was broken off, and nobody was told yet. */
  #brokenOff: NodeJS.Timeout | undefined;

  constructor(pi: ExtensionAPI, ctx: ExtensionContext, identity: WorkerIdentity, looks: Looks) {
    this.#pi = pi;
    this.#ctx = ctx;
    this.#identity = identity;
    this.#looks = looks;
    const { seen, requestId, askId } = branchState(ctx);
    this.#seen = new Set(seen);
    this.#requestId = requestId;
    this.#askId = askId;
    this.#outbox = new Outbox(pi, ctx);
    this.#arrivals = new Arrivals(ctx, (message) => this.#outbox.put(message));
    this.#calls = new ToolCalls(["ask_owner"]);
    const { directory, token } = identity;
    this.#link = new Link({
      directory,
      open: () => Connection.open(directory, { token, version }),
      greet: (connection) => this.#greet(connection),
      isNeeded: () => true,
      failed: (message) => ctx.ui.notify(`herd: ${message}`, "error"),
    });
    this.#reports = new Reports({
      isOpen: () => this.#link.isOpen,
      tell: (report) => this.#link.call("worker/report", report),
      warn: (message) => process.stderr.write(`herd: ${message}\n`),
    });
  }

  /** Says who it is, and takes up its tools. */
  async start(): Promise<void> {
    registerWorkerTools(this.#pi, {
      delegates: this.#identity.delegates,
      looks: this.#looks,
      ask: (request, signal) => this.#ask(request, signal),
      subagent: (request, signal) => this.#subagent(request, signal),
    });
    const protocol = ["ask_owner", ...(this.#identity.delegates ? ["subagent"] : [])];
    this.#pi.setActiveTools([...new Set([...this.#pi.getActiveTools(), ...protocol])]);
    this.#showWaiting();
    try {
      await this.#link.connect();
    } catch (error) {
      // Its host knows more of it than it does; without one there is nobody to work for.
      process.stderr.write(`herd: ${messageOf(error)}\n`);
      this.#ctx.shutdown();
      return;
    }
    this.#outbox.ready();
  }

  messageEnd({ message }: MessageEndEvent): void {
    if (message.role === "assistant") this.#calls.noted(message.content);
    if (message.role === "custom" && message.customType === HERD) this.#arrived(message.details as HerdDetails);
    this.active();
  }

  toolCall(event: ToolCallEvent): ToolCallEventResult | undefined {
    return this.#calls.refusal(event);
  }

  agentStart(): void {
    clearTimeout(this.#brokenOff);
    this.#outbox.began();
    this.#isRunning = true;
    this.#tell({ type: "turn.started" });
  }

  agentSettled({ aborted }: AgentSettledEvent): void {
    this.#arrivals.look();
    this.#outbox.settled();
    this.#isRunning = false;
    // What opened a dialog and did not wait for it holds nothing up.
    if (this.#dialogs > 0) this.#tell({ type: "turn.started" });
    // A question ends the turn and nothing else; whatever its model said besides is no result.
    if (this.#askId !== undefined) return this.#tell({ type: "turn.ended" });
    const settle = () => this.#tell({ type: "settled", outcome: outcomeOf(this.#ctx) });
    // Pi breaks the turn off before it leaves. Then it is not over: the next process goes on with it.
    if (aborted) this.#brokenOff = setTimeout(settle, BROKEN_OFF_MS).unref();
    else settle();
  }

  /** An extension opens a dialog, which a person has to answer. */
  dialogOpened({ kind, title = "" }: UIPromptStartEvent): void {
    this.#dialogs++;
    this.#wanted = `It waits for a person to answer (${kind}): ${title}`;
    if (this.#isRunning) this.#tell({ type: "blocked", diagnostic: this.#wanted });
  }

  dialogOver(): void {
    this.#ctx.ui.setStatus(NO_DIALOG, undefined);
    this.#dialogs = Math.max(0, this.#dialogs - 1);
    if (this.#isRunning && this.#dialogs === 0) this.#tell({ type: "turn.started" });
  }

  /** A sign of life. */
  active(): void {
    const now = Date.now();
    if (now >= this.#toldActivityAt && now - this.#toldActivityAt < ACTIVITY_MS) return;
    this.#toldActivityAt = now;
    this.#tell({ type: "activity" });
  }

  async shutdown(): Promise<void> {
    clearTimeout(this.#brokenOff);
    this.#outbox.close();
    this.#arrivals.close();
    await this.#reports.told();
    this.#reports.close();
    await this.#link.close(500);
  }

  async #greet(connection: Connection): Promise<void> {
    connection.serve<ToldOrder>("worker/order", async (order) => this.#order(order));
    connection.serve<Silence>("worker/silent", (silence) => this.#silent(silence));
    const { sessionManager, model } = this.#ctx;
    const sessionFile = sessionManager.getSessionFile();
    const problem = await this.#problem();
    const says: WorkerSays = {
      sessionId: sessionManager.getSessionId(),
      ...(sessionFile !== undefined && { sessionFile }),
      pid: process.pid,
      ...(model && { model: `${model.provider}/${model.id}` }),
      thinking: this.#pi.getThinkingLevel(),
      ...(problem !== undefined && { problem }),
    };
    await connection.request("worker/hello", says);
    // What could not be told while nobody was there.
    setImmediate(() => this.#reports.flush());
  }

  /** Why its model cannot be called. */
  async #problem(): Promise<string | undefined> {
    const { model, modelRegistry } = this.#ctx;
    if (model === undefined || model.id === "unknown") {
      return "No model is chosen for this worker: run pi and choose one with /model, or name one in its definition";
    }
    // What is known of it at the start may lag behind an extension that brings it.
    if (modelRegistry.hasConfiguredAuth(model)) return undefined;
    const auth = await modelRegistry.getApiKeyAndHeaders(model);
    // Where Pi knows no way to get a key it says ok as well, and names none.
    if (auth.ok && ("apiKey" in auth || Object.keys(auth.headers ?? {}).length > 0)) return undefined;
    return `There is no key for the model ${model.provider}/${model.id}: run pi and /login, or set the key of ${model.provider} in the environment`;
  }

  #order(order: ToldOrder): void {
    const { orderId, kind, requestId } = order;
    if (!BEGINNINGS.has(kind)) {
      const delivered = () => this.#tell({ type: "delivered", orderId });
      // Left before, it is told the next process.
      void this.#arrivals.arrive(outgoingOf(order), delivered).catch(() => undefined);
      return;
    }
    if (this.#seen.has(orderId)) return this.#again(order);
    this.#seen.add(orderId);
    if (kind !== "resume") return this.#outbox.put(outgoingOf(order));
    const { requestId: last, askId: waitsFor, isOver } = branchState(this.#ctx);
    const { task, answer } = order;
    // Its process ended before its session held what it was told.
    if (task !== undefined && last !== requestId) {
      return this.#outbox.put(outgoingOf({ ...order, kind: "task", text: task }));
    }
    if (answer !== undefined && waitsFor === answer.askId) {
      return this.#outbox.put(outgoingOf({ ...order, kind: "answer", ...answer }));
    }
    // It had come to its end, and its process ended before it could say so: there is nothing to go on with.
    if (isOver && waitsFor === undefined && this.#ctx.isIdle()) {
      this.#begin(requestId, kind);
      this.#tell({ type: "turn.started" }, orderId);
      return this.#tell({ type: "settled", outcome: outcomeOf(this.#ctx) });
    }
    this.#outbox.put(outgoingOf(order));
  }

  /** A worker of this worker is silent. Resolves when that stands in the session. */
  async #silent(silence: Silence): Promise<void> {
    if (this.#askId !== undefined) throw waits();
    await this.#arrivals.arrive(silenceMessage(silence, "subagent"));
  }

  /** It was told this before: the confirmation was lost, or its process ended on the way. */
  #again({ orderId, kind, requestId, askId }: ToldOrder): void {
    const state = branchState(this.#ctx);
    // Still on its way into the session.
    if (!state.seen.has(orderId)) return;
    this.#begin(requestId, kind);
    this.#tell({ type: "turn.started" }, orderId);
    if (!this.#ctx.isIdle()) return;
    // What it had said last was never heard.
    if (state.isOver) return this.#tell({ type: "settled", outcome: outcomeOf(this.#ctx) });
    if (this.#askId !== undefined) return this.#tell({ type: "turn.ended" });
    const details: HerdDetails = {
      kind: "resume",
      ...(requestId !== undefined && { requestId }),
      ...(askId !== undefined && { askId }),
    };
    this.#outbox.put({ text: "Go on with your task.", details, as: "steer" });
  }

  /** A message of the herd has ended. A turn begins with it, and what a kill takes of it now is told again with the next. */
  #arrived(details: HerdDetails): void {
    const { orderId, kind, requestId } = details;
    this.#outbox.arrived(details);
    this.#arrivals.ended(details);
    if (orderId === undefined || !BEGINNINGS.has(kind)) return;
    this.#begin(requestId, kind);
    this.#tell({ type: "turn.started" }, orderId);
  }

  #begin(requestId: string | undefined, kind: HerdDetails["kind"]): void {
    this.#requestId = requestId ?? this.#requestId;
    if (kind !== "resume") this.#askId = undefined;
    this.#showWaiting();
  }

  async #ask(
    request: object,
    signal: AbortSignal | undefined,
  ): Promise<{ askId: string; assignmentRequestId: string }> {
    await this.#allTold();
    const requestId = this.#requestId;
    const says = {
      id: randomUUID(),
      request,
      batch: this.#calls.names,
      ...(requestId !== undefined && { requestId }),
    };
    const asked = await this.#link.call<{ askId: string; assignmentRequestId: string }>("worker/ask", says, { signal });
    this.#askId = asked.askId;
    this.#showWaiting();
    return asked;
  }

  async #subagent(request: object, signal: AbortSignal | undefined): Promise<object> {
    await this.#allTold();
    try {
      return await this.#link.call<object>("worker/subagent", { id: randomUUID(), request }, { signal });
    } finally {
      if (this.#isRunning && this.#dialogs > 0) this.#tell({ type: "blocked", diagnostic: this.#wanted });
    }
  }

  /** Before its model calls for something everything counts that came before: a question that it is about to answer, too. */
  async #allTold(): Promise<void> {
    await this.#arrivals.caughtUp();
    // Its model is at work, whatever else waits for a person beside it.
    if (this.#dialogs > 0) this.#tell({ type: "turn.started" });
    await this.#reports.told();
  }

  #showWaiting(): void {
    this.#ctx.ui.setStatus("herd", this.#askId === undefined ? undefined : "waiting for its owner");
  }

  #tell(told: Told, orderId?: string): void {
    const about = {
      ...(this.#requestId !== undefined && { requestId: this.#requestId }),
      ...(orderId !== undefined && { orderId }),
    };
    this.#reports.add({ told, ...about });
  }
}

function outgoingOf({ orderId, kind, text, requestId, askId, label }: ToldOrder): Outgoing {
  const details: HerdDetails = {
    kind,
    orderId,
    ...(requestId !== undefined && { requestId }),
    ...(askId !== undefined && { askId }),
    ...(label !== undefined && { label }),
  };
  return { text, details, as: kind === "question" ? "followUp" : "steer" };
}

/** Its turn is over until its owner has answered: nothing else begins one. */
function waits(): HerdError {
  return new HerdError({
    category: "worker_busy",
    reason: "already_waiting",
    message: "The worker waits for its owner's reply",
    nextAction: "nothing: it is told later",
    operation: "silent",
  });
}
