import type { ControlClient, Herd } from "../../runtime/index.ts";
import { isInstalled } from "./pi-command.ts";
import type { Elsewhere, PiCommand, RootSays } from "./shapes.ts";

interface Root {
  says: RootSays;
  client: ControlClient;
}

/** The Pi sessions that are open, by their ids. */
export class Roots {
  readonly #roots = new Map<string, Root>();
  /** What is known of sessions that have been open, for those who want to open them again. */
  readonly #files = new Map<string, string>();

  /** @returns whether it was not known from this client. */
  here(id: string, says: RootSays, client: ControlClient): boolean {
    const isNew = this.#roots.get(id)?.client !== client;
    this.#roots.set(id, { says, client });
    if (says.sessionFile !== undefined) this.#files.set(id, says.sessionFile);
    return isNew;
  }

  left(client: ControlClient): void {
    for (const [id, root] of this.#roots) if (root.client === client) this.#roots.delete(id);
  }

  get size(): number {
    return this.#roots.size;
  }

  of(id: string): RootSays | undefined {
    return this.#roots.get(id)?.says;
  }

  /** Every session that is open. */
  all(): RootSays[] {
    return [...this.#roots.values()].map(({ says }) => says);
  }

  clientOf(id: string): ControlClient | undefined {
    return this.#roots.get(id)?.client;
  }

  /** Where dialogs can be shown to a person. */
  screenOf(id: string): ControlClient | undefined {
    const root = this.#roots.get(id);
    return root?.says.hasUI ? root.client : undefined;
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
