import { FUNCTIONS } from "../backend.ts";
import type { Engine } from "../engine.ts";
import type { OrderRecord } from "../kernel/records.ts";
import { runIdOf, type WorkerView } from "../kernel/tree.ts";
import { keys, prefixed } from "../store/keys.ts";
import type { Launches } from "./launches.ts";
import type { Orders } from "./orders.ts";
import type { Presence } from "./presence.ts";
import type { Stops } from "./stops.ts";

/** Orders that tell a process something besides what it works on. */
const MESSAGES = new Set(["steer", "deliver"]);
/** Orders that a process begins its work with. */
const BEGINNINGS = new Set(["start", "resume", "task", "answer"]);

/**
 * What becomes of workers in processes when the store is opened again: those that live go on, those proven gone are
 * started again or rolled back, and where nothing can be proved nothing is done.
 */
export class Recovery {
  readonly #engine: Engine;
  readonly #orders: Orders;
  readonly #presence: Presence;
  readonly #launches: Launches;
  readonly #stops: Stops;
  #running = 0;

  constructor(engine: Engine, orders: Orders, presence: Presence, launches: Launches, stops: Stops) {
    this.#engine = engine;
    this.#orders = orders;
    this.#presence = presence;
    this.#launches = launches;
    this.#stops = stops;
  }

  /** Recoveries under way. */
  get running(): number {
    return this.#running;
  }

  /** Goes on with the runs that these orders belong to, without being waited for. */
  begin(orders: readonly OrderRecord[]): void {
    for (const [runId, some] of Map.groupBy(orders, (order) => order.runId)) {
      this.#orders.trees.set(runId, (some[0] as OrderRecord).tree);
      this.#inBackground(this.#recover(runId, some));
    }
  }

  /** Looks again at the runs of which nothing was proved. */
  tick(now: number): void {
    for (const [runId, treeId] of this.#presence.due(now)) this.#inBackground(this.#lookAgain(treeId, runId));
  }

  async #recover(runId: string, orders: readonly OrderRecord[]): Promise<void> {
    const { tree: treeId } = orders[0] as OrderRecord;
    const tree = await this.#engine.kernel.tree(treeId);
    const worker = tree.worker(runId);
    const stop = orders.find(({ kind }) => kind === "stop");
    // Of a worker whose row cannot be read nothing is known, so nothing is taken back either.
    const gone = worker === undefined && !tree.unknown.some(({ path }) => runIdOf(path) === runId);
    if (gone) await this.#forget(orders.filter((order) => order !== stop));
    if (stop) {
      if (stop.error !== undefined) this.#stops.keep(stop);
      this.#orders.perform(stop);
      return;
    }
    if (worker === undefined || worker.context.backend === FUNCTIONS) return;
    await this.#prove(treeId, worker, orders);
  }

  /** What nobody is left to be told: this program ended before it took that back. */
  async #forget(orders: readonly OrderRecord[]): Promise<void> {
    if (orders.length === 0) return;
    const rows = orders.map(({ runId, orderId }) => keys.order(runId, orderId));
    await this.#engine.kernel.write(rows.map((key) => ({ type: "del", key })));
  }

  async #prove(treeId: string, worker: WorkerView, orders: readonly OrderRecord[]): Promise<void> {
    const { runId, label, backend } = worker.context;
    switch (await this.#presence.identify(worker.context)) {
      case "present":
        await this.#goOn(treeId, worker, orders);
        break;
      case "absent":
        await this.#absent(treeId, worker, orders);
        break;
      case "unprovable":
        await this.#presence.doubt(
          treeId,
          runId,
          `The backend "${backend}" cannot prove whether the process of "${label}" lives.`,
        );
    }
  }

  /** It lives: a launch gets a fresh budget, and what was not confirmed is ordered again. */
  async #goOn(treeId: string, { state, context }: WorkerView, orders: readonly OrderRecord[]): Promise<void> {
    const { runId } = context;
    if (state === "settling.launching") await this.#launches.renew(treeId, runId);
    await this.#believe(treeId, context);
    this.#presence.trust(runId);
    this.#orders.handAgain(runId);
    for (const order of orders) this.#orders.perform(order);
  }

  /** It is proven gone. */
  async #absent(treeId: string, { state, context }: WorkerView, orders: readonly OrderRecord[]): Promise<void> {
    const { runId } = context;
    this.#presence.trust(runId);
    if (state === "settling.launching") {
      const message = "this program ended while it was being launched, and its process is gone";
      await this.#launches.fail(treeId, runId, { stage: "agent_start", message });
      return;
    }
    // Nothing says that it was started again already: it is now, and only what then ends is lost.
    const begins = orders.filter(({ kind }) => BEGINNINGS.has(kind));
    if (context.restarted && begins.length > 0) {
      // Whatever it said for whom it spoke, the next one has said nothing yet.
      await this.#believe(treeId, context);
      for (const order of begins) this.#orders.perform(order);
    } else await this.#engine.backends.report(runId, { type: "exited" });
  }

  /** Nothing is in doubt any more. */
  async #believe(treeId: string, { runId, unproven }: WorkerView["context"]): Promise<void> {
    if (unproven === undefined) return;
    await this.#engine.kernel.run(
      treeId,
      (step) => {
        step.send(runId, { type: "identity.proven" });
        this.#engine.backends.watch(step, runId);
      },
      { operation: "identify" },
    );
  }

  /** It is proved again that what runs is this worker: it gets what was held back meanwhile. */
  goOn(treeId: string, runId: string): void {
    const worker = this.#engine.kernel.loaded(treeId)?.worker(runId);
    if (worker) this.#inBackground(this.#ordersOf(runId).then((orders) => this.#goOn(treeId, worker, orders)));
  }

  /** Looks after a worker for the first time since the store was opened. */
  prove(treeId: string, runId: string): void {
    this.#orders.trees.set(runId, treeId);
    this.#inBackground(this.#lookAgain(treeId, runId));
  }

  /** A process that was started again missed what was said to the one before it. */
  repeat(runId: string): void {
    this.#orders.handAgain(runId);
    this.#inBackground(
      this.#ordersOf(runId).then((orders) => {
        for (const order of orders) if (MESSAGES.has(order.kind)) this.#orders.perform(order);
      }),
    );
  }

  async #lookAgain(treeId: string, runId: string): Promise<void> {
    const worker = (await this.#engine.kernel.tree(treeId)).worker(runId);
    if (worker === undefined) return this.#presence.trust(runId);
    await this.#prove(treeId, worker, await this.#ordersOf(runId));
  }

  async #ordersOf(runId: string): Promise<OrderRecord[]> {
    const rows = await this.#engine.kernel.range(prefixed(keys.order(runId, "")));
    return rows.map(([, text]) => JSON.parse(text) as OrderRecord);
  }

  #inBackground(work: Promise<void>): void {
    this.#running++;
    this.#engine.kernel.inBackground(
      work.finally(() => {
        this.#running--;
        this.#engine.quieter();
      }),
    );
  }
}
