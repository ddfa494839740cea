import type { Backend } from "../backend.ts";
import { releaseSession } from "../claims.ts";
import type { Engine } from "../engine.ts";
import { messageOf } from "../errors.ts";
import type { OrderRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import type { WorkerView } from "../kernel/tree.ts";
import { keys } from "../store/keys.ts";
import type { Orders } from "./orders.ts";
import type { Presence } from "./presence.ts";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 30_000;

/** Its process is proven gone, and only something that it left behind is still to be tidied up. */
function keptOf({ holds: _holds, ...order }: OrderRecord, error: string): OrderRecord {
  return { ...order, error, gone: true };
}

function pauseAfter(attempts: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempts - 1));
}

interface Open {
  order: OrderRecord;
  attempts: number;
  /** UTC milliseconds of the next attempt. */
  dueAt: number;
}

/** Processes that were told to stop and are not proven gone, or left something behind: tried again until they are. */
export class Stops {
  readonly #engine: Engine;
  readonly #orders: Orders;
  readonly #presence: Presence;
  readonly #backends: ReadonlyMap<string, Backend>;
  readonly #open = new Map<string, Open>();

  constructor(engine: Engine, backends: ReadonlyMap<string, Backend>, orders: Orders, presence: Presence) {
    this.#engine = engine;
    this.#backends = backends;
    this.#orders = orders;
    this.#presence = presence;
  }

  /** What is left to tidy up in a tree, by label. */
  errorsIn(treeId: string): Record<string, string> {
    const errors: Record<string, string> = {};
    for (const { order } of this.#open.values()) {
      if (order.tree === treeId && order.label !== undefined && order.error !== undefined) {
        errors[order.label] = order.error;
      }
    }
    return errors;
  }

  /** The same of one run. */
  errorOf(runId: string): string | undefined {
    return this.#open.get(runId)?.order.error;
  }

  /** The backend could not stop it: its row keeps why, and it is tried again. */
  failed(step: Step, runId: string, error: string): boolean {
    const key = keys.order(runId, "stop");
    const order = step.read<OrderRecord>(key);
    if (order === undefined) return false;
    const kept = { ...order, error };
    step.put(key, kept);
    step.after(() => {
      this.keep(kept);
      this.#presence.stopFailed(runId, error);
    });
    return true;
  }

  /** It is proven gone: whoever waits for that goes on, and what it left behind is tried again. */
  gone(step: Step, worker: WorkerView | undefined, runId: string, cleanupError: string | undefined): boolean {
    const key = keys.order(runId, "stop");
    const order = step.read<OrderRecord>(key);
    const closes = worker !== undefined && step.can(runId, { type: "backend.gone" });
    if (order === undefined && !closes) return false;
    const kept = order && cleanupError !== undefined ? keptOf(order, cleanupError) : undefined;
    if (kept) step.put(key, kept);
    else if (order) step.del(key);
    if (order?.holds) releaseSession(step, runId, order.holds);
    // Known before whoever waits for the end of the worker looks.
    const backend = order?.backend ?? worker?.context.backend ?? "";
    step.after(() => {
      if (kept) return this.keep(kept);
      this.#done(runId, worker === undefined);
      this.forget(backend, runId);
    });
    if (closes) step.send(runId, { type: "backend.gone" });
    this.#presence.trust(runId);
    return true;
  }

  /** Told to stop: should nobody ever say what became of that, it is looked at again. */
  told(order: OrderRecord): void {
    if (this.#open.has(order.runId)) return;
    this.#open.set(order.runId, { order, attempts: 0, dueAt: this.#engine.kernel.now() + LONGEST_PAUSE_MS });
  }

  /** Takes in a stop that has to be tried again. */
  keep(order: OrderRecord): void {
    const attempts = Math.max(1, this.#open.get(order.runId)?.attempts ?? 1);
    this.#open.set(order.runId, { order, attempts, dueAt: this.#engine.kernel.now() + pauseAfter(attempts) });
  }

  /** Orders again what is due. A process that is proven absent by now needs no further order, only what it left. */
  tick(now: number): void {
    for (const [runId, open] of this.#open) {
      if (open.dueAt > now) continue;
      // Also when nobody ever says what became of it.
      open.dueAt = now + pauseAfter(++open.attempts);
      this.#engine.kernel.inBackground(this.#again(runId, open));
    }
  }

  /** Tells the backend that a worker is gone for good. */
  forget(backend: string, runId: string): void {
    try {
      this.#backends.get(backend)?.forget?.(runId);
    } catch (error) {
      process.emitWarning(`the backend "${backend}" could not forget a run: ${messageOf(error)}`, {
        type: "HerdBackendWarning",
      });
    }
  }

  async #again(runId: string, { order }: Open): Promise<void> {
    const { backend = "", gone } = order;
    if (!gone && (await this.#presence.identify({ backend, runId })) === "absent") {
      await this.#engine.backends.report(runId, { type: "gone" });
    } else {
      this.#orders.perform(order);
    }
  }

  #done(runId: string, forgotten: boolean): void {
    this.#open.delete(runId);
    if (forgotten) this.#orders.trees.delete(runId);
  }
}
