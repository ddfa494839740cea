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
  /** What is known of sessions that have been open, for those who want to open them again. */
  readonly #files = new Map<string, string>();

  /** @returns whether it was not known from this client. */
  here(id: string, says: RootSays, client: ControlClient): boolean {
    const known = this.#roots.get(id) ?? [];
    const others = known.filter((root) => root.client !== client);
    this.#roots.set(id, [...others, { says, client }]);
    if (says.sessionFile !== undefined) this.#files.set(id, says.sessionFile);
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

  /** Every session that is open. */
  all(): RootSays[] {
    return [...this.#roots.keys()].flatMap((id) => this.of(id) ?? []);
  }

  clientOf(id: string): ControlClient | undefined {
    return this.#last(id)?.client;
  }

  /** Where dialogs can be shown to a person. */
  screenOf(id: string): ControlClient | undefined {
    const root = this.#last(id);
    return root?.says.hasUI ? root.client : undefined;
  }

  #last(id: string): Root | undefined {
    return this.#roots.get(id)?.at(-1);
  }

  /** The Pi of any session that is still there. */
  anyPi(): PiCommand | undefined {
    return this.all().find(({ pi }) => isInstalled(pi))?.pi;
  }

  /** Workers of other sessions in the same folder. */
  async elsewhere(herd: Herd, id: string, cwd: string): Promise<Elsewhere[]> {
    const others = (await herd.owners()).filter(
      (owner) => owner.id !== id && owner.scope === undefined && owner.workers > 0,
    );
    const found = await Promise.all(
      others.map(async ({ id: session, workspaces }) => {
        const labels = (
          await Promise.all(workspaces.map((workspace) => herd.owner(session, { workspace }).list()))
        ).flatMap(({ workers }) => workers.filter((worker) => worker.cwd === cwd).map(({ label }) => label));
        const sessionFile = this.#files.get(session);
        return { session, ...(sessionFile !== undefined && { sessionFile }), isOpen: this.#roots.has(session), labels };
      }),
    );
    return found.filter(({ labels }) => labels.length > 0);
  }
}
