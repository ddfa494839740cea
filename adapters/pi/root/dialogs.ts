import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { HerdError, messageOf, visible } from "../../../runtime/client.ts";
import type { Dialog } from "../../host/shapes.ts";

type Answer = { value: string } | { confirmed: boolean } | { cancelled: true };

/** Shows a person what extensions ask in workers, one dialog after another. */
export class DialogDesk {
  readonly #ctx: ExtensionContext;
  readonly #answer: (id: string, answer: Answer) => Promise<unknown>;
  readonly #open = new Map<string, AbortController>();
  #last: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** @param answer hands an answer on. */
  constructor(ctx: ExtensionContext, answer: (id: string, answer: Answer) => Promise<unknown>) {
    this.#ctx = ctx;
    this.#answer = answer;
  }

  opened(dialog: Dialog): void {
    if (this.#open.has(dialog.id)) return;
    const closed = new AbortController();
    this.#open.set(dialog.id, closed);
    this.#last = this.#last.then(() => this.#show(dialog, closed.signal));
  }

  /** Somebody else answered it, or nobody asks any more. */
  closed(id: string): void {
    this.#open.get(id)?.abort();
    this.#open.delete(id);
  }

  /** Nothing is known any more of those that are open: what still waits is told anew. */
  clear(): void {
    for (const id of [...this.#open.keys()]) this.closed(id);
  }

  close(): void {
    this.#isClosed = true;
    this.clear();
  }

  async #show(dialog: Dialog, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    try {
      const answer = await this.#ask(dialog, signal);
      if (signal.aborted) return;
      this.#open.delete(dialog.id);
      await this.#answer(dialog.id, answer);
    } catch (error) {
      // The session was left: nothing can be shown there any more.
      if (signal.aborted || this.#isClosed) return;
      // Answered in a shell at the same moment.
      const isOver = error instanceof HerdError && error.reason === "target_not_found";
      if (!isOver) this.#ctx.ui.notify(`herd: ${messageOf(error)}`, "error");
    }
  }

  async #ask(
    { label, method, title, message = "", options = [], placeholder, prefill }: Dialog,
    signal: AbortSignal,
  ): Promise<Answer> {
    const { ui } = this.#ctx;
    const asked = visible(`${label}: ${title}`);
    if (method === "confirm") return { confirmed: await ui.confirm(asked, visible(message), { signal }) };
    if (method === "select") return chosen(await ui.select(asked, options, { signal }));
    if (method === "input") return chosen(await ui.input(asked, placeholder, { signal }));
    // Pi takes an editor away for nobody but its person.
    const tell = () => {
      if (!this.#isClosed)
        ui.notify(`herd: nobody waits any more for what "${label}" asked; Esc closes the editor`, "info");
    };
    signal.addEventListener("abort", tell);
    try {
      return chosen(await ui.editor(asked, prefill));
    } finally {
      signal.removeEventListener("abort", tell);
    }
  }
}

function chosen(value: string | undefined): Answer {
  return value === undefined ? { cancelled: true } : { value };
}
