import type { Outcome, Usage } from "../../machines/vocabulary.ts";
import type { Engine } from "../engine.ts";
import { messageOf } from "../errors.ts";
import type { AskRecord, RequestRecord } from "../kernel/records.ts";
import { keys } from "../store/keys.ts";
import type { AgentDefinition } from "./agent.ts";
import { Children } from "./children.ts";
import { workerFace } from "./face.ts";
import { failed, hold, outcomeOf, settle } from "./finish.ts";
import type { Functions } from "./functions.ts";
import { describeMismatch, Journal, type Claim, type Wanted } from "./journal.ts";
import { Occupation } from "./occupation.ts";
import { Reports } from "./reports.ts";
import { restore } from "./restore.ts";
import { never, Revocation } from "./revocation.ts";
import { Steers } from "./steers.ts";
import type { StopReason } from "./worker.ts";

/**
 * One execution of a run's function, from the top to its end or until it is stopped. What it waits for is looked at
 * again whenever the run has news, always on what is on disk, so a wake too many does no harm.
 */
export class Execution {
  readonly engine: Engine;
  readonly functions: Functions;
  readonly treeId: string;
  readonly runId: string;
  readonly agent: string;
  readonly journal = new Journal();
  readonly children: Children;
  readonly steers = new Steers();
  readonly reports: Reports;
  request!: RequestRecord;
  /** The lines of the session that this run continues. */
  history: readonly object[] = [];
  /** Steps that were called and have not returned, also those that wait for an open question. */
  pendingSteps = 0;
  /** Set once: nothing that the function does is taken any more. */
  revoked = false;
  /** UTC milliseconds since when it only waits, or undefined while it executes. */
  waitingSince: number | undefined;
  /** The questions that are open now. */
  readonly #openAsks = new Set<string>();
  readonly #occupation = new Occupation();
  readonly #fresh: boolean;
  readonly #revocation: Revocation;
  #hasSlot = true;
  #pinned = false;
  #leaveQueue: (() => void) | undefined;
  /** How often something of this run or of its children changed. */
  changes = 0;
  #news: { resolve: () => void; reject: (reason: unknown) => void }[] = [];
  #checking = false;
  #closing = false;
  /** Waits for a child that waits for this run: nothing would start it again if it left memory. */
  #watching = false;
  #held: Outcome | undefined;
  #ended: (() => void) | undefined;

  /** @param fresh launched in this process, so that there is no journal to read. */
  constructor(
    engine: Engine,
    functions: Functions,
    run: { treeId: string; runId: string; agent: string; fresh: boolean },
  ) {
    const { treeId, runId, agent, fresh } = run;
    this.#fresh = fresh;
    this.engine = engine;
    this.functions = functions;
    this.treeId = treeId;
    this.runId = runId;
    this.agent = agent;
    this.children = new Children(this);
    this.#revocation = new Revocation(runId);
    this.reports = new Reports((note, usage) => this.#tellReport(note, usage));
  }

  get signal(): AbortSignal {
    return this.#revocation.signal;
  }

  /** Only waits for an answer, for its children or for a place. */
  get waiting(): boolean {
    return this.waitingSince !== undefined;
  }

  /** Reads the journal and calls the function. Never throws: what goes wrong ends or holds the run. */
  start(): void {
    this.engine.kernel.pin(this.treeId);
    this.#pinned = true;
    void this.#execute()
      // Only a store that takes nothing any more gets here; the run goes on when it is opened again.
      .catch((error: unknown) => this.stop("fenced", messageOf(error)))
      .finally(() => {
        this.#letGo();
        this.#ended?.();
      });
  }

  async #execute(): Promise<void> {
    const definition = await this.#prepare();
    if (definition === undefined || this.revoked) return;
    let outcome: Outcome;
    try {
      const value = await definition.run(this.request.task, workerFace(this));
      outcome = outcomeOf(value, this.reports.usage);
    } catch (error) {
      if (this.revoked || this.#closing) return this.stop("parked", "The function stopped.");
      await this.children.closeAll();
      outcome = failed("worker_error", error, this.reports.usage);
    }
    // An open question keeps the run going: a step under way must come to its journal, or its effect is done again.
    while (this.#openAsks.size > 0 && this.#occupation.doing.steps > 0 && !this.revoked) await this.news();
    if (!this.revoked) await this.#finish(outcome);
  }

  /** The function to run, once launched and with its journal read; undefined when it is held or not wanted. */
  async #prepare(): Promise<AgentDefinition | undefined> {
    const tree = await this.engine.kernel.tree(this.treeId);
    const worker = tree.worker(this.runId);
    const requestId = worker?.context.assignment?.requestId;
    const request = requestId === undefined ? undefined : this.engine.request(requestId);
    if (worker === undefined || request === undefined) {
      this.stop("parked", "The run has no open assignment.");
      return undefined;
    }
    this.request = request;
    if (request.continues) this.history = await this.engine.sessions.historyOf(request);
    const definition = this.engine.agents.find(request.agent);
    if (definition === undefined) {
      const defined = this.engine.agents.names.join(", ") || "none";
      await hold(
        this,
        `Agent "${request.agent}" is not defined in this program (defined: ${defined}). Next: open the store with a ` +
          `program that defines it, or name it in another agent's "formerly".`,
      );
      return undefined;
    }
    const queued = worker.state === "settling.queued";
    if (queued) await this.#launch();
    if (worker.state === "blocked.onBackend") await this.#release();
    if (!this.#fresh && !queued) await restore(this, (askId) => this.#openAsks.add(askId));
    return definition;
  }

  /** The queued launch has its place. */
  async #launch(): Promise<void> {
    await this.command("launch", (step) => step.send(this.runId, { type: "launch.accepted", at: step.now }));
  }

  /** What held the run may be over: it tries again. */
  async #release(): Promise<void> {
    await this.command("release", (step) => step.send(this.runId, { type: "turn.started", at: step.now }));
  }

  /** Finds the call in the journal; a call that does not fit what is recorded holds the run and never returns. */
  async claim(wanted: Wanted): Promise<Exclude<Claim, { type: "mismatch" }>> {
    let claim = this.journal.claim(wanted);
    // An unnamed call with another text may belong to a branch that comes before the recorded one this time.
    for (let looks = 0; claim.type === "mismatch" && !claim.certain && looks < 20;) {
      const busy = this.#occupation.acts;
      await (busy ? this.news() : new Promise((resolve) => setImmediate(resolve)));
      if (!busy) looks++;
      claim = this.journal.claim(wanted);
    }
    if (claim.type !== "mismatch") return claim;
    await hold(this, describeMismatch(claim, wanted));
    return never();
  }

  /** Runs one command of the function's on its tree. */
  async command<T>(operation: string, body: Parameters<Engine["kernel"]["run"]>[1]): Promise<T> {
    await this.live();
    return this.record(operation, body);
  }

  /** The same for what is done already: it is kept even while the herd closes. */
  async record<T>(operation: string, body: Parameters<Engine["kernel"]["run"]>[1]): Promise<T> {
    if (this.revoked) await this.live();
    this.#occupation.doing.running++;
    try {
      return (await this.engine.kernel.run(this.treeId, body, { operation })) as T;
    } finally {
      this.#occupation.doing.running--;
      this.changes++;
      this.#changed();
    }
  }

  /** Counts something that executes, so that the run is not taken for waiting. */
  async during<T>(what: "running" | "steps" | "handlers", fn: () => Promise<T>): Promise<T> {
    this.#occupation.doing[what]++;
    try {
      return await fn();
    } finally {
      this.#occupation.doing[what]--;
      this.#changed();
    }
  }

  /**
   * Waits, from within a step, for what another run comes to: it does nothing meanwhile and gives its place back, but stays
   * in memory, where that is told.
   */
  async visiting<T>(visit: Promise<T>): Promise<T> {
    this.#occupation.doing.steps--;
    await this.awaits(
      "visit",
      visit.catch(() => undefined),
    );
    this.#occupation.doing.steps++;
    this.#goOn();
    await this.proceed();
    return visit;
  }

  /**
   * Waits until something may have changed for this run.
   * @param seen `changes` before the caller looked, when it awaited something since: what came meanwhile counts.
   */
  async news(waitingFor?: "answer" | "turn" | "children", seen = this.changes): Promise<void> {
    if (this.#closing) await this.live();
    if (seen !== this.changes) return;
    if (waitingFor) this.#occupation.waitingFor[waitingFor]++;
    this.#check();
    await new Promise<void>((resolve, reject) => this.#news.push({ resolve, reject }));
    if (waitingFor) this.#occupation.waitingFor[waitingFor]--;
    this.#goOn();
  }

  /** While a question is open every other call waits. */
  async gate(): Promise<void> {
    await this.live();
    while (this.#openAsks.size > 0) await this.news("answer");
    await this.live();
  }

  /** Whether any question waits for its answer. */
  get asks(): boolean {
    return this.#openAsks.size > 0;
  }

  /** Waits for something that others do. */
  async awaits(what: "turn" | "visit", done: Promise<unknown>): Promise<void> {
    this.#occupation.waitingFor[what]++;
    this.#check();
    await done;
    this.#occupation.waitingFor[what]--;
  }

  /** Waits for the place to execute in again, after an answer or news of children. */
  async proceed(): Promise<void> {
    while (!this.#hasSlot) {
      if (this.#leaveQueue === undefined) {
        const leave = this.functions.takeSlot(this.agent, () => {
          this.#hasSlot = true;
          this.#leaveQueue = undefined;
          this.wake();
        });
        if (this.#hasSlot) break;
        this.#leaveQueue = leave;
      }
      await this.news();
    }
    await this.live();
  }

  /**
   * Rejects when the run is over or must come to an end; never settles when it goes on in another execution.
   * @throws HerdError `closed`, or the signal's reason while the herd closes.
   */
  async live(): Promise<void> {
    if (this.revoked || this.#closing) await this.#revocation.refusal();
  }

  /** Tells progress to whoever watches. */
  report(note: string, usage: Usage | undefined): void {
    if (!this.revoked) this.reports.add(note, usage, this.engine.kernel.now());
  }

  /** Its question is on disk. */
  asked(askId: string): void {
    this.changes++;
    this.#openAsks.add(askId);
    const ask = this.engine.kernel.committed<AskRecord>(keys.ask(askId));
    if (ask?.journalKey !== undefined) this.journal.set(ask.journalKey, { kind: "ask", ask });
    this.#changed();
  }

  answered(ask: AskRecord): void {
    this.changes++;
    this.#openAsks.delete(ask.askId);
    if (ask.journalKey !== undefined) this.journal.set(ask.journalKey, { kind: "ask", ask });
  }

  wake(): void {
    if (this.revoked) return;
    this.changes++;
    for (const { resolve } of this.#news.splice(0)) resolve();
    // Its function is over, so nobody else notes that it goes on.
    if (this.#held) this.#goOn();
    this.children.dispatch();
    if (this.#held) this.engine.kernel.inBackground(this.#finish(this.#held));
  }

  /** Drops it out of memory; its answer or its children start it again from the top. */
  park(): void {
    if (this.waiting && !this.#watching && !this.revoked) this.stop("parked", "The run waits outside memory.");
  }

  /** The herd closes: what executes may come to its next stop. */
  finishEarly(): Promise<void> {
    this.#closing = true;
    this.#revocation.revoke("herd_closing", "The herd is closing.");
    for (const { reject } of this.#news.splice(0)) reject(this.signal.reason);
    return new Promise((resolve) => (this.#ended = resolve));
  }

  /** Revokes the handle: later calls are refused or never return, and nothing the function does counts. */
  stop(code: StopReason["code"], message: string): void {
    if (this.revoked) return;
    this.revoked = true;
    this.#revocation.revoke(code, message);
    const waiting = this.#news.splice(0);
    if (!this.#revocation.goesOnElsewhere) {
      for (const { reject } of waiting) this.#revocation.refusal().catch(reject);
    }
    this.#leaveQueue?.();
    if (this.#hasSlot) this.functions.releaseSlot(this.agent);
    this.#hasSlot = false;
    this.functions.ended(this);
    this.#ended?.();
    // What a parked function waits for never comes to it: its end would be waited for in vain.
    this.#letGo();
  }

  /** Its tree may leave memory, as far as this run is concerned. */
  #letGo(): void {
    if (!this.#pinned) return;
    this.#pinned = false;
    this.engine.kernel.unpin(this.treeId);
  }

  async #finish(outcome: Outcome): Promise<void> {
    if (this.#held) this.#occupation.waitingFor.children--;
    this.#held = undefined;
    let held: boolean;
    let seen: number;
    do {
      seen = this.changes;
      held = await settle(this, outcome);
      // A child's news that came meanwhile woke nobody.
    } while (held && seen !== this.changes && !this.revoked);
    if (held) {
      this.#held = outcome;
      this.#occupation.waitingFor.children++;
      this.#check();
    } else {
      this.stop("closed", "The assignment has ended.");
    }
  }

  #tellReport(note: string, usage: Usage | undefined): void {
    const { label, requestId } = this.request;
    this.engine.events.emit("report", { runId: this.runId, label, requestId, note, ...(usage && { usage }) });
  }

  #changed(): void {
    if (this.revoked) return;
    for (const { resolve } of this.#news.splice(0)) resolve();
    this.#check();
  }

  #goOn(): void {
    if (this.waitingSince === undefined) return;
    this.waitingSince = undefined;
    this.functions.wentOn(this);
  }

  /** Looks, once everything that is ready has run, whether the run only waits now. */
  #check(): void {
    if (this.#checking || this.revoked) return;
    this.#checking = true;
    setImmediate(() => {
      this.#checking = false;
      if (!this.revoked && this.#occupation.onlyWaits) this.engine.kernel.inBackground(this.#wait());
    });
  }

  /** A run that waits gives its place back, is `blocked`, and may leave memory. */
  async #wait(): Promise<void> {
    const visits = this.#occupation.waitingFor.visit > 0 ? "watching" : await this.children.awaited();
    const waits = this.#openAsks.size === 0 ? visits : "asleep";
    if (waits === undefined || this.revoked || !this.#occupation.onlyWaits) return;
    this.#watching = waits === "watching";
    if (this.waitingSince === undefined) {
      this.waitingSince = this.engine.kernel.now();
      if (this.#hasSlot) {
        this.#hasSlot = false;
        this.functions.releaseSlot(this.agent);
      }
      this.functions.cameToWait(this);
    }
  }
}
