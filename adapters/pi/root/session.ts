import { realpathSync } from "node:fs";
import type {
  AgentBeforeSettleEvent,
  AgentBeforeSettleEventResult,
  ExtensionAPI,
  ExtensionContext,
  MessageEndEvent,
} from "@earendil-works/pi-coding-agent";
import { HerdError, messageOf, type Connection } from "../../../runtime/client.ts";
import type { Listing, Question, Result } from "../../../runtime/index.ts";
import { findNode } from "../../host/node.ts";
import { cliOf } from "../../host/pi-command.ts";
import { hostDirectory } from "../../host/place.ts";
import type { ClosedWorker, Dialog, InUse, RootHears, RootSays, Silence } from "../../host/shapes.ts";
import { connectHost, reachHost } from "../../host/start.ts";
import { Arrivals } from "../arrivals.ts";
import { callKey, HERD, herdSaid, knowsOf, LIST_ENTRY, type HerdDetails } from "../branch.ts";
import { isPassing, Link } from "../link.ts";
import type { Looks } from "../looks.ts";
import { Outbox, type Outgoing } from "../outbox.ts";
import { silenceMessage, silenceText } from "../silence.ts";
import { version } from "../version.ts";
import { DialogDesk } from "./dialogs.ts";
import { closedMessage, questionMeant, questionMessage, resultMessage } from "./messages.ts";
import { dialogWaits, inUse, news, noAnswer, others } from "./notices.ts";
import { overview } from "./overview.ts";
import { inTime, PrintWait } from "./print-wait.ts";
import { readSettings, type Settings } from "./settings.ts";
import { registerRootTools } from "./tools.ts";
import { lastWordOf, unfinishedOf, type Unfinished } from "./unfinished.ts";
import { keepWorkspace, workspaceOf } from "./workspace.ts";

/** What our tool is called when another extension has its name. */
const OTHER_NAME = "herd_subagent";
/** How often is looked whether another Pi has left this session, in milliseconds. */
const AGAIN_MS = 2_000;
/** How long the background process may take to say what is left when a session without a screen ends, in milliseconds. */
const ANSWER_MS = 5_000;
const OPEN_ELSEWHERE =
  "This session is open in another Pi as well, and that one hears what its workers ask and bring; " +
  "this one does when that one is closed.";

/** A Pi session that owns workers. */
export class RootSession {
  readonly #pi: ExtensionAPI;
  readonly #ctx: ExtensionContext;
  readonly #looks: Looks;
  readonly #settings: Settings;
  readonly #findings: string[];
  readonly #directory = hostDirectory();
  readonly #workspace: string;
  readonly #link: Link;
  readonly #outbox: Outbox;
  readonly #arrivals: Arrivals;
  readonly #dialogs: DialogDesk;
  readonly #print: PrintWait | undefined;
  #toolName = "";
  /** The session has workers, or had some: its host is started when it is away. */
  #needsHost: boolean;
  /** The process of the host that was there last. */
  #hostPid = 0;
  #isClosed = false;
  readonly #said = new Set<string>();
  /** Labels of workers that its model is closing just now. */
  readonly #closing: unknown[] = [];

  constructor(pi: ExtensionAPI, ctx: ExtensionContext, looks: Looks) {
    this.#pi = pi;
    this.#ctx = ctx;
    this.#looks = looks;
    const { settings, findings } = readSettings(pi.getSettings());
    this.#settings = settings;
    this.#findings = findings;
    this.#workspace = workspaceOf(ctx);
    this.#needsHost = hasHistory(ctx);
    this.#outbox = new Outbox(pi, ctx);
    this.#print =
      ctx.mode === "print" || ctx.mode === "json"
        ? new PrintWait({ waitMs: settings.printWaitMs, isAwaited: () => this.#isAwaited() })
        : undefined;
    this.#arrivals = new Arrivals(ctx, (message) => this.#put(message));
    this.#dialogs = new DialogDesk(ctx, (dialog, answer) => this.#link.call("dialog/answer", { dialog, answer }));
    this.#link = new Link({
      directory: this.#directory,
      open: () => this.#open(),
      greet: (connection) => this.#greet(connection),
      isNeeded: () => this.#needsHost,
      // Its workers have gone with the background process: they ask anew.
      lost: () => this.#dialogs.clear(),
      failed: (message) => this.#say(message, "error"),
    });
  }

  /** Takes up its tools; its host is looked for meanwhile. */
  async start(): Promise<void> {
    this.#registerTools();
    this.#registerCommand();
    for (const finding of this.#findings) this.#say(finding, "warning");
    const connecting = this.#link.reach();
    // Without a screen the answer of the model may be all that there is time for.
    if (this.#print && this.#needsHost) await connecting;
    this.#outbox.ready();
  }

  messageEnd({ message }: MessageEndEvent): void {
    if (message.role !== "custom" || message.customType !== HERD) return;
    this.#outbox.arrived(message.details as HerdDetails);
    this.#arrivals.ended(message.details as HerdDetails);
  }

  agentStart(): void {
    this.#outbox.began();
    this.#arrivals.look();
  }

  agentSettled(): void {
    this.#outbox.settled();
    this.#arrivals.look();
  }

  /** Without a screen the end of the work is the end of the process: it waits for what its workers still have to say. */
  async beforeSettle({ outcome, entries }: AgentBeforeSettleEvent): Promise<AgentBeforeSettleEventResult | undefined> {
    this.#arrivals.look();
    if (this.#print === undefined || outcome !== "completed" || !this.#needsHost) return undefined;
    const next = await this.#print.next();
    if (next.length === 0) return undefined;
    const said = next.map(({ text: content, details }) => ({
      type: "custom_message" as const,
      customType: HERD,
      content,
      display: true,
      details,
    }));
    return { entries: [...entries, ...said], continue: true };
  }

  /** Another branch is the active one: what is open and does not stand on it is shown again. */
  navigated(): void {
    void this.#showOpen().catch((error: unknown) => this.#say(messageOf(error), "error"));
  }

  /** What workers start with has changed. */
  changed(): void {
    if (!this.#link.isOpen) return;
    void this.#says().then(
      (says) => this.#link.tell("root/here", says),
      (error: unknown) => this.#say(messageOf(error), "error"),
    );
  }

  async shutdown(): Promise<void> {
    this.#isClosed = true;
    this.#dialogs.close();
    this.#outbox.close();
    if (this.#print) await this.#lastWord();
    this.#arrivals.close();
    await this.#link.close(500);
  }

  get #session(): string {
    return this.#ctx.sessionManager.getSessionId();
  }

  get #by() {
    const { limits } = this.#settings;
    const hasLimits = Object.keys(limits).length > 0;
    return {
      owner: { id: this.#session },
      workspace: this.#workspace,
      cwd: this.#ctx.cwd,
      ...(hasLimits && { limits }),
    };
  }

  async #open(): Promise<Connection | undefined> {
    const visitor = { directory: this.#directory, bearer: { role: "root", session: this.#session } as const, version };
    if (!this.#needsHost) return connectHost(visitor);
    return (await reachHost(visitor)).connection;
  }

  async #greet(connection: Connection): Promise<void> {
    connection.serve<{ question: Question }>("receiver/question", async ({ question }) => {
      await this.#arrivals.arrive(questionMessage(question, this.#toolName));
    });
    connection.serve<{ result: Result }>("receiver/result", async ({ result }) => {
      await this.#arrivals.arrive(resultMessage(result));
    });
    connection.serve<Silence>("worker/silent", async (silence) => {
      // Without a screen the model is held until a worker says something; the person can see why it takes so long.
      if (this.#print) this.#say(silenceText(silence), "warning");
      else await this.#arrivals.arrive(silenceMessage(silence, this.#toolName));
    });
    connection.listen<ClosedWorker>("worker/closed", (closed) => this.#hearClosed(closed));
    connection.listen<InUse>("session/inUse", ({ label }) => this.#say(inUse(label), "warning"));
    connection.listen<Dialog>("dialog/opened", (dialog) => this.#hearDialog(dialog));
    connection.listen<{ id: string }>("dialog/closed", ({ id }) => this.#dialogs.closed(id));
    const { pid, isNews, elsewhere, worker } = await connection.request<RootHears>("root/here", await this.#says());
    this.#hostPid = pid;
    if (isNews) this.#say(news(pid, this.#directory), "info");
    if (worker !== undefined) this.#say(inUse(worker), "warning");
    for (const other of elsewhere) this.#sayOnce(others(other, this.#directory));
    await this.#receive(connection);
  }

  /** Becomes the one that hears what its workers ask and bring: at once, or as soon as another Pi with this session is gone. */
  async #receive(connection: Connection, isAgain = false): Promise<void> {
    const hears = { receiver: 1, hearsQuestions: true, hearsResults: true, replace: false };
    try {
      await connection.call("owner/attach", { ...this.#by, ...hears });
      await this.#showOpen(connection);
    } catch (error) {
      if (!(error instanceof HerdError) || error.reason !== "receiver_exists") throw error;
      if (!isAgain) this.#say(OPEN_ELSEWHERE, "warning");
      setTimeout(() => void this.#receiveAgain(connection), AGAIN_MS).unref();
    }
  }

  async #receiveAgain(connection: Connection): Promise<void> {
    try {
      if (!this.#isClosed && connection.isOpen) await this.#receive(connection, true);
    } catch (error) {
      // With the next connection it is tried from the start.
      if (connection.isOpen) this.#say(messageOf(error), "error");
    }
  }

  async #says(): Promise<RootSays> {
    const { cwd, model, mode, hasUI, sessionManager } = this.#ctx;
    const sessionFile = sessionManager.getSessionFile();
    const thinking = this.#pi.getThinkingLevel();
    return {
      cwd,
      trusted: this.#ctx.isProjectTrusted(),
      ...(model && { model: `${model.provider}/${model.id}` }),
      ...(thinking !== undefined && { thinking }),
      pi: { node: await findNode(), cli: ownCli() },
      env: Object.fromEntries(
        Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
      ),
      dialogs: this.#settings.dialogs,
      hasUI: hasUI && mode === "tui",
      ...(sessionFile !== undefined && { sessionFile }),
    };
  }

  #registerTools(): void {
    const taken = new Set(this.#pi.getAllTools().map(({ name }) => name));
    this.#toolName = this.#settings.toolName;
    if (taken.has(this.#toolName)) {
      this.#toolName = OTHER_NAME;
      this.#say(
        `Another extension has a tool named ${this.#settings.toolName}, so that of the herd is ${OTHER_NAME} here. ` +
          `The setting "herd": { "toolName": "…" } gives it another name.`,
        "warning",
      );
    }
    registerRootTools(this.#pi, {
      name: this.#toolName,
      looks: this.#looks,
      subagent: (request, callId, signal) => this.#subagent(request, callId, signal),
      parked: (name, input, signal) => this.#call("owner/parkedTool", { name, input }, signal),
    });
  }

  #registerCommand(): void {
    this.#pi.registerCommand("subagents", {
      description: "Show what runs for this session, and the agents that can be assigned",
      handler: async (_args, ctx) => {
        try {
          const text = overview(await this.#call<Listing>("owner/list", {}));
          if (ctx.mode === "tui") this.#pi.appendEntry(LIST_ENTRY, { text });
          else ctx.ui.notify(text, "info");
        } catch (error) {
          ctx.ui.notify(`herd: ${messageOf(error)}`, "error");
        }
      },
    });
  }

  async #subagent(request: Record<string, unknown>, callId: string, signal: AbortSignal | undefined): Promise<object> {
    const { action, label } = request;
    if (action === "assign") keepWorkspace(this.#pi, this.#ctx, this.#workspace);
    const id = callKey(this.#ctx, callId);
    const askId = action === "reply" ? questionMeant(this.#ctx, label) : undefined;
    const call = { replyId: id, assignId: id, steerId: id, ...(askId !== undefined && { askId }) };
    if (action === "close") this.#closing.push(label);
    try {
      return await this.#call<object>("owner/subagent", { request, call }, signal);
    } finally {
      if (action === "close") this.#closing.splice(this.#closing.indexOf(label), 1);
    }
  }

  /** The model hears it unless it has closed the worker itself. Of workers of its workers it knows nothing. */
  #hearClosed(closed: ClosedWorker): void {
    if (this.#closing.includes(closed.label) || !knowsOf(this.#ctx, closed.requestId)) return;
    void this.#arrivals.arrive(closedMessage(closed)).catch(() => undefined);
  }

  /** Only a person answers: where none can be shown anything, the command is named that does. */
  #hearDialog(dialog: Dialog): void {
    if (this.#ctx.mode === "tui") this.#dialogs.opened(dialog);
    else this.#sayOnce(dialogWaits(dialog, this.#directory), "warning", dialog.id);
  }

  /** A call for this owner; its host is started when it is not there. */
  async #call<Answer>(method: string, says: object, signal?: AbortSignal): Promise<Answer> {
    this.#needsHost = true;
    await this.#arrivals.caughtUp();
    return this.#link.call<Answer>(method, { ...this.#by, ...says }, { signal });
  }

  #put(message: Outgoing): void {
    if (this.#print) this.#print.take(message);
    else this.#outbox.put(message);
  }

  /** Shows the open questions that do not stand on the active branch. */
  async #showOpen(connection?: Connection): Promise<void> {
    if (!this.#needsHost || (connection === undefined && !this.#link.isOpen)) return;
    const list = connection
      ? await connection.request<Listing>("owner/list", this.#by)
      : await this.#call<Listing>("owner/list", {});
    for (const { label, question, parentLabel } of list.workers) {
      // A worker's own worker asks that worker.
      if (question === undefined || parentLabel !== undefined) continue;
      void this.#arrivals.arrive(questionMessage({ ...question, label }, this.#toolName)).catch(() => undefined);
    }
  }

  /** Whether a worker is left that can still say something here. One that another worker has assigned says it to that. */
  async #isAwaited(): Promise<boolean> {
    try {
      return (await this.#unfinished()).some(({ isHeard, isOwn }) => isOwn && !isHeard);
    } catch (error) {
      if (isPassing(error)) throw error;
      // There is nobody to wait for: without a background process no worker runs.
      this.#link.sayWhy(error);
      return false;
    }
  }

  async #unfinished(): Promise<Unfinished[]> {
    return unfinishedOf(await this.#call<Listing>("owner/list", {}), this.#ctx);
  }

  /** The last line of a session without a screen says what still runs. */
  async #lastWord(): Promise<void> {
    if (!this.#needsHost || !this.#link.isOpen) return;
    const left = await inTime(
      this.#unfinished().catch(() => []),
      ANSWER_MS,
    );
    const file = this.#ctx.sessionManager.getSessionFile();
    const word = left === undefined ? noAnswer(this.#hostPid, file) : lastWordOf(left, file);
    if (word !== undefined) process.stderr.write(`herd: ${word}\n`);
  }

  /** The connection may come back again and again, with nothing new to say. */
  #sayOnce(message: string, kind: "info" | "warning" = "info", key = message): void {
    if (this.#said.has(key)) return;
    this.#said.add(key);
    this.#say(message, kind);
  }

  /** Something for a person; without a screen it is a line on stderr. */
  #say(message: string, kind: "info" | "warning" | "error"): void {
    if (this.#isClosed) return;
    if (this.#ctx.hasUI) this.#ctx.ui.notify(`herd: ${message}`, kind);
    else if (kind !== "info") process.stderr.write(`herd: ${message}\n`);
  }
}

/** Whether the session ever had workers: then something may wait for it. */
function hasHistory(ctx: ExtensionContext): boolean {
  if (herdSaid(ctx).length > 0) return true;
  return ctx.sessionManager
    .getEntries()
    .some((entry) => entry.type === "custom" && entry.customType === "herd-workspace");
}

/** The program that this Pi runs: its workers run the same. */
function ownCli(): string {
  const script = process.argv[1] ?? "";
  try {
    const real = realpathSync(script);
    return cliOf(real) ?? real;
  } catch {
    return script;
  }
}
