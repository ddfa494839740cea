import { askOwner, askParked, type ParkedFields } from "../asks/ask.ts";
import type { AskFields } from "../asks/formats.ts";
import { HerdError, withoutUndefined } from "../errors.ts";
import type { AskRecord } from "../kernel/records.ts";
import { AskTurns, type AskPlace } from "./ask-turns.ts";
import type { Execution } from "./execution.ts";
import type { AskEntry } from "./journal.ts";
import type { AskOwnerRequest } from "./worker.ts";

/** Reasons that pass by themselves: the typed call waits for them. */
const PASSING = new Set(["already_waiting", "request_unacknowledged", "child_work_active"]);

type Answered = AskRecord & { answer: NonNullable<AskRecord["answer"]> };

/** How a function asks: in its turn, once, and with the answer from its journal. */
export class Asking {
  readonly #execution: Execution;
  readonly #turns = new AskTurns();

  constructor(execution: Execution) {
    this.#execution = execution;
  }

  /** Waits while what speaks against it passes by itself. */
  async #whenItMay(asks: () => Promise<unknown>, wait: boolean): Promise<void> {
    for (;;) {
      const seen = this.#execution.changes;
      try {
        await this.#execution.during("running", asks);
        return;
      } catch (error) {
        if (!wait || !(error instanceof HerdError) || !PASSING.has(error.reason)) throw error;
        this.#execution.functions.noteWait(this.#execution.runId, whyItWaits(this.#execution));
        await this.#execution.news("turn", seen);
        this.#execution.functions.noteWait(this.#execution.runId, undefined);
        await this.#execution.live();
      }
    }
  }

  /** Waits for the answer in the journal, and until nothing else of its group is open. */
  async #answerOf(key: string): Promise<Answered> {
    for (;;) {
      const ask = (this.#execution.journal.get(key) as AskEntry | undefined)?.ask;
      if (ask?.answer && !(ask.parked && this.#execution.asks)) {
        await this.#execution.proceed();
        return { ...ask, answer: ask.answer };
      }
      await this.#execution.news("answer");
    }
  }

  /** Asks what no earlier execution asked, in its turn; gives the answer of what one did. */
  async ask(claim: { type: string; key: string }, asks: (key: string) => Promise<unknown>, place?: AskPlace) {
    if (claim.type === "recorded") {
      place?.leave();
      return this.#answerOf(claim.key);
    }
    const once = async () => {
      await this.#whenItMay(() => asks(claim.key), place !== undefined);
      return this.#answerOf(claim.key);
    };
    return place ? this.#inTurn(place, once) : once();
  }

  /** Takes a place before anything is awaited: the order of the calls is that of the questions. */
  async placed<T>(wait: boolean, group: unknown, fn: (place: AskPlace | undefined) => Promise<T>): Promise<T> {
    const place = wait ? this.#turns.take(typeof group === "string" ? group : undefined) : undefined;
    try {
      return await fn(place);
    } finally {
      place?.leave();
    }
  }

  /** Waits for the turn of a place, and gives it back when the question has its answer. */
  async #inTurn<T>(place: AskPlace, fn: () => Promise<T>): Promise<T> {
    await this.#execution.awaits("turn", place.begun);
    try {
      return await fn();
    } finally {
      place.leave();
    }
  }

  /** A question of `askOwner`. @param calls names of all tool calls of the turn. */
  ofOwner({ question, files }: AskOwnerRequest, calls: string[]): (journalKey: string) => Promise<unknown> {
    const { engine, treeId, runId } = this.#execution;
    const request = { question, ...(files && { files }) };
    return (journalKey) => askOwner(engine, { treeId, runId, request, calls, journalKey });
  }

  /** A parked ask; without a deadline of its own it has that of the herd. */
  parked({ question, groupId, answerFormat, payload, options, schema, onExpiry, to, expiresAt }: AskFields) {
    const { engine, treeId, runId } = this.#execution;
    return (journalKey: string): Promise<unknown> => {
      const { callerAskTtl } = engine.options;
      const until = expiresAt ?? (callerAskTtl === null ? undefined : engine.kernel.now() + callerAskTtl);
      const given = withoutUndefined({ groupId, payload, options, schema, expiresAt: until });
      const fields = { to, answerFormat, onExpiry, ...given } as ParkedFields;
      return askParked(engine, { treeId, runId, question, fields, journalKey });
    };
  }
}

/** What keeps a question back that nothing moves on by itself: a result that the function has not read yet. */
function whyItWaits({ engine, treeId, runId }: Execution): string | undefined {
  const tree = engine.kernel.loaded(treeId);
  const worker = tree?.worker(runId);
  if (tree === undefined || worker === undefined) return undefined;
  const { active, undelivered } = worker.context.children;
  if (active > 0 || undelivered === 0) return undefined;
  const unread = [...tree.resting.values()].filter(({ path }) => path.startsWith(`${worker.path}/`));
  const labels = unread.map(({ context }) => `"${context.label}"`).join(", ");
  return `It has a question for its owner and waits until it has read the result of ${labels}: await its result().`;
}
