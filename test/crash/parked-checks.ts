import type { AskRecord, OutcomeRecord } from "../../runtime/kernel/records.ts";
import { isExpired } from "../../runtime/asks/expiry.ts";
import { digest } from "./facts.ts";
import type { History } from "./history.ts";
import type { Accepted, Rows } from "./rows.ts";
import type { Visited } from "./visit-history.ts";
import { saidOf } from "./work.ts";

/** What a ledger says of visits against the rows of a store, and these rows against each other. */
export class ParkedCheck {
  readonly #history: History;
  readonly #rows: Rows;
  readonly #violate: (message: string) => void;
  /** Visits by the outermost run that they resumed, took or started, and by the one that they cancelled. */
  readonly #on = new Map<string, Visited[]>();
  readonly #against = new Map<string, Visited[]>();

  constructor(history: History, rows: Rows, violate: (message: string) => void) {
    this.#history = history;
    this.#rows = rows;
    this.#violate = violate;
    const byName = new Map([...rows.requests.values()].map(({ work, requestId }) => [work.name, requestId]));
    for (const visited of history.visits.visits.values()) {
      const { cancel = [], resume = [], take = "", start } = visited;
      // Who was killed before it heard of its start knows only the name.
      const acted = [...resume.map(({ id }) => id), take, byName.get(start?.name ?? "") ?? ""];
      this.#note(this.#on, acted, visited);
      this.#note(this.#against, cancel, visited);
    }
  }

  #note(visits: Map<string, Visited[]>, ids: readonly string[], visited: Visited): void {
    for (const requestId of new Set(ids.flatMap((id) => this.#topOf(id)?.requestId ?? []))) {
      visits.set(requestId, [...(visits.get(requestId) ?? []), visited]);
    }
  }

  /** Every accepted visit did what it said, and its answers are the ones that stand. */
  visits(): void {
    const { visits, accepted } = this.#history.visits;
    for (const [askId, { visit, payload }] of accepted) {
      const answer = this.#rows.asks.get(askId)?.answer;
      if (answer?.message === payload) continue;
      this.#violate(`visit ${visit} answered ${askId} with ${payload}, the store has ${saidOf(answer?.message)}`);
    }
    for (const { id, told, start } of visits.values()) {
      for (const gone of told?.cancelled ?? [])
        if (this.#isOpen(gone)) this.#violate(`visit ${id} cancelled ${gone}, which is there`);
      const { requestId } = told ?? {};
      if (start && requestId !== undefined && this.#rows.requests.get(requestId)?.work.name !== start.name) {
        this.#violate(`visit ${id} started ${start.name} as ${requestId}, which is not in the store`);
      }
    }
  }

  /** An answer to a parked ask is one that a visit gave, or stands for the deadline that passed. */
  answer({ askId, parked, answer }: AskRecord): void {
    if (isExpired(answer?.message)) {
      if (parked?.onExpiry === "resume" && (parked.expiresAt ?? Infinity) <= (answer?.at ?? 0)) return;
      return this.#violate(`the ask ${askId} expired, and its deadline says otherwise`);
    }
    const given = [...this.#history.visits.visits.values()].some(({ resume }) =>
      resume?.some(({ id, payload }) => id === askId && payload === answer?.message),
    );
    if (!given) this.#violate(`the answer ${saidOf(answer?.message)} to ${askId} is none that any visit gave`);
  }

  /** Why a run of a chain may have been closed. */
  permitted(request: Accepted): Record<"cancelled" | "expired", boolean> {
    const { requestId } = this.#rows.topOf(request);
    const chain = [...this.#rows.asks.values()].filter((ask) => this.#topOf(ask.askId)?.requestId === requestId);
    const named = (this.#against.get(requestId) ?? []).flatMap(({ cancel = [] }) => cancel);
    return {
      cancelled: chain.some(({ askId }) => named.includes(askId)),
      expired: chain.some(
        ({ parked }) => parked?.onExpiry === "kill" && parked.expiresAt !== undefined && parked.expiresAt <= Date.now(),
      ),
    };
  }

  /** A chain is gone as a whole: of no run that was cancelled or expired another one above or below it goes on. */
  chains(): void {
    for (const request of this.#rows.requests.values()) {
      const ended = this.#rows.outcomes.get(request.requestId)?.outcome;
      if (ended === undefined || ended.status === "completed") continue;
      const { code } = ended.error;
      if (code !== "cancelled" && code !== "expired") continue;
      const top = this.#rows.topOf(request);
      if (!this.#rows.outcomes.has(top.requestId)) {
        this.#violate(`${request.work.name} was ${code}, and ${top.work.name} above it goes on`);
      }
    }
  }

  /**
   * Whoever was told the outcome of a run that a visit started: one that took it, or those that waited for it at once.
   * @returns whether its delivery may be gone, because somebody got it, or may have.
   */
  received({ requestId, work }: Accepted, { outcome }: OutcomeRecord): boolean {
    const on = this.#on.get(requestId) ?? [];
    const heard = on.filter(({ received }) => received !== undefined);
    // Visits that wait for one run at once hear of it together; who takes it is alone.
    const together = new Set(heard.map(({ receivedIn }) => receivedIn)).size === 1 && heard.every(({ take }) => !take);
    if (heard.length > 1 && !together) {
      this.#violate(
        `the result of ${work.name} (${requestId}) was given to visits ${heard.map(({ id }) => id).join(", ")}`,
      );
    }
    for (const { id, received } of heard) {
      if (received?.status !== "completed") continue;
      const text = outcome.status === "completed" ? digest(outcome.text) : outcome.status;
      if (received.text !== text)
        this.#violate(`visit ${id} was told ${received.text} of ${work.name}, which is ${text}`);
    }
    const against = this.#against.get(requestId) ?? [];
    const dropped = against.some(
      ({ cancel, told, unheard, received }) => cancel?.includes(requestId) && (told || unheard || received),
    );
    const mayHaveHeard = on.some(
      ({ unheard, receives, waits, take }) => unheard && (take === requestId || (receives && waits)),
    );
    return heard.length > 0 || dropped || mayHaveHeard;
  }

  /** Lists, deadlines and caps hold exactly what is open. */
  lists(): void {
    const open = new Set<string>();
    for (const { askId, parked, answer, abandoned } of this.#rows.asks.values()) {
      if (parked === undefined || answer || abandoned) continue;
      open.add(askId);
      const listed = [...this.#rows.parked.values()].some((ids) => ids.includes(askId));
      if (!listed) this.#violate(`the ask ${askId} is open and in no list`);
      if (!this.#rows.counted.has(askId)) this.#violate(`the ask ${askId} is open and does not count`);
      if (parked.expiresAt !== undefined && !this.#rows.expiries.has(askId))
        this.#violate(`the ask ${askId} would never expire`);
    }
    for (const askId of this.#rows.expiries) {
      if (!open.has(askId)) this.#violate(`a deadline stands for the ask ${askId}, which is not open`);
    }
    for (const id of this.#rows.counted) {
      const waits = this.#rows.outcomes.get(id)?.deliveryId ?? "";
      if (!open.has(id) && !this.#rows.deliveries.has(waits)) this.#violate(`${id} counts and is not open`);
    }
    for (const requestId of this.#rows.parked.keys()) {
      if (this.#rows.outcomes.has(requestId)) this.#violate(`the asks of ${requestId} are listed, which has ended`);
    }
  }

  /** The outermost run above an ask or an assignment, by its id. */
  #topOf(id: string): Accepted | undefined {
    const request = this.#rows.requests.get(id.split(".")[0] ?? "");
    return request && this.#rows.topOf(request);
  }

  #isOpen(id: string): boolean {
    const ask = this.#rows.asks.get(id);
    if (ask) return !ask.abandoned && !ask.answer;
    return this.#rows.deliveries.has(this.#rows.outcomes.get(id)?.deliveryId ?? "");
  }
}
