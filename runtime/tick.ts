import { activeRequest, shownState } from "../machines/projection.ts";
import { expire } from "./asks/expiry.ts";
import { dropUntaken, dropUnreadOf } from "./deliveries/record.ts";
import type { HerdEngine } from "./herd-engine.ts";
import { messageOf } from "./errors.ts";
import type { AskRecord, RequestRecord } from "./kernel/records.ts";
import { parentPath, runIdOf } from "./kernel/tree.ts";
import { closeIn } from "./subagent/close.ts";
import { asksOf, keys, prefixed, timeKey } from "./store/keys.ts";
import type { Operation, Row } from "./store/store.ts";

/** What happens in one tick at most, oldest first. */
const AT_ONCE = 200;
const STALE_MS = 600_000;
const SCAN_MS = 30_000;

/** Somebody waits for these; everything else that is due is tidying up. */
const AWAITED = new Set(["schedule", "deadline", "expiry", "launch"]);

/** When the next of them comes. Reads past what is only tidied up. */
export async function nextDue(kernel: HerdEngine["kernel"]): Promise<Date | undefined> {
  for (let gte = "t!"; ;) {
    const page = await kernel.range({ gte, lt: "t!~", limit: AT_ONCE });
    for (const [key] of page) {
      const [, time = "", kind = ""] = key.split("!");
      if (AWAITED.has(kind)) return new Date(Number(time));
    }
    if (page.length < AT_ONCE) return undefined;
    gte = `${page.at(-1)?.[0]}\u0000`;
  }
}

/**
 * Everything that is due happens here: deadlines, retention, retries, parking and the stale advisory. One entry that
 * fails never stops the others; it is looked at again at the next tick.
 */
export class Ticker {
  readonly #engine: HerdEngine;
  #scannedAt = -Infinity;
  readonly #stale = new Map<string, number>();
  #running: Promise<void> | undefined;

  constructor(engine: HerdEngine) {
    this.#engine = engine;
  }

  /** @param now UTC milliseconds. A tick that meets another one waits for it and then looks itself. */
  async tick(now: number): Promise<void> {
    while (this.#running) await this.#running;
    let fires: Promise<void>[] = [];
    this.#running = this.#tick(now)
      .then((begun) => void (fires = begun))
      .finally(() => (this.#running = undefined));
    await this.#running;
    // The expressions of a door take as long as they take: the next tick does not wait for them.
    await Promise.all(fires);
  }

  /** @returns the fires of schedules that are under way. */
  async #tick(now: number): Promise<Promise<void>[]> {
    const { deliveries, functions, kernel } = this.#engine;
    deliveries.tick();
    functions.tick(now);
    this.#engine.backends.tick(now);
    this.#scan(now);
    const fires: Promise<void>[] = [];
    let left = AT_ONCE;
    for (let from = "t!"; left > 0;) {
      const page = await kernel.range({ gte: from, lt: `t!${timeKey(now + 1)}`, limit: AT_ONCE });
      for (const row of page) if (left > 0 && (await this.#happens(row, now, fires))) left--;
      if (page.length < AT_ONCE) break;
      from = `${page.at(-1)?.[0]}\u0000`;
    }
    return fires;
  }

  /** @returns false when it stays due until somebody comes: it must not keep what is due behind it waiting. */
  async #happens([key, text]: Row, now: number, fires: Promise<void>[]): Promise<boolean> {
    const [, , kind = "", id = ""] = key.split("!");
    try {
      if (kind === "schedule") {
        if (!this.#engine.doors.fires(id)) return false;
        const failed = (error: unknown) => this.#warn(kind, id, error);
        fires.push(this.#engine.doors.due(key, id, now).catch(failed));
      } else if (kind === "forget") await this.#forget(key, JSON.parse(text));
      else if (kind === "deadline") await this.#deadline(key, JSON.parse(text));
      else if (kind === "retention") await this.#prune(key, id, JSON.parse(text));
      else if (kind === "expiry") await expire(this.#engine, key, id, JSON.parse(text));
      else if (kind === "outcome") return await dropUntaken(this.#engine, key, id, JSON.parse(text));
      else if (kind === "launch") this.#launch(id, JSON.parse(text));
      else if (kind === "unread") await dropUnreadOf(this.#engine, key, id, JSON.parse(text));
    } catch (error) {
      this.#warn(kind, id, error);
    }
    return true;
  }

  /** It is looked at again at the next tick. */
  #warn(kind: string, id: string, error: unknown): void {
    const { kernel, closed } = this.#engine;
    if (kernel.ended || kernel.fence || closed) return;
    process.emitWarning(`due ${kind} ${id} failed: ${messageOf(error)}`, { type: "HerdTickWarning" });
  }

  /** What is remembered for a while only. */
  async #forget(due: string, { key }: { key: string }): Promise<void> {
    await this.#engine.kernel.write([
      { type: "del", key },
      { type: "del", key: due },
    ]);
  }

  /** A launch has used up its budget. Its rollback waits for proofs, and nothing else that is due waits with it. */
  #launch(runId: string, { tree }: { tree: string }): void {
    this.#engine.kernel.inBackground(this.#engine.backends.launches.expired(tree, runId));
  }

  /** The worker's time is over: it is closed, and its owner is told once. */
  async #deadline(key: string, { tree, runId }: { tree: string; runId: string }): Promise<void> {
    await this.#engine.kernel.run(
      tree,
      (step) => {
        const worker = step.worker(runId);
        if (worker === undefined || activeRequest(worker.state, worker.context) === undefined) return step.del(key);
        const message = `"${worker.context.label}" did not finish within its deadline.`;
        closeIn(this.#engine, step, worker.path, { code: "deadline_exceeded", message });
      },
      { operation: "deadline" },
    );
  }

  /** Finished long ago: the request with everything that belongs to it goes. */
  async #prune(key: string, requestId: string, { callerKey }: { callerKey?: string }): Promise<void> {
    const { kernel, resultFiles, sessions } = this.#engine;
    const operations: Operation[] = [];
    const del = (row: string) => operations.push({ type: "del", key: row });
    const request = kernel.read<RequestRecord>(keys.request(requestId));
    for (const [row] of await kernel.range(prefixed(keys.journal(requestId, "")))) del(row);
    for (const [row] of await kernel.range(prefixed(keys.steer(requestId, "")))) del(row);
    for (const [row, text] of await kernel.range(asksOf(requestId))) {
      del(row);
      const { answer } = JSON.parse(text) as AskRecord;
      if (answer?.callerKey !== undefined) del(answer.callerKey);
    }
    // Of a launch that failed there is no request.
    const caller = request?.callerKey ?? callerKey;
    if (caller !== undefined) del(caller);
    if (request) for (const row of await sessions.pruned(request)) del(row);
    del(keys.outcome(requestId));
    del(keys.request(requestId));
    del(key);
    // Before the rows, without which nobody would look for it after a crash.
    await resultFiles.remove(requestId);
    await kernel.write(operations);
  }

  /** One event per silence: new activity begins a new one. */
  #scan(now: number): void {
    if (now - this.#scannedAt < SCAN_MS || !this.#engine.events.has("stale")) return;
    this.#scannedAt = now;
    const seen = new Set<string>();
    for (const tree of this.#engine.kernel.trees()) {
      for (const { path, state, context } of tree.workers()) {
        const { runId, label, agent, workspace } = context;
        seen.add(runId);
        const requestId = shownState(state, context) === "working" ? activeRequest(state, context) : undefined;
        const lastActivityAt = this.#engine.lastActivityAt(context);
        const inactiveMs = now - lastActivityAt;
        if (requestId === undefined || inactiveMs < STALE_MS) continue;
        if (this.#stale.get(runId) === lastActivityAt) continue;
        this.#stale.set(runId, lastActivityAt);
        const parent = parentPath(path);
        this.#engine.events.emit("stale", {
          runId,
          label,
          agent,
          requestId,
          owner: tree.owner,
          workspace,
          ...(parent !== "" && { parentRunId: runIdOf(parent) }),
          lastActivityAt: new Date(lastActivityAt).toISOString(),
          inactiveMs,
        });
      }
    }
    for (const runId of this.#stale.keys()) if (!seen.has(runId)) this.#stale.delete(runId);
  }
}
