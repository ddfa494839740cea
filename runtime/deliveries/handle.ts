import type { Question } from "../asks/question.ts";
import type { RequestRecord } from "../kernel/records.ts";
import { eventsOf, type Assignment, type AssignmentStatus, type OwnerEvent } from "./assignment.ts";
import type { Notice } from "./deliveries.ts";
import type { Result } from "./result.ts";

/** What a handle looks at. Everything it is told is on disk. */
export interface HandleSource {
  /** The open questions of an assignment, committed, oldest first. */
  openQuestions(request: RequestRecord): Promise<Question[]>;
  /** The result once it may be told: beside a receiver only after that acknowledged it. */
  endedResult(request: RequestRecord): Result | undefined;
  status(request: RequestRecord): Promise<AssignmentStatus>;
  /** The handle gave the result away: acknowledges it unless somebody else does. */
  returned(request: RequestRecord, deliveryId: string): void;
  wait(requestId: string, waiter: { hears: boolean; tell(notice: Notice): void }): () => void;
  /** Resolves when the store can be read. */
  ready(): Promise<void>;
  /** Somebody waits: the process is not over yet. @returns how to end that. */
  hold(): () => void;
  /** A question is open while somebody waits for the result alone. */
  noteOpen(question: Question): void;
}

/** The handle of an owner, or of anybody who looks on with `herd.assignment`. */
export class Handle implements Assignment {
  readonly requestId: string;
  readonly label: string;
  readonly sessionId: string;
  readonly #request: RequestRecord;
  readonly #source: HandleSource;
  readonly #looks: boolean;
  readonly #seen = new Set<string>();

  /** @param looks leaves it to others to acknowledge the result. */
  constructor(request: RequestRecord, source: HandleSource, looks = false) {
    this.requestId = request.requestId;
    this.label = request.label;
    this.sessionId = request.sessionId;
    this.#request = request;
    this.#source = source;
    this.#looks = looks;
  }

  async status({ acknowledge = true }: { acknowledge?: boolean } = {}): Promise<AssignmentStatus> {
    const status = await this.#source.status(this.#request);
    if (status.result && acknowledge) this.#returned(status.result);
    return status;
  }

  async next(options: { signal?: AbortSignal } = {}): Promise<OwnerEvent> {
    const event = await this.#await(options.signal, true, async (told) => {
      const open = told ? [told] : await this.#source.openQuestions(this.#request);
      const question = open.find(({ askId }) => !this.#seen.has(askId));
      if (question) return { type: "question" as const, question };
      const result = this.#source.endedResult(this.#request);
      return result && { type: "result" as const, result };
    });
    if (event.type === "question") this.#seen.add(event.question.askId);
    else this.#returned(event.result);
    return event;
  }

  async result(options: { signal?: AbortSignal } = {}): Promise<Result> {
    const result = await this.#await(options.signal, false, async () => {
      const ended = this.#source.endedResult(this.#request);
      if (ended) return ended;
      for (const question of await this.#source.openQuestions(this.#request)) {
        if (this.#seen.has(question.askId)) continue;
        this.#seen.add(question.askId);
        this.#source.noteOpen(question);
      }
      return this.#source.endedResult(this.#request);
    });
    this.#returned(result);
    return result;
  }

  [Symbol.asyncIterator](): AsyncIterator<OwnerEvent> {
    return eventsOf(this);
  }

  #returned({ deliveryId }: Result): void {
    if (!this.#looks) this.#source.returned(this.#request, deliveryId);
  }

  /** Looks, and looks again after every notice; registered before the first look, so that nothing is missed. */
  async #await<T>(
    signal: AbortSignal | undefined,
    hears: boolean,
    look: (told: Question | undefined) => Promise<T | undefined>,
  ): Promise<T> {
    signal?.throwIfAborted();
    let told: Question | undefined;
    let changed = false;
    let wake: (() => void) | undefined;
    const stop = this.#source.wait(this.requestId, {
      hears,
      tell: (notice) => {
        if (notice.type === "question") told = notice.question;
        changed = true;
        wake?.();
      },
    });
    const aborted = () => wake?.();
    const letGo = this.#source.hold();
    signal?.addEventListener("abort", aborted);
    try {
      for (;;) {
        changed = false;
        await this.#source.ready();
        const found = await look(told);
        if (found !== undefined) return found;
        told = undefined;
        signal?.throwIfAborted();
        if (!changed) await new Promise<void>((resolve) => (wake = resolve));
        signal?.throwIfAborted();
      }
    } finally {
      stop();
      letGo();
      signal?.removeEventListener("abort", aborted);
    }
  }
}
