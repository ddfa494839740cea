import { constants } from "node:os";

type Signal = "SIGINT" | "SIGTERM";

/** The wish that this process ends: the first signal is told, a second one ends it at once. */
export class Interruption {
  readonly signal: Promise<Signal>;
  readonly #stop: () => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<Signal>();
    this.signal = promise;
    process.once("SIGINT", resolve);
    process.once("SIGTERM", resolve);
    this.#stop = () => {
      process.off("SIGINT", resolve);
      process.off("SIGTERM", resolve);
    };
  }

  /** Leaves signals to Node again. */
  stop(): void {
    this.#stop();
  }
}

/** The exit code that shells expect after a signal. */
export function exitCodeAfter(signal: Signal): number {
  return 128 + constants.signals[signal];
}

/**
 * Work that clears up after itself when it is stopped: a signal stops it and sets the exit code.
 * @returns what it gave, or undefined when it was stopped.
 */
export async function stoppable<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
  const interruption = new Interruption();
  const stop = new AbortController();
  const interrupted = interruption.signal.then((signal) => {
    process.exitCode = exitCodeAfter(signal);
    stop.abort();
  });
  try {
    return await work(stop.signal);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    await interrupted;
    return undefined;
  } finally {
    interruption.stop();
  }
}
