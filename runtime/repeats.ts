/** Calls that can still be made again; whoever makes one does so at once, or not at all. */
const KEPT = 256;

/** Calls by their ids: made again under it, because nobody heard the answer, it is the same call. */
export class Repeats {
  readonly #calls = new Map<string, Promise<unknown>>();

  /** Makes a call, or answers with what it came to. */
  once<Answer>(id: string, call: () => Promise<Answer>): Promise<Answer> {
    const known = this.#calls.get(id);
    if (known) return known as Promise<Answer>;
    const answer = call();
    this.#calls.set(id, answer);
    const [oldest] = this.#calls.keys();
    if (this.#calls.size > KEPT) this.#calls.delete(oldest as string);
    return answer;
  }

  /** Nobody makes any of them again. */
  clear(): void {
    this.#calls.clear();
  }
}
