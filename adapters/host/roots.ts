import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import type { ControlClient, Herd } from "../../runtime/index.ts";
import { isInstalled } from "./pi-command.ts";
import type { Elsewhere, PiCommand, RootSays } from "./shapes.ts";

interface Root {
  says: RootSays;
  client: ControlClient;
}

/** The Pi sessions that are open, by their ids. One may be open in several Pis: then the last that spoke counts. */
export class Roots {
  /** Of each session who spoke last comes last. */
  readonly #roots = new Map<string, Root[]>();
  /** What sessions said last that have been open, for their workers and for those who want to open them again. */
  readonly #lastSaid = new Map<string, RootSays>();
  /** Tells ids of sessions that come. */
  readonly #arrivals = new EventTarget();

  /** @returns whether it was not known from this client. */
  here(id: string, says: RootSays, client: ControlClient): boolean {
    const known = this.#roots.get(id) ?? [];
    const others = known.filter((root) => root.client !== client);
    this.#roots.set(id, [...others, { says, client }]);
    this.#lastSaid.set(id, says);
    this.#arrivals.dispatchEvent(new Event(id));
    return others.length === known.length;
  }

  left(client: ControlClient): void {
    for (const [id, known] of this.#roots) {
      const others = known.filter((root) => root.client !== client);
      if (others.length === 0) this.#roots.delete(id);
      else this.#roots.set(id, others);
    }
  }

  /** How many sessions are open. */
  get size(): number {
    return this.#roots.size;
  }

  of(id: string): RootSays | undefined {
    return this.#last(id)?.says;
  }

  /** What a session said last, also of one that is closed by now. */
  lastSaid(id: string): RootSays | undefined {
    return this.#lastSaid.get(id);
  }

  /** Resolves once a session is known, or the time is over, or nobody waits any more. */
  async known(id: string, { ms, signal }: { ms: number; signal: AbortSignal }): Promise<void> {
    if (this.#lastSaid.has(id) || ms <= 0 || signal.aborted) return;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    await Promise.race([
      once(this.#arrivals, id, { signal: either }),
      pause(ms, undefined, { signal: either, ref: false }),
    ]).catch(() => undefined);
    over.abort();
  }

  /** Every session that is open. */
  all(): RootSays[] {
    return [...this.#roots.keys()].flatMap((id) => this.of(id) ?? []);
  }

  clientOf(id: string): ControlClient | undefined {
    return this.#last(id)?.client;
  }

  /** Every Pi that has a session open: what a person has to see is seen in any of them. */
  clientsOf(id: string): ControlClient[] {
    return (this.#roots.get(id) ?? []).map(({ client }) => client);
  }

  #last(id: string): Root | undefined {
    return this.#roots.get(id)?.at(-1);
  }

  /** The Pi of any session that is still there. */
  anyPi(): PiCommand | undefined {
    return this.all().find(({ pi }) => isInstalled(pi))?.pi;
  }

  /** Workers of other sessions in the same folder. @param who a session, and the process in which it is open. */
  async elsewhere(herd: Herd, { id, cwd, pid }: { id: string; cwd: string; pid: number }): Promise<Elsewhere[]> {
    const others = (await herd.owners()).filter(
      (owner) => owner.id !== id && owner.scope === undefined && owner.workers > 0,
    );
    const found = await Promise.all(
      others.map(async ({ id: session, workspaces }) => {
        const labels = (
          await Promise.all(workspaces.map((workspace) => herd.owner(session, { workspace }).list()))
        ).flatMap(({ workers }) => workers.filter((worker) => worker.cwd === cwd).map(({ label }) => label));
        const sessionFile = this.#lastSaid.get(session)?.sessionFile;
        // The session that the same Pi had open before this one is just being closed.
        const isOpen = (this.#roots.get(session) ?? []).some(({ client }) => client.pid !== pid);
        return { session, ...(sessionFile !== undefined && { sessionFile }), isOpen, labels };
      }),
    );
    return found.filter(({ labels }) => labels.length > 0);
  }
}
