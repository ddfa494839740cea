import type { Json } from "../../machines/vocabulary.ts";
import type { Question } from "../asks/question.ts";
import type { Result } from "./result.ts";

/** What an owner hears of one assignment. */
export type OwnerEvent = { type: "question"; question: Question } | { type: "result"; result: Result };

/** Where an assignment stands now. */
export interface AssignmentStatus {
  requestId: string;
  label: string;
  agent: string;
  /** The worker's public state, or `completed`, `failed` or `closed` once it ended. */
  state: string;
  /** Accepted and waiting for a free place. */
  queued?: boolean;
  diagnostic?: string;
  question?: Question;
  result?: Result;
  metadata?: Json;
}

/** What a handle gives until its assignment has ended, the result included. */
export async function* eventsOf(handle: Pick<Assignment, "next">): AsyncGenerator<OwnerEvent, void, undefined> {
  for (;;) {
    const event = await handle.next();
    yield event;
    if (event.type === "result") return;
  }
}

/**
 * The handle of one accepted task: an async iterable of its questions and its result. It holds nothing open;
 * `herd.assignment(requestId)` gives it again in any later process.
 */
export interface Assignment extends AsyncIterable<OwnerEvent> {
  /** Names the assignment, for ever and in every process. */
  readonly requestId: string;
  /** The name of its worker in the workspace. */
  readonly label: string;
  /** The session of its worker, by which a later assignment may go on. */
  readonly sessionId: string;
  /**
   * Where it stands. A result that it shows is acknowledged unless a receiver does that, or `acknowledge` is false: then
   * it only looks.
   */
  status(options?: { acknowledge?: boolean }): Promise<AssignmentStatus>;
  /** The next question or the result; the first call of a fresh handle gives what is open again. */
  next(options?: { signal?: AbortSignal }): Promise<OwnerEvent>;
  /**
   * The result, which may be a failure or `closed`: it does not reject because work failed.
   *
   * What can happen twice: without an `onResult` receiver the first handle that returns it acknowledges it a moment
   * later; the process ending in between gives it again.
   */
  result(options?: { signal?: AbortSignal }): Promise<Result>;
}
