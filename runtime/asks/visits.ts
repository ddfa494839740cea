import { openAsks } from "../../machines/projection.ts";
import type { Engine, VisitWaits } from "../engine.ts";
import type { OutcomeRecord, RequestRecord } from "../kernel/records.ts";
import { runIdOf, type Tree, type WorkerView } from "../kernel/tree.ts";
import { keys } from "../store/keys.ts";
import { descendants } from "../subagent/target.ts";
import { chainOf } from "./chain.ts";
import { oldestFirst, type Next, type Watch } from "./found.ts";
import { questionOf } from "./parked.ts";

interface Watcher {
  request: RequestRecord;
  /** The worker that waits, if one does. */
  visitor: string | undefined;
  tell(next: Next): void;
}

/** Who waits inline for which run, in this process. */
export class Visits implements VisitWaits {
  readonly #engine: Engine;
  readonly #watchers = new Map<string, Set<Watcher>>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Whether anybody waits for a run of this tree. */
  watches(treeId: string): boolean {
    return this.#watchers.has(treeId);
  }

  /**
   * Waits for what a run comes to, from now on.
   * @param request that of the outermost run.
   */
  watch(request: RequestRecord, visitor?: string): Watch {
    const { promise: next, resolve } = Promise.withResolvers<Next>();
    const watcher: Watcher = { request, visitor, tell: resolve };
    const watchers = this.#watchers.get(request.tree) ?? new Set();
    this.#watchers.set(request.tree, watchers);
    watchers.add(watcher);
    // It stays in memory, where its rest can be seen.
    this.#engine.kernel.pin(request.tree);
    let over = false;
    const end = () => {
      if (over) return;
      over = true;
      this.#engine.kernel.unpin(request.tree);
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(request.tree) === watchers) this.#watchers.delete(request.tree);
    };
    return { next, end };
  }

  async now(request: RequestRecord): Promise<Next | undefined> {
    await this.#engine.kernel.settled();
    await this.#engine.kernel.tree(request.tree);
    return this.#nextOf(request);
  }

  /** Something of a tree is on disk, or came to rest: whoever waits for a run of it is told what that came to. */
  look(treeId: string): void {
    for (const watcher of this.#watchers.get(treeId) ?? []) {
      const next = this.#nextOf(watcher.request);
      if (next) watcher.tell(next);
    }
  }

  /**
   * The runs that wait, also over others, for a worker: those above it, and those that wait inline for one of these.
   * @param chain the worker's own chain.
   */
  waitingFor(chain: readonly WorkerView[]): Set<string> {
    const waiting = new Set(chain.map(({ context }) => context.runId));
    for (let size = 0; size !== waiting.size;) {
      size = waiting.size;
      for (const watchers of this.#watchers.values()) {
        for (const { request, visitor } of watchers) {
          if (visitor === undefined || !waiting.has(request.runId)) continue;
          const [, tree] = this.#placeOf(visitor);
          for (const { context } of tree ? chainOf(tree, visitor) : []) waiting.add(context.runId);
          waiting.add(visitor);
        }
      }
    }
    return waiting;
  }

  #placeOf(runId: string): [string, Tree] | [] {
    for (const tree of this.#engine.kernel.trees()) if (tree.worker(runId)) return [tree.id, tree];
    return [];
  }

  #nextOf({ requestId, runId, tree: treeId }: RequestRecord): Next | undefined {
    const { kernel } = this.#engine;
    const ended = kernel.committed<OutcomeRecord>(keys.outcome(requestId));
    if (ended) return { type: "ended", ended };
    const tree = kernel.loaded(treeId);
    const top = tree?.worker(runId);
    if (tree === undefined || top === undefined || top.context.assignment?.requestId !== requestId) return undefined;
    const runs = [top, ...descendants(tree, top.path).flatMap((path) => tree.worker(runIdOf(path)) ?? [])];
    if (runs.some((run) => !this.#rests(run))) return undefined;
    const asks = runs
      .flatMap(({ context }) => openAsks(context.ask))
      .flatMap((askId) => questionOf(this.#engine, askId))
      // What a child asks its parent is not the visitor's.
      .filter(({ ask }) => ask?.owner === tree.ownerKey && ask.answer === undefined)
      .toSorted(oldestFirst);
    return asks.length > 0 ? { type: "asks", asks } : undefined;
  }

  /** Nothing of it goes on unless somebody else acts. */
  #rests({ state, context }: WorkerView): boolean {
    const waits = state === "blocked.onOwner" || state === "blocked.onChildren";
    if (!waits) return state === "ready" || state.startsWith("settling.un");
    return this.#engine.functions.rests(context.runId);
  }
}
