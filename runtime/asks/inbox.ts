import { z } from "zod";
import type { AnswerFormat, Json } from "../../machines/vocabulary.ts";
import type { Engine, InboxDesk } from "../engine.ts";
import { HerdError, withoutUndefined } from "../errors.ts";
import type { AskRecord, OwnerRef, RequestRecord } from "../kernel/records.ts";
import { json, parseRequest } from "../request.ts";
import { keys, prefixed } from "../store/keys.ts";
import { nonBlank } from "../subagent/acceptance.ts";
import type { InboxEntry } from "./people.ts";
import type { ReplyReceipt } from "./question.ts";
import { reply } from "./reply.ts";

const Answer = z.strictObject({
  askId: nonBlank,
  answer: json,
  id: nonBlank.max(512, "must be at most 512 characters").optional(),
});

/** What waits for people, in any run of the herd. What is asked of programs is never here. */
export class Inbox implements InboxDesk {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Everything that waits for a person, oldest first. */
  async list(): Promise<InboxEntry[]> {
    const { kernel } = this.#engine;
    const prefix = keys.inbox("");
    const rows = await kernel.range(prefixed(prefix));
    return rows
      .flatMap(([key]) => {
        const ask = kernel.committed<AskRecord>(keys.ask(key.slice(prefix.length)));
        const request = ask && !ask.answer && !ask.abandoned && this.#engine.request(ask.requestId);
        return request ? [entryOf(ask, request)] : [];
      })
      .toSorted((a, b) => (a.askedAt < b.askedAt || (a.askedAt === b.askedAt && a.askId < b.askId) ? -1 : 1));
  }

  /**
   * A person's answer.
   *
   * What can happen twice: nothing. The same `id` succeeds quietly, any other second answer is `already_answered`.
   * @throws HerdError `asks_its_caller` for a question that is no person's, `answer_mismatch`, `target_not_found`, …
   */
  async answer(request: unknown): Promise<ReplyReceipt> {
    const { askId, answer, id } = parseRequest("answer", Answer, request);
    await this.#engine.kernel.ready();
    const ask = this.#engine.kernel.read<AskRecord>(keys.ask(askId));
    if (ask === undefined) throw notFound(askId);
    return reply(this.#engine, {
      owner: ask.owner,
      askId,
      message: answer as Json,
      ...(id !== undefined && { id }),
      cwd: this.#engine.cwd,
      operation: "answer",
      asPerson: true,
    });
  }

  /** A question to a person is on disk. */
  asked(ask: AskRecord, request: RequestRecord): void {
    this.#engine.events.emit("asked", entryOf(ask, request));
  }

  /** It needs no person any more. */
  ended({ askId, requestId, parked }: AskRecord, why: "answered" | "expired" | "removed"): void {
    if (parked?.to === "user") this.#engine.events.emit("gone", { askId, requestId, why });
  }
}

function entryOf(ask: AskRecord, { label, agent, owner, metadata }: RequestRecord): InboxEntry {
  const { askId, requestId, question, askedAt, parked } = ask;
  return withoutUndefined({
    askId,
    requestId,
    label,
    agent,
    owner: (ask.addressee ?? owner) as OwnerRef,
    askedBy: parked?.askedBy ?? [],
    question,
    answerFormat: (parked?.answerFormat ?? "text") as AnswerFormat,
    options: parked?.options,
    schema: parked?.schema,
    groupId: parked?.groupId,
    askedAt: new Date(askedAt).toISOString(),
    expiresAt: parked?.expiresAt === undefined ? undefined : new Date(parked.expiresAt).toISOString(),
    metadata,
  }) as InboxEntry;
}

function notFound(askId: string): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: "target_not_found",
    message: `No question is known as ${JSON.stringify(askId)}`,
    nextAction: "list the inbox and answer what is there now",
    operation: "answer",
    ids: { askId },
  });
}
