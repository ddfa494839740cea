import { HerdError, messageOf } from "../../../runtime/client.ts";
import type { WorkerTells } from "../../host/shapes.ts";

export interface ReportsOptions {
  /** Whether the host can be told anything now. */
  isOpen(): boolean;
  /** Tells the host. @throws HerdError why it could not, or may not. */
  tell(report: WorkerTells): Promise<unknown>;
  /** Something for whoever reads what the worker's process says. */
  warn(message: string): void;
}

/** How long until a report is told again that the host could not take; doubling between these, in milliseconds. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000;

/** What a worker's process tells its host, one report after another. The connection may be away: then they wait. */
export class Reports {
  readonly #options: ReportsOptions;
  readonly #untold: WorkerTells[] = [];
  #telling: Promise<void> = Promise.resolve();
  #isTelling = false;
  #waitMs = FIRST_WAIT_MS;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: ReportsOptions) {
    this.#options = options;
  }

  add(report: WorkerTells): void {
    this.#untold.push(report);
    this.flush();
  }

  /** The connection is there, again or still. */
  flush(): void {
    if (this.#isTelling || this.#isClosed) return;
    clearTimeout(this.#timer);
    this.#isTelling = true;
    this.#telling = this.#tellAll();
  }

  /** Resolves when everything is told that can be now. */
  async told(): Promise<void> {
    await this.#telling;
  }

  /** Nothing is told any more. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #tellAll(): Promise<void> {
    const { isOpen, tell, warn } = this.#options;
    for (;;) {
      const [next] = this.#untold;
      if (next === undefined || !isOpen()) {
        // At once, so that what is added from now on begins anew.
        this.#isTelling = false;
        return;
      }
      try {
        await tell(next);
        this.#waitMs = FIRST_WAIT_MS;
      } catch (error) {
        warn(messageOf(error));
        if (!isForGood(error)) return this.#tellLater();
        const instead = insteadOf(next, error);
        if (instead !== undefined) {
          this.#untold[0] = instead;
          continue;
        }
      }
      this.#untold.shift();
    }
  }

  /** The host could not take it just now. */
  #tellLater(): void {
    this.#isTelling = false;
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => this.flush(), this.#waitMs).unref();
    this.#waitMs = Math.min(2 * this.#waitMs, LONGEST_WAIT_MS);
  }
}

/** Whether the same report would be refused again; everything else is told once more. */
function isForGood(error: unknown): boolean {
  return error instanceof HerdError && error.category === "invalid_request" && error.reason !== "bad_token";
}

const UNTOLD = ["result_untold", "result_too_large"];

/** Its owner waits for how the work ended: that there is a result which cannot be handed over is told instead. */
function insteadOf({ told, ...about }: WorkerTells, error: unknown): WorkerTells | undefined {
  if (told.type !== "settled") return undefined;
  if (told.outcome.status === "failed" && UNTOLD.includes(told.outcome.error.code)) return undefined;
  const isTooLarge = error instanceof HerdError && error.reason === "message_too_large";
  const message = `The worker came to its end, and its result could not be handed over: ${messageOf(error)} It stands in the worker's session.`;
  const failure = { code: isTooLarge ? "result_too_large" : "result_untold", message };
  return { ...about, told: { type: "settled", outcome: { status: "failed", error: failure } } };
}
