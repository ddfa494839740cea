import type { Json, Place, WorkerInput } from "../../machines/vocabulary.ts";
import { startDeadline } from "../asks/deadline.ts";
import type { Backend, StartFailure } from "../backend.ts";
import type { Engine, LaunchPlan } from "../engine.ts";
import { CATEGORIES, HerdError, messageOf } from "../errors.ts";
import type { CallerIdRecord, LaunchRecord, PendingLaunch, RequestRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { passFailpoint } from "../store/failpoint.ts";
import { keys } from "../store/keys.ts";
import type { Orders } from "./orders.ts";
import type { Presence } from "./presence.ts";

/** The budget of a launch that names none, and what of every budget is kept for one diagnostic. Source: `timeoutMs`. */
const DEFAULT_BUDGET_MS = 302_000;
const DIAGNOSTIC_RESERVE_MS = 2_000;
const DIAGNOSTIC_LINES = 40;
const DIAGNOSTIC_BYTES = 8 * 1024;

type Accepted = (step: Step, request: RequestRecord) => void;

/** `look`: what its backend says of it is not all that can be seen of it. */
type Failure = StartFailure & { look?: boolean };

interface Waiter {
  answer: Promise<RequestRecord>;
  accepted?: Accepted;
  resolve(request: RequestRecord): void;
  reject(error: unknown): void;
}

/**
 * Launches over a backend: several steps with one answer. First the label, the lease and the launching worker are on
 * disk with the order to start; the backend's acceptance completes the request, or what was started is rolled back.
 */
export class Launches {
  readonly #engine: Engine;
  readonly #backends: ReadonlyMap<string, Backend>;
  readonly #orders: Orders;
  readonly #presence: Presence;
  readonly #waiting = new Map<string, Waiter[]>();
  readonly #failing = new Map<string, Promise<void>>();

  constructor(engine: Engine, backends: ReadonlyMap<string, Backend>, orders: Orders, presence: Presence) {
    this.#engine = engine;
    this.#backends = backends;
    this.#orders = orders;
    this.#presence = presence;
  }

  /** Rollbacks under way. */
  get running(): number {
    return this.#failing.size;
  }

  /** The first step, in the batch that claims the label: the worker is launching, its start is ordered. */
  begin(step: Step, { runId }: WorkerInput, plan: LaunchPlan): void {
    const { request, session, policy } = plan;
    const timeoutMs = (plan.timeoutMs ?? DEFAULT_BUDGET_MS) - DIAGNOSTIC_RESERVE_MS;
    const pending: PendingLaunch = { request, hash: plan.hash, timeoutMs, dueAt: step.now + timeoutMs };
    const launch: LaunchRecord = {
      runId,
      tree: step.tree.id,
      pending,
      ...(session && { session }),
      ...(policy !== undefined && { policy }),
    };
    step.put(keys.launch(runId), launch);
    step.put(keys.due(pending.dueAt, "launch", runId), { tree: step.tree.id });
    if (request.callerKey !== undefined) {
      const { requestId } = request;
      step.put(request.callerKey, { hash: plan.hash, requestId, launching: runId } satisfies CallerIdRecord);
    }
    const { path, backend, label, requestId } = request;
    step.after(() => passFailpoint("launch.between"));
    this.#orders.put(step, {
      orderId: "start",
      kind: "start",
      tree: step.tree.id,
      path,
      runId,
      backend,
      label,
      requestId,
    });
  }

  /** These rows say that it was started: they go in the batch that rolls it back. In the batch that begins it. */
  takesBack(step: Step, runId: string, rows: string[]): void {
    const launch = step.read<LaunchRecord>(keys.launch(runId));
    if (launch?.pending === undefined || rows.length === 0) return;
    step.put(keys.launch(runId), { ...launch, pending: { ...launch.pending, takesBack: rows } } satisfies LaunchRecord);
  }

  /**
   * The one answer of a launch that is on its way, to be waited for with `outcome`. Asked for from within a step, so that
   * it cannot be missed.
   * @param accepted writes what belongs into the batch that accepts.
   */
  answer(step: Step, runId: string, accepted?: Accepted): Promise<RequestRecord> {
    const { promise: answer, resolve, reject } = Promise.withResolvers<RequestRecord>();
    const waiter = { answer, resolve, reject, ...(accepted && { accepted }) };
    this.#waiting.set(runId, [...(this.#waiting.get(runId) ?? []), waiter]);
    // Who waits hears of it; nobody has to.
    answer.catch(() => undefined);
    step.ifUndone(() => this.#leave(runId, answer));
    return answer;
  }

  /**
   * Waits for that answer. When the last who waits for it gives up, the launch is rolled back, on no signal of theirs.
   * @throws HerdError, or the signal's reason: after the rollback, if there is one.
   */
  async outcome(
    treeId: string,
    runId: string,
    answer: Promise<RequestRecord>,
    signal: AbortSignal | undefined,
  ): Promise<RequestRecord> {
    const aborted = () => {
      const others = (this.#waiting.get(runId) ?? []).some((waiter) => waiter.answer !== answer);
      if (others) return this.#leave(runId, answer)?.reject(signal?.reason);
      const failure = { stage: "agent_start" as const, message: "the caller gave up" };
      this.#engine.kernel.inBackground(this.fail(treeId, runId, failure));
    };
    signal?.addEventListener("abort", aborted);
    if (signal?.aborted) aborted();
    try {
      return await answer;
    } catch (error) {
      const told = error instanceof HerdError && error.category === "rollback_failure";
      if (!told) signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", aborted);
    }
  }

  /** The backend has accepted: now the request is stored, and its caller answered. */
  accept(step: Step, runId: string, place: Place | undefined): boolean {
    const launch = step.read<LaunchRecord>(keys.launch(runId));
    const worker = step.worker(runId);
    if (launch?.pending === undefined || worker?.state !== "settling.launching") return false;
    const { pending, ...kept } = launch;
    const request: RequestRecord = { ...pending.request, acceptedAt: step.now };
    const { requestId, callerKey, deadlineMs } = request;
    step.put(keys.launch(runId), kept satisfies LaunchRecord);
    step.del(keys.due(pending.dueAt, "launch", runId));
    step.put(keys.request(requestId), request);
    if (callerKey !== undefined) step.put(callerKey, { hash: pending.hash, requestId } satisfies CallerIdRecord);
    if (deadlineMs !== undefined) startDeadline(step, requestId, runId, step.now + deadlineMs);
    this.#engine.sessions.accepted(step, request, this.#engine.newNumber());
    if (place) this.#engine.sessions.located(step, worker, place);
    for (const { accepted } of this.#waiting.get(runId) ?? []) accepted?.(step, request);
    step.send(runId, { type: "launch.accepted", at: step.now, ...(place && { place }) });
    step.after(() => {
      for (const { resolve } of this.#take(runId)) resolve(request);
    });
    return true;
  }

  /** Found alive after a restart of this program: it goes on with a fresh budget. */
  async renew(treeId: string, runId: string): Promise<void> {
    await this.#engine.kernel.run(
      treeId,
      (step) => {
        const launch = step.read<LaunchRecord>(keys.launch(runId));
        if (launch?.pending === undefined) return;
        const { dueAt, timeoutMs } = launch.pending;
        const pending = { ...launch.pending, dueAt: step.now + timeoutMs };
        step.del(keys.due(dueAt, "launch", runId));
        step.put(keys.due(pending.dueAt, "launch", runId), { tree: treeId });
        step.put(keys.launch(runId), { ...launch, pending } satisfies LaunchRecord);
      },
      { operation: "launch" },
    );
  }

  /** Rolls a launch back, once: what was started is stopped, and the caller hears what happened. */
  async fail(treeId: string, runId: string, failure: Failure): Promise<void> {
    const running = this.#failing.get(runId);
    if (running) return running;
    const rollback = this.#rollBack(treeId, runId, failure).finally(() => {
      this.#failing.delete(runId);
      this.#engine.quieter();
    });
    this.#failing.set(runId, rollback);
    return rollback;
  }

  /** The budget is used up. */
  async expired(treeId: string, runId: string): Promise<void> {
    const { kernel } = this.#engine;
    const worker = (await kernel.tree(treeId)).worker(runId);
    const pending = kernel.read<LaunchRecord>(keys.launch(runId))?.pending;
    // Nothing proves what runs, so nothing is undone; once it is proved alive it gets a fresh budget.
    if (worker?.context.unproven !== undefined || pending === undefined || pending.dueAt > kernel.now()) return;
    const message = `it was not accepted within ${pending.timeoutMs} ms`;
    await this.fail(treeId, runId, { stage: "agent_result", message, look: true });
  }

  async #rollBack(treeId: string, runId: string, failure: Failure): Promise<void> {
    const { kernel } = this.#engine;
    const worker = (await kernel.tree(treeId)).worker(runId);
    if (worker === undefined) return;
    const { message, look = message === undefined } = failure;
    const snapshot = look ? await this.#diagnose(worker.context) : undefined;
    const paneId = worker.context.place?.paneId;
    const identity = await this.#presence.identify(worker.context);
    const pending = await kernel.run(
      treeId,
      (step) => {
        if (step.worker(runId)?.state !== "settling.launching") return undefined;
        const launch = step.read<LaunchRecord>(keys.launch(runId));
        step.send(runId, { type: "launch.failed" });
        this.#orders.drop(step, runId, "start");
        // Nothing is there to be stopped.
        if (identity === "absent") this.#engine.backends.stops.gone(step, step.worker(runId), runId, undefined);
        if (launch?.pending === undefined) return undefined;
        step.del(keys.due(launch.pending.dueAt, "launch", runId));
        const error = failureOf(launch.pending.request, failure, { snapshot, paneId });
        // What a repetition hears should this program end before the rollback does.
        this.#remember(step, launch.pending, error, runId);
        for (const row of launch.pending.takesBack ?? []) step.del(row);
        const { reason: code, message } = error;
        this.#engine.runs.ended(step, launch.pending.request.requestId, { status: "failed", error: { code, message } });
        return launch.pending;
      },
      { operation: "assign" },
    );
    if (pending === undefined) return;
    const left = await this.#presence.ended(treeId, worker.context);
    const error = failureOf(pending.request, failure, { snapshot, left, paneId });
    await kernel.run(treeId, (step) => this.#remember(step, pending, error), { operation: "assign" });
    for (const { reject } of this.#take(runId)) reject(error);
  }

  /** Nobody will hear of the launches that are on their way; their rows stay, so that opening the store goes on with them. */
  abandon(error: HerdError): void {
    for (const runId of [...this.#waiting.keys()]) for (const { reject } of this.#take(runId)) reject(error);
  }

  /** Whether a launch is being rolled back: its answer comes with the proof of that. */
  rollsBack(runId: string): boolean {
    return this.#failing.has(runId);
  }

  /** What the launch failed with, for whoever asks again under the caller's id; kept as long as a result would be. */
  #remember(step: Step, { request, hash }: PendingLaunch, error: HerdError, launching?: string): void {
    const { callerKey, requestId } = request;
    if (callerKey === undefined) return;
    const failure = error.toJSON() as Record<string, Json>;
    step.put(callerKey, {
      hash,
      requestId,
      failure,
      ...(launching !== undefined && { launching }),
    } satisfies CallerIdRecord);
    if (launching === undefined) return;
    step.put(keys.due(step.now + this.#engine.options.retention.resultsMs, "retention", requestId), { callerKey });
  }

  /** One bounded look at what the start left behind. */
  async #diagnose({ backend, runId }: { backend: string; runId: string }): Promise<string | undefined> {
    const look = this.#backends.get(backend)?.diagnose?.(runId);
    if (look === undefined) return undefined;
    const over = new AbortController();
    const late = this.#engine.clock.pause(DIAGNOSTIC_RESERVE_MS, over.signal).then(() => undefined);
    try {
      const seen = await Promise.race([look, late]);
      return seen && bounded(seen);
    } catch (error) {
      return `no diagnostic: ${messageOf(error)}`;
    } finally {
      over.abort();
    }
  }

  #take(runId: string): Waiter[] {
    const waiting = this.#waiting.get(runId) ?? [];
    this.#waiting.delete(runId);
    return waiting;
  }

  /** One of those who wait does so no longer. */
  #leave(runId: string, answer: Promise<RequestRecord>): Waiter | undefined {
    const waiting = this.#take(runId);
    const stay = waiting.filter((waiter) => waiter.answer !== answer);
    if (stay.length > 0) this.#waiting.set(runId, stay);
    return waiting.find((waiter) => waiter.answer === answer);
  }
}

/** At most 40 lines and 8 KiB, whole code points: the end, which says most of why. */
function bounded(text: string): string {
  let tail = text.split("\n").slice(-DIAGNOSTIC_LINES).join("\n");
  while (Buffer.byteLength(tail) > DIAGNOSTIC_BYTES) tail = tail.slice(Math.max(1, tail.length - DIAGNOSTIC_BYTES));
  return tail.isWellFormed() ? tail : tail.slice(1);
}

/** What the caller hears: the failure with the rollback, or both failures when the rollback is not proved. */
function failureOf(
  { label, runId, requestId, sessionId }: RequestRecord,
  failure: StartFailure,
  { snapshot, left, paneId }: { snapshot?: string | undefined; left?: string | undefined; paneId?: string | undefined },
): HerdError {
  const { stage, output } = failure;
  const category = CATEGORIES.find((known) => known === failure.category) ?? "pane_not_ready";
  const why =
    failure.message ??
    (output === "malformed" ? "its start answered something unusable" : "its start answered nothing");
  const message = `"${label}" was not started: ${why}`;
  const ids = { label, runId, requestId, sessionId, ...(paneId !== undefined && { paneId }) };
  const details = {
    stage,
    ...(output && { classification: output }),
    ...(snapshot !== undefined && { paneSnapshot: snapshot }),
  };
  if (left === undefined) {
    return new HerdError({
      category,
      reason: category === "pane_not_ready" ? "not_started" : category,
      message,
      nextAction: "look at the stage and the diagnostic, then assign again; the label is free",
      operation: "assign",
      ids,
      details,
      rollbackOccurred: true,
    });
  }
  return new HerdError({
    category: "rollback_failure",
    reason: "rollback_failure",
    message: `${message}, and what was started could not be proved gone: ${left}`,
    nextAction: `list the workers and look at cleanup_errors; "${label}" stays taken until its process is proven gone`,
    operation: "assign",
    ids,
    primary: { category, message, operation: "assign" },
    cleanup: { category: "internal_failure", message: left, operation: "close" },
    details,
    rollbackOccurred: true,
    retryAttempted: true,
  });
}
