import type { HerdStatus } from "../api.ts";
import type { HerdEventName } from "../events.ts";

/**
 * What is said over the control socket: JSON-RPC 2.0, one message a line, UTF-8. A client says `hello` first; anything
 * else before that, or another protocol number, is refused and the connection ends.
 */
export const PROTOCOL = 1;

/** Longest message in bytes, either way: a result of that length is a book that belongs into a file. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

/** What may wait for a client that does not read, in bytes; one that lets more wait is disconnected. */
export const MAX_UNREAD_BYTES = 2 * MAX_MESSAGE_BYTES;

/** The error code of everything that is a `HerdError`, whose structured form is the error's `data`. */
export const HERD_ERROR = 1;

/** What a client hears after its `hello`. */
export interface Welcome {
  protocol: number;
  /** The process that has the store. */
  pid: number;
  /** The version of its package, for people. */
  version: string;
  /** The herd's folder. */
  directory: string;
  status: HerdStatus;
}

/** What the herd calls at a client that is a receiver: the answer acknowledges, an error has it tried again. */
export interface Callbacks {
  "receiver/question": { receiver: number; question: unknown };
  "receiver/result": { receiver: number; result: unknown };
}

/** What the herd tells a client, without an answer. */
export interface Notices {
  event: { event: HerdEventName; value: unknown };
  status: { status: HerdStatus };
}
