import type { WorkerContext } from "../../machines/vocabulary.ts";
import { FUNCTIONS, type Backend, type Identity } from "../backend.ts";
import type { Engine } from "../engine.ts";
import { messageOf } from "../errors.ts";
import { DIAGNOSTIC_LIMIT } from "./events.ts";

/** How long a process may take to be proven gone after it was told to stop. Source: specification of `close`. */
const GONE_WITHIN_MS = 2_000;
/** How long a backend may take to say whether a process is there. Source: specification of timeouts. */
const ANSWER_WITHIN_MS = 30_000;
/** How often what could not be proved is looked at again. */
const LOOK_AGAIN_MS = 30_000;

/** What has to be known of a worker to say whether its process is there. */
export type Known = Pick<WorkerContext, "backend" | "runId" | "speaksFor">;

/**
 * Whether the processes of workers are there: three-valued, because only proof allows a kill or a clean-up, and
 * `unknown` where nothing can be proved.
 */
export class Presence {
  readonly #engine: Engine;
  readonly #backends: ReadonlyMap<string, Backend>;
  /** Runs of which nothing proves what runs, by tree. */
  readonly #doubtful = new Map<string, string>();
  /** Who waits for a stop to be proved hears of its failure here. */
  readonly #stopping = new Map<string, (message: string) => void>();
  #lookedAt = -Infinity;

  constructor(engine: Engine, backends: ReadonlyMap<string, Backend>) {
    this.#engine = engine;
    this.#backends = backends;
  }

  /**
   * What the worker's backend can prove. A backend that is missing here, that fails or does not answer proves nothing; nor
   * does a process that lives but speaks for another session.
   */
  async identify({ backend, runId, speaksFor }: Known): Promise<Identity> {
    if (backend === FUNCTIONS) return "present";
    const over = new AbortController();
    const late = this.#engine.clock.pause(ANSWER_WITHIN_MS, over.signal).then(() => "unprovable" as const);
    try {
      const asked = this.#backends.get(backend)?.identify(runId) ?? ("unprovable" as const);
      const identity = await Promise.race([asked, late]);
      return identity === "present" && speaksFor !== undefined ? "unprovable" : identity;
    } catch {
      return "unprovable";
    } finally {
      over.abort();
    }
  }

  /** Nothing proves what runs: the worker is `unknown`, and nothing is started or cleaned up. */
  async doubt(treeId: string, runId: string, diagnostic: string, speaksFor?: string): Promise<void> {
    this.#doubtful.set(runId, treeId);
    await this.#engine.kernel.run(
      treeId,
      (step) => {
        const worker = step.worker(runId);
        if (worker === undefined || (worker.context.unproven !== undefined && speaksFor === undefined)) return;
        step.send(runId, {
          type: "identity.unproven",
          diagnostic: diagnostic.slice(0, DIAGNOSTIC_LIMIT),
          ...(speaksFor !== undefined && { speaksFor }),
        });
        this.#engine.backends.watch(step, runId);
      },
      { operation: "identify" },
    );
  }

  /** Proved again. */
  trust(runId: string): void {
    this.#doubtful.delete(runId);
  }

  /** Looks again at what could not be proved. @returns the runs, for their orders to go on. */
  due(now: number): [runId: string, treeId: string][] {
    if (now - this.#lookedAt < LOOK_AGAIN_MS) return [];
    this.#lookedAt = now;
    return [...this.#doubtful];
  }

  /**
   * Waits until a worker that was told to stop is proven gone, at most two seconds.
   * @returns undefined, or why that is not proved.
   * @throws HerdError `herd_closed` when the herd closes meanwhile: the stop is told again at the next start.
   */
  async ended(treeId: string, context: Known): Promise<string | undefined> {
    const { runId } = context;
    const gone = this.#engine.gone(treeId, runId).then(() => undefined);
    const failed = new Promise<string>((resolve) => this.#stopping.set(runId, resolve));
    const over = new AbortController();
    const late = this.#engine.clock.pause(GONE_WITHIN_MS, over.signal).then(async () => {
      if (over.signal.aborted) return undefined;
      const identity = await this.identify(context);
      return identity === "absent"
        ? this.#proved(treeId, runId)
        : this.#kept(treeId, runId, `after ${GONE_WITHIN_MS} ms it is ${identity}`);
    });
    try {
      return await this.#engine.whileOpen(Promise.race([gone, failed, late]));
    } catch (error) {
      if (this.#engine.closed) throw this.#engine.closed;
      return messageOf(error);
    } finally {
      over.abort();
      this.#stopping.delete(runId);
    }
  }

  stopFailed(runId: string, message: string): void {
    this.#stopping.get(runId)?.(message);
  }

  /** Nobody said so: it is kept and tried again like a stop that failed. */
  async #kept(treeId: string, runId: string, message: string): Promise<string> {
    const { backends, kernel } = this.#engine;
    await kernel.run(treeId, (step) => backends.stops.failed(step, runId, message), { operation: "stop" });
    return message;
  }

  /** The host says absent although the backend never said gone. */
  async #proved(treeId: string, runId: string): Promise<undefined> {
    await this.#engine.backends.report(runId, { type: "gone" });
    await this.#engine.gone(treeId, runId);
  }
}
