import type { ControlClient, Herd, HerdEvents } from "../../runtime/index.ts";
import { messageOf } from "../../runtime/client.ts";
import type { Log } from "./log.ts";
import type { Silence } from "./shapes.ts";

/** When what could not be told is told again, in milliseconds. Source: specification of the stale advisory. */
const AGAIN_MS = 30_000;

type Stale = HerdEvents["stale"];

/** Where the direct owners of workers are. */
export interface Owners {
  /** The session that owns workers. */
  root(session: string): ControlClient | undefined;
  /** The process of a worker that has workers. */
  parent(runId: string): ControlClient | undefined;
}

/**
 * Tells the direct owner of a worker that it is silent, once a silence. What does not reach the owner is told later,
 * unless there is nothing to tell any more.
 */
export class Silences {
  readonly #herd: Herd;
  readonly #owners: Owners;
  readonly #log: Log;
  /** By run: only the last silence of one counts. */
  readonly #untold = new Map<string, Stale>();
  readonly #telling = new Set<Stale>();
  readonly #stopListening: () => void;
  #toldAt = 0;

  constructor(herd: Herd, owners: Owners, log: Log) {
    this.#herd = herd;
    this.#owners = owners;
    this.#log = log;
    this.#stopListening = herd.on("stale", (stale) => {
      const { runId, label, lastActivityAt, inactiveMs } = stale;
      log.info({ runId, label }, "worker is silent");
      this.#untold.set(runId, stale);
      this.#toldAt = Date.parse(lastActivityAt) + inactiveMs;
      this.#tellOne(stale);
    });
  }

  /** Tells again what was not heard. @param now UTC milliseconds. */
  look(now: number): void {
    if (this.#untold.size === 0 || now - this.#toldAt < AGAIN_MS) return;
    this.#toldAt = now;
    for (const stale of this.#untold.values()) this.#tellOne(stale);
  }

  close(): void {
    this.#stopListening();
    this.#untold.clear();
  }

  #tellOne(stale: Stale): void {
    if (this.#telling.has(stale)) return;
    this.#telling.add(stale);
    this.#tell(stale)
      .catch((error: unknown) => {
        const { runId, label } = stale;
        this.#log.warn({ runId, label, error: messageOf(error) }, "its owner was not told of its silence");
      })
      .finally(() => this.#telling.delete(stale));
  }

  async #tell(stale: Stale): Promise<void> {
    const found = await this.#ownerOf(stale);
    if (found === "over") return this.#heard(stale);
    // Another silence has taken its place, or this program is about to leave.
    if (found === undefined || this.#untold.get(stale.runId) !== stale) return;
    const { runId, requestId, label, agent, lastActivityAt } = stale;
    const silence: Silence = { runId, requestId, label, agent, lastActivityAt, inactiveMs: found.inactiveMs };
    await found.client.call("worker/silent", silence);
    this.#log.info({ runId, label }, "its owner was told of its silence");
    this.#heard(stale);
  }

  #heard(stale: Stale): void {
    if (this.#untold.get(stale.runId) === stale) this.#untold.delete(stale.runId);
  }

  /** Who is to be told and can be; "over" when the silence is broken, or the work at an end. */
  async #ownerOf(stale: Stale): Promise<"over" | { client: ControlClient; inactiveMs: number } | undefined> {
    const { owner, workspace, requestId, lastActivityAt, parentRunId } = stale;
    const { id, scope } = owner;
    const { workers } = await this.#herd.owner(id, { workspace, ...(scope !== undefined && { scope }) }).list();
    const worker = workers.find((each) => each.activeRequestId === requestId);
    if (worker?.stale !== true || worker.lastActivityAt !== lastActivityAt) return "over";
    const { inactiveMs = 0 } = worker;
    if (parentRunId === undefined) {
      const client = this.#owners.root(id);
      return client && { client, inactiveMs };
    }
    const parent = workers.find(({ label }) => label === worker.parentLabel);
    // One that has asked is woken by the answer and nothing else.
    const isAtWork = parent?.activeRequestId !== undefined && parent.question === undefined;
    const client = isAtWork ? this.#owners.parent(parentRunId) : undefined;
    return client && { client, inactiveMs };
  }
}
