import type { AnswerFormat, Json } from "../../machines/vocabulary.ts";

/**
 * What an owner finds waiting: a question, or what an assignment came to. What is unset is absent.
 * Source: "Asking the caller", "Parks on the subject".
 */
export interface ParkedEntry {
  /** The `askId` of a question, the `requestId` of an outcome. */
  id: string;
  /**
   * `asking`: a question waits for its answer. `running`: it is answered, and the assignment has neither asked again nor
   * ended. `finished`, `failed`: its outcome waits to be taken.
   */
  status: "asking" | "running" | "finished" | "failed";
  requestId: string;
  label: string;
  to?: "caller" | "user";
  /** The agents that led to the question, the outermost first. */
  askedBy?: string[];
  question?: string;
  answerFormat?: AnswerFormat;
  options?: Json[];
  schema?: object;
  payload?: Json;
  groupId?: string;
  /** ISO 8601, UTC; of a question. */
  createdAt?: string;
  expiresAt?: string;
  onExpiry?: "kill" | "resume";
  result?: Json;
  error?: Json;
  metadata?: Json;
}
