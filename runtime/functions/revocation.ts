import { HerdError } from "../errors.ts";
import { StopReason } from "./worker.ts";

/** Whether and why a run's function must stop: what its signal says, and how its later calls are met. */
export class Revocation {
  readonly #runId: string;
  /** Made when the function first looks at its signal. */
  #controller: AbortController | undefined;
  #stopped: { code: StopReason["code"]; message: string } | undefined;

  constructor(runId: string) {
    this.#runId = runId;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#stopped) this.#controller.abort(this.#reason());
    }
    return this.#controller.signal;
  }

  /** The first reason to stop is the one that counts. */
  revoke(code: StopReason["code"], message: string): void {
    if (this.#stopped) return;
    this.#stopped = { code, message };
    this.#controller?.abort(this.#reason());
  }

  /** Whether the function goes on in another execution, so that its pending calls never return here. */
  get goesOnElsewhere(): boolean {
    return this.#stopped?.code === "parked" || this.#stopped?.code === "fenced";
  }

  /** What a call meets after the revocation: a rejection, or silence when the run goes on elsewhere. */
  refusal(): Promise<never> {
    if (this.goesOnElsewhere) return never();
    if (this.#stopped?.code === "herd_closing") return Promise.reject(this.signal.reason);
    return Promise.reject(
      new HerdError({
        category: "internal_failure",
        reason: "closed",
        message: `This worker's assignment is over: ${this.#reason().message}`,
        nextAction: "return; nothing that it does counts any more",
        operation: "worker",
        ids: { runId: this.#runId },
      }),
    );
  }

  #reason(): StopReason {
    const { code, message } = this.#stopped ?? { code: "closed", message: "It has ended." };
    return new StopReason(code, message);
  }
}

/** A promise that never settles: the run goes on in another execution. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined);
}
