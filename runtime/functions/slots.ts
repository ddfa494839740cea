/**
 * Places to execute in: a limit over all agents and one for each that names its own. Who finds none waits, first
 * come first served among those that could run.
 */
export class Slots {
  readonly #total: number;
  readonly #limitOf: (agent: string) => number;
  readonly #taken = new Map<string, number>();
  #inUse = 0;
  #waiting: { agent: string; enter: () => void }[] = [];

  constructor(total: number | undefined, limitOf: (agent: string) => number | undefined) {
    this.#total = total ?? Infinity;
    this.#limitOf = (agent) => limitOf(agent) ?? Infinity;
  }

  /** Takes a place if one is free now. */
  tryTake(agent: string): boolean {
    const taken = this.#taken.get(agent) ?? 0;
    if (this.#inUse >= this.#total || taken >= this.#limitOf(agent)) return false;
    this.#inUse++;
    this.#taken.set(agent, taken + 1);
    return true;
  }

  /** Calls back once a place is taken: at once when one is free. @returns how to stop waiting. */
  take(agent: string, enter: () => void): () => void {
    if (this.tryTake(agent)) {
      enter();
      return () => undefined;
    }
    const waiter = { agent, enter };
    this.#waiting.push(waiter);
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== waiter);
    };
  }

  /** Gives a place back, to the first who can use it. */
  release(agent: string): void {
    this.#inUse--;
    this.#taken.set(agent, (this.#taken.get(agent) ?? 1) - 1);
    const next = this.#waiting.find((waiter) => this.tryTake(waiter.agent));
    if (next === undefined) return;
    this.#waiting = this.#waiting.filter((waiter) => waiter !== next);
    next.enter();
  }
}
