import type { AnswerFormat, Json } from "../../machines/vocabulary.ts";
import type { OwnerRef } from "../kernel/records.ts";
import type { ReplyReceipt } from "./question.ts";

/** A question that waits for a person: a worker asked it with `to: "user"`. What is unset is absent. */
export interface InboxEntry {
  askId: string;
  /** The assignment that waits for the answer. */
  requestId: string;
  label: string;
  agent: string;
  /** On whose behalf it is asked. */
  owner: OwnerRef;
  /** The agents that led to it, the outermost first. */
  askedBy: string[];
  question: string;
  answerFormat: AnswerFormat;
  options?: Json[];
  schema?: object;
  groupId?: string;
  /** ISO 8601, UTC. */
  askedAt: string;
  expiresAt?: string;
  metadata?: Json;
}

/** What an inbox tells. */
export interface InboxEvents {
  /** A person is asked. */
  asked: InboxEntry;
  /** Nobody needs to answer any more: it is answered, it expired, or its worker was closed. */
  gone: { askId: string; requestId: string; why: "answered" | "expired" | "removed" };
}

/**
 * What people are asked, over all runs of a herd. A caller ask is not a person's question: it is never listed here, and
 * its answer is refused.
 */
export interface HerdInbox {
  /** Everything that waits for a person, oldest first. */
  list(): Promise<InboxEntry[]>;
  /**
   * A person's answer, checked by the question's format.
   *
   * What can happen twice: nothing. The same `id` succeeds quietly, any other second answer is `already_answered`.
   * @throws HerdError `asks_its_caller`, `answer_mismatch`, `already_answered`, `target_not_found`, `closed`, `expired`.
   */
  answer(request: { askId: string; answer: Json; id?: string }): Promise<ReplyReceipt>;
  /** Listens to what comes and goes, always after the commit. @returns how to stop. */
  on<Name extends keyof InboxEvents>(event: Name, listener: (entry: InboxEvents[Name]) => void): () => void;
}
