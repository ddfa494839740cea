import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Backend, BackendFactory, BackendHost, Identity, Launch, Order } from "../../../runtime/backend.ts";
import { HerdError, type ControlClient } from "../../../runtime/index.ts";
import { messageOf } from "../../../runtime/client.ts";
import type { Dialogs } from "../../host/dialogs.ts";
import type { Log } from "../../host/log.ts";
import type { Told, WorkerAsks, WorkerDelegates, WorkerSays } from "../../host/shapes.ts";
import { badToken, tokenFor } from "../../host/tokens.ts";
import { LeftOvers } from "./left-overs.ts";
import { WorkerProcess } from "./process.ts";
import { PromptFiles } from "./prompts.ts";
import { beganAt, ProcessRecords } from "./records.ts";
import { HeadlessRun } from "./run.ts";
import { StartPlans, type Surroundings } from "./start-plans.ts";
import { WorkerDialogs } from "./worker-dialogs.ts";
import { WorkerFiles } from "./worker-files.ts";

/** How long a process that takes up its work again may take until it says who it is, in milliseconds. */
const AGAIN_MS = 300_000;

export interface HeadlessOptions extends Surroundings {
  /** What tokens are made from. */
  key: Buffer;
  dialogs: Dialogs;
  log: Log;
}

/** Workers that are Pi processes without a screen (`pi --mode rpc`), children of this program. */
export class Headless implements Backend {
  readonly name = "pi";
  /** Sessions of workers are made in the first; those of the user can be gone on with too. */
  readonly sessionFolders: readonly string[];
  readonly #options: HeadlessOptions;
  readonly #host: BackendHost;
  readonly #files: WorkerFiles;
  readonly #runs = new Map<string, HeadlessRun>();
  readonly #plans: StartPlans;
  readonly #leftOvers: LeftOvers;
  readonly #dialogs: WorkerDialogs;

  constructor(options: HeadlessOptions, host: BackendHost) {
    this.#options = options;
    this.#host = host;
    const records = new ProcessRecords(options.directory);
    const prompts = new PromptFiles(options.directory);
    this.#files = new WorkerFiles(records, prompts, options.log);
    const sessionFolder = join(options.directory, "pi-sessions");
    this.sessionFolders = [sessionFolder, join(options.agentDirectory, "sessions")];
    const tokenOf = (start: { runId: string; launch: string }) => tokenFor(options.key, { role: "worker", ...start });
    this.#plans = new StartPlans({
      ...options,
      sessionFolder,
      tokenOf,
      records,
      prompts,
    });
    this.#leftOvers = new LeftOvers(records, prompts, options.log, ({ runId, launch }) => tokenOf({ runId, launch }));
    this.#dialogs = new WorkerDialogs(options);
  }

  /** Worker processes that live. */
  get alive(): number {
    return [...this.#runs.values()].filter(({ identity }) => identity === "present").length;
  }

  /** Ends what an earlier host left behind. Only for who has the store. */
  sweep(): Promise<void> {
    return this.#leftOvers.sweep();
  }

  /** The connection of a worker's process, once it has said who it is. */
  clientOf(runId: string): ControlClient | undefined {
    const run = this.#runs.get(runId);
    return run?.isGreeted === true ? run.client : undefined;
  }

  /** The worker whose process has this session. */
  workerIn(session: string): string | undefined {
    return [...this.#runs.values()].find((run) => run.sessionId === session && run.identity === "present")?.label;
  }

  /** Workers that are at something, which the end of this program would break off: a start, a turn, what begins one. */
  get busy(): number {
    return [...this.#runs.values()].filter((run) => run.identity === "present" && run.isBusy).length;
  }

  async preflight(): Promise<void> {
    await this.#options.findPi();
  }

  perform(order: Order): void {
    const run = this.#runOf(order.runId);
    run.label = order.label;
    run.requestId = order.requestId ?? run.requestId;
    if (order.kind === "stop") {
      run.halted.abort();
      run.stopping ??= this.#inBackground(run, this.#stop(run)).finally(() => (run.stopping = undefined));
      return;
    }
    const launch =
      order.kind === "start" || order.kind === "resume" ? order : "launch" in order ? order.launch : undefined;
    if (launch && run.identity === "absent") {
      run.forget();
      this.#begin(run, launch, order.kind === "start" ? order.timeoutMs : AGAIN_MS);
    }
    run.tell(order);
  }

  /** A session is open: workers that need it go on. */
  came(session: string): void {
    for (const run of this.#runs.values()) {
      const { lacks } = run;
      if (lacks === undefined || run.owner !== session || run.identity === "present" || run.stopping) continue;
      this.#begin(run, lacks, AGAIN_MS);
    }
  }

  #begin(run: HeadlessRun, launch: Launch, budget: number): void {
    run.starting = this.#inBackground(run, this.#start(run, launch, budget)).finally(() => (run.starting = undefined));
  }

  async identify(runId: string): Promise<Identity> {
    const identity = this.#runs.get(runId)?.identity ?? "absent";
    if (identity === "present") return identity;
    return (await this.#leftOvers.isProvenGone(runId)) ? "absent" : "unprovable";
  }

  async diagnose(runId: string): Promise<string> {
    return this.#runs.get(runId)?.process?.stderr.text ?? "";
  }

  forget(runId: string): void {
    const run = this.#runs.get(runId);
    this.#runs.delete(runId);
    this.#files.forget(runId, run);
  }

  /** Headless workers live as long as this program: they go on from their sessions when it is there again. */
  async close(): Promise<void> {
    const ends = [...this.#runs.values()].map(async (run) => {
      run.halted.abort();
      await run.starting?.catch(() => undefined);
      // What is on its way out is out before this program is.
      await run.stopping;
      await run.process?.end();
      await run.kept();
      await this.#files.removePrompts(run.runId);
    });
    for (const end of await Promise.allSettled(ends)) {
      if (end.status === "rejected") this.#options.log.error({ error: messageOf(end.reason) }, "worker not ended");
    }
    await this.#files.forgotten();
  }

  /** A worker's process says who it is. @throws HerdError `bad_token`. */
  async hello(
    client: ControlClient,
    { runId, launch }: { runId: string; launch: string },
    says: WorkerSays,
  ): Promise<void> {
    const run = this.#runs.get(runId);
    if (run === undefined || run.launch !== launch || run.process?.isAlive !== true) {
      throw badToken("The token belongs to a worker's process that has ended");
    }
    // What a worker starts inherits its environment, and is not that worker.
    if (says.pid !== run.process.pid) throw badToken(`The token is in use by process ${run.process.pid}`);
    const { sessionId, sessionFile, model, thinking, problem } = says;
    run.sessionFile = sessionFile;
    const place = {
      paneId: `pi:${says.pid}`,
      ...(sessionFile !== undefined && { sessionPath: sessionFile }),
      ...(model !== undefined && { model }),
      ...(thinking !== undefined && { thinking }),
    };
    await this.#files.removePrompts(runId);
    // Of one that has worked already what comes between it and its model shows at its next call.
    if (problem !== undefined && !run.isGreeted) {
      // Its key may be in the environment of its session, which this program has not heard of yet.
      if (!run.isFirst && this.#options.lastSaid(run.owner) === undefined) {
        this.#options.log.warn({ runId, label: run.label }, "the worker waits for the key that its session may have");
        run.lacks = run.begun;
      } else await run.report({ type: "start.failed", stage: "agent_start", message: problem });
      throw noModel(problem);
    }
    await run.report({ type: "identity", sessionId, place });
    if (!run.isGreeted) await run.report({ type: "accepted", place });
    run.isGreeted = true;
    run.client = client;
    client.gone.addEventListener("abort", () => {
      if (run.client === client) run.client = undefined;
    });
    this.#options.log.info({ runId, label: run.label, pid: says.pid }, "worker ready");
    // After this answer is out.
    setImmediate(() => run.flush());
  }

  /** A worker's process tells of its turns. @throws HerdError `bad_token` unless it is the one that said who it is. */
  async report(
    client: ControlClient,
    runId: string,
    told: Told,
    about: { requestId?: string; orderId?: string },
  ): Promise<boolean> {
    const run = this.#greeted(client, runId);
    if (about.orderId !== undefined) run.confirmed(about.orderId);
    if (told.type === "delivered") run.confirmed(told.orderId);
    if (told.type === "turn.started") run.inTurn = true;
    if (told.type === "turn.ended" || told.type === "settled") run.inTurn = false;
    run.noteSession();
    return run.report(told, about.requestId);
  }

  /** A worker's model asks its owner. @throws HerdError why it may not. */
  async ask(client: ControlClient, runId: string, { id, request, ...about }: WorkerAsks): Promise<object> {
    return this.#greeted(client, runId).once(id, () => this.#host.askOwner(runId, request, about));
  }

  async subagent(client: ControlClient, runId: string, { id, request }: WorkerDelegates): Promise<object> {
    return this.#greeted(client, runId).once(id, () => this.#host.subagent(runId, request));
  }

  /** What a worker's tools start inherits its token: only the connection that greeted speaks for the worker. */
  #greeted(client: ControlClient, runId: string): HeadlessRun {
    const run = this.#runs.get(runId);
    if (run?.isGreeted === true && run.client === client) return run;
    throw badToken("This connection is not that of the worker's process, which says who it is first");
  }

  #runOf(runId: string): HeadlessRun {
    const known = this.#runs.get(runId);
    if (known) return known;
    const run = new HeadlessRun(runId, { host: this.#host, log: this.#options.log, records: this.#files.records });
    this.#runs.set(runId, run);
    return run;
  }

  async #start(run: HeadlessRun, launch: Launch, budget: number): Promise<void> {
    const { runId } = run;
    const { log } = this.#options;
    run.isGreeted = false;
    run.begun = launch;
    run.lacks = undefined;
    run.owner = launch.owner;
    run.sessionId = launch.sessionId;
    try {
      await this.#leftOvers.sweep();
      run.isFirst = (await this.#files.records.read(runId)) === undefined;
      // What it was started with the first time was its session's environment.
      if (!run.isFirst && this.#options.lastSaid(launch.owner) === undefined) {
        log.info({ runId, label: run.label }, "the worker waits for its session to come");
        await this.#options.mayCome(launch.owner, run.halted.signal);
      }
      run.launch = randomUUID();
      const { start, record } = await this.#plans.make(run, launch);
      // Told meanwhile to stop: that waits for the end of this.
      if (run.stopping || run.halted.signal.aborted) return;
      const program = new WorkerProcess({ ...start, reader: this.#dialogs.readerOf(run) });
      run.process = program;
      run.dialogs = record.dialogs ?? "ask";
      log.info(
        { runId, label: run.label, agent: launch.agent, pid: program.pid, first: run.isFirst },
        "worker started",
      );
      void program.ended.then((what) => this.#inBackground(run, this.#over(run, program, what)));
      if (program.pid !== undefined) {
        const began = await beganAt(program.pid);
        if (began !== undefined) await this.#files.keep(run, { ...record, pid: program.pid, began });
      }
      if (!run.isFirst) this.#watch(run, program, budget);
    } catch (error) {
      log.warn({ runId, label: run.label, error: messageOf(error) }, "worker not started");
      await this.#files.removePrompts(runId);
      const category = error instanceof HerdError ? error.category : undefined;
      // Not waited for: rolling back waits for the end of this.
      void run.report({
        type: "start.failed",
        stage: "agent_start",
        ...(category && { category }),
        message: error instanceof HerdError ? error.message.replace(/ Next: .*$/s, "") : messageOf(error),
      });
    }
  }

  /** What nobody waits for must not end this program when it fails. */
  async #inBackground(run: HeadlessRun, work: Promise<void>): Promise<void> {
    await work.catch((error: unknown) => {
      this.#options.log.error(
        { runId: run.runId, label: run.label, error: messageOf(error) },
        "a worker is not cared for",
      );
    });
  }

  /** A process that takes up its work again has to say who it is some time; a first one has the launch's own budget. */
  #watch(run: HeadlessRun, program: WorkerProcess, budget: number): void {
    const timer = setTimeout(() => {
      if (run.process !== program || run.isGreeted) return;
      void run.report({
        type: "start.failed",
        stage: "agent_result",
        message: `it did not answer within ${budget} ms`,
      });
      void program.end().catch(() => undefined);
    }, budget);
    timer.unref();
    void program.ended.then(() => clearTimeout(timer));
  }

  /** A process has ended: what it told before that comes first. */
  async #over(run: HeadlessRun, program: WorkerProcess, what: string): Promise<void> {
    // The next start, which may come meanwhile, clears that.
    const { runId, lacks } = run;
    const { log } = this.#options;
    this.#dialogs.over(runId);
    run.noteSession();
    await this.#files.removePrompts(runId);
    await run.heardOut();
    if (run.process !== program || run.stopping) return;
    run.inTurn = false;
    if (lacks !== undefined) {
      if (this.#options.lastSaid(run.owner) !== undefined) this.came(run.owner);
      return;
    }
    log.warn({ runId, label: run.label, pid: program.pid, what }, "worker ended");
    if (run.isGreeted) await run.report({ type: "exited" });
    else {
      const said = program.stderr.gist;
      const why = `Pi ended (${what}) before it was ready${said === undefined ? "" : `: ${said.slice(0, 300)}`}`;
      await run.report({ type: "start.failed", stage: "agent_start", message: why });
    }
  }

  async #stop(run: HeadlessRun): Promise<void> {
    const { runId } = run;
    try {
      await run.starting;
      run.lacks = undefined;
      await run.process?.end();
      await this.#files.removePrompts(runId);
      // Not only when it is forgotten: this program may end before that.
      await run.kept();
      await this.#files.records.remove(runId);
      run.forget();
      await run.reported();
      this.#options.log.info({ runId, label: run.label }, "worker stopped");
      await run.report({ type: "gone" });
    } catch (error) {
      await run.report({ type: "stop.failed", message: messageOf(error) });
    }
  }
}

function noModel(problem: string): HerdError {
  return new HerdError({
    category: "invalid_request",
    reason: "no_model",
    message: problem,
    nextAction: "choose a model that has a key",
    operation: "hello",
  });
}

/** The backend for a host, and the backend as the factory made it. */
export function headless(options: HeadlessOptions): { factory: BackendFactory; backend(): Headless } {
  let made: Headless | undefined;
  return {
    factory: (host) => (made = new Headless(options, host)),
    backend: () => {
      if (made === undefined) throw new Error("the herd is not open yet");
      return made;
    },
  };
}
