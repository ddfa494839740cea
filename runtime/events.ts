import type { InboxEvents } from "./asks/people.ts";
import type { Question } from "./asks/question.ts";
import type { Result } from "./deliveries/result.ts";
import type { VisitOutcome } from "./asks/visit-shapes.ts";
import type { DoorKind } from "./doors/shapes.ts";
import { messageOf } from "./errors.ts";
import type { OwnerRef } from "./kernel/records.ts";
import type { Usage } from "../machines/vocabulary.ts";

/** What `herd.on` tells, always after the commit. Listeners only look on: nothing waits for them. */
export interface HerdEvents {
  /** A worker asked its owner. */
  question: Question;
  /** An assignment ended with a result or was closed. */
  result: Result;
  /** A person is asked: there is something new in the inbox. */
  asked: InboxEvents["asked"];
  /** No person needs to answer that any more. */
  gone: InboxEvents["gone"];
  /** A worker's top state changed. */
  state: { runId: string; label: string; agent: string; from: string | undefined; to: string };
  /**
   * A working worker shows no activity for ten minutes, since `lastActivityAt` (ISO 8601). Told once per silence; whom it
   * concerns is the direct owner: the parent worker `parentRunId`, or without one `owner`.
   */
  stale: {
    runId: string;
    label: string;
    agent: string;
    requestId: string;
    owner: OwnerRef;
    workspace: string;
    parentRunId?: string;
    lastActivityAt: string;
    inactiveMs: number;
  };
  /** A worker ended without a result of its own. */
  lost: { runId: string; label: string; requestId: string; message: string };
  /** An ask passed its deadline (`expiredAt`, ISO 8601) without an answer, and that was acted upon. */
  expired: { askId: string; requestId: string; groupId: string; label: string; expiredAt: string };
  /**
   * An outcome was not kept: a worker ended while its question was open or after its result, or (`untaken`) nobody took
   * it off its subject, `owner`, for the whole retention.
   */
  dropped: { label: string; requestId: string | undefined; why: string; owner?: OwnerRef };
  /** Somebody came through a door, or a fire of it that nobody waits for went wrong (`error`). */
  door: {
    name?: string;
    kind: DoorKind;
    action?: VisitOutcome["action"];
    cancelled?: string[];
    requestId?: string;
    error?: unknown;
  };
  /** A worker's progress note; coalesced and not durable. */
  report: { runId: string; label: string; requestId: string; note: string; usage?: Usage };
  /** A run cannot go on in this program; `diagnostic` says why and shows both sides. */
  held: { runId: string; label: string; agent: string; requestId: string; diagnostic: string };
  /** A question parks while this process waits for that assignment: nobody here will answer it. */
  unheard: { question: Question; message: string };
  /** A handler threw; the delivery is tried again at `retryAt`. */
  undelivered: { deliveryId: string; label: string; attempt: number; error: unknown; retryAt: string };
}

/** What `herd.on` can be asked to tell. */
export type HerdEventName = keyof HerdEvents;

/** Listeners by event. A throwing listener becomes one process warning and hinders nobody. */
export class Events {
  readonly #listeners = new Map<HerdEventName, Set<(event: never) => void>>();
  /** What happened before anybody could listen. */
  #early: (() => void)[] | undefined;

  /** @param options.begun false: keeps what happens until `begin`. */
  constructor({ begun = true }: { begun?: boolean } = {}) {
    if (!begun) this.#early = [];
  }

  /** @returns how to stop listening. */
  on<Name extends HerdEventName>(name: Name, listener: (event: HerdEvents[Name]) => void): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  has(name: HerdEventName): boolean {
    // Before the beginning it is not known yet who will.
    return this.#early !== undefined || (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  emit<Name extends HerdEventName>(name: Name, event: HerdEvents[Name]): void {
    if (this.#early) this.#early.push(() => this.#tell(name, event));
    else this.#tell(name, event);
  }

  /** There is a herd to listen to: tells what happened while it was opened. */
  begin(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const tell of early) tell();
  }

  #tell<Name extends HerdEventName>(name: Name, event: HerdEvents[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        (listener as (event: HerdEvents[Name]) => void)(event);
      } catch (error) {
        process.emitWarning(`a listener for "${name}" threw: ${messageOf(error)}`, { type: "HerdListenerWarning" });
      }
    }
  }
}
