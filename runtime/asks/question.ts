import type { AnswerFormat, Evidence, Json } from "../../machines/vocabulary.ts";
import { envelope } from "../evidence/evidence.ts";
import type { AskRecord, OwnerRef, RequestRecord } from "../kernel/records.ts";

/** One question of a worker to its direct owner. The same `askId` is the same question, however often it comes. */
export interface Question {
  askId: string;
  /** The assignment that waits for the answer. */
  requestId: string;
  label: string;
  agent: string;
  owner: OwnerRef;
  /** What the owner gave with the assignment. */
  metadata?: Json;
  question: string;
  /** What a model reads: who asks, the question and its files. */
  envelope: string;
  answerFormat: AnswerFormat;
  options?: Json[];
  schema?: object;
  payload?: Json;
  files: Evidence[];
  /** ISO 8601, UTC. */
  askedAt: string;
  /** Of a parked ask: when it is given up, ISO 8601, UTC. */
  expiresAt?: string;
  deliveryId: string;
  /** How often this delivery may have been handed out, this time included. */
  attempt: number;
  /**
   * Answers this question and no other; the worker goes on with exactly this. The answer of a question of `askOwner` is
   * text, that of a parked ask what its `answerFormat` says.
   *
   * What can happen twice: nothing. The same `id` again succeeds quietly; any other second reply is refused with
   * `already_answered`, which names the reply that won.
   */
  reply(answer: Json, options?: { files?: string[]; id?: string }): Promise<ReplyReceipt>;
}

/** What an accepted reply is known by. */
export interface ReplyReceipt {
  requestId: string;
  askId: string;
  assignmentRequestId: string;
  sessionId: string;
}

/** A question as its owner's model reads it. */
export function questionText(label: string, { question, files }: Pick<AskRecord, "question" | "files">): string {
  return `"${label}" asks:\n\n${envelope("Question", question, files)}`;
}

/** A question as its owner gets it, with its reply. */
export function questionOf(
  ask: AskRecord,
  request: RequestRecord,
  attempt: number,
  reply: Question["reply"],
): Question {
  const { parked } = ask;
  return {
    askId: ask.askId,
    requestId: request.requestId,
    label: request.label,
    agent: request.agent,
    owner: ask.addressee ?? request.owner,
    ...(request.metadata !== undefined && { metadata: request.metadata }),
    question: ask.question,
    envelope: questionText(request.label, ask),
    answerFormat: parked?.answerFormat ?? "text",
    ...(parked?.options && { options: parked.options }),
    ...(parked?.schema && { schema: parked.schema }),
    ...(parked?.payload !== undefined && { payload: parked.payload }),
    files: ask.files,
    askedAt: new Date(ask.askedAt).toISOString(),
    ...(parked?.expiresAt !== undefined && { expiresAt: new Date(parked.expiresAt).toISOString() }),
    deliveryId: ask.deliveryId,
    attempt,
    reply,
  };
}
