import { createHash } from "node:crypto";
import type { OrderKey } from "./shop.ts";

/** Who got a result or a question: a receiver's handler, or somebody who reads or follows a handle. */
export type Via = "receiver" | "handle";

/**
 * What a process knows for sure, written after it knew it; and what it was about to do, written before it began.
 * `c` numbers the commands of a process, so that an end finds its beginning.
 */
export type Fact =
  | { fact: "session"; role: "load" | "audit" | "test" }
  /** The herd closed in order: everything that was acknowledged is on disk. */
  | { fact: "session.closed" }
  | {
      fact: "assigning";
      c: number;
      owner: string;
      name: string;
      agent: string;
      task: string;
      id?: string;
      label?: string;
      deadlineMs?: number;
    }
  | { fact: "assigned"; c: number; name: string; requestId: string; label: string }
  | { fact: "replying"; c: number; owner: string; askId?: string; label?: string; message: string; id?: string }
  | { fact: "replied"; c: number; askId: string; message: string; id?: string; receipt: string }
  | { fact: "closing"; c: number; owner: string; name: string; label: string }
  | { fact: "closed"; c: number; name: string }
  /** A command was refused. `winner` is the id of the reply that an `already_answered` names. */
  | { fact: "refused"; c: number; reason: string; askId?: string; winner?: string }
  /** A receiver was attached; with `results` it alone acknowledges them. */
  | { fact: "attached"; owner: string; results: boolean }
  /** Somebody begins to look at a handle. */
  | { fact: "reading"; c: number; requestId: string }
  /** Looked at a handle and saw no result. */
  | { fact: "looked"; c: number }
  | { fact: "question"; via: Via; owner: string; askId: string; requestId: string; deliveryId: string; attempt: number }
  | ({ fact: "result"; via: Via; c?: number; deliveryId: string; attempt: number } & Ending)
  /** A handler resolved, and the event loop has had a turn since: the engine knows. */
  | { fact: "resolved"; deliveryId: string }
  /** A handle gave a result away, and a command of the same owner that came after it is on disk. */
  | { fact: "taken"; deliveryId: string }
  /** A step had its effect outside the store. */
  | { fact: "effect"; name: string; at: string; value: string }
  /** A step returned to its function, so it is journalled. */
  | { fact: "journalled"; name: string; at: string; value: string }
  | { fact: "visiting"; c: number; visit: Visit }
  | { fact: "visited"; c: number; told: Told }
  /** The run that it waited for, or whose outcome it took, failed: nobody else is told. */
  | { fact: "visit.failed"; c: number; text: string }
  | { fact: "visit.refused"; c: number; reason: string }
  | { fact: "violation"; message: string };

/** A visit of a subject, as it was asked for. */
export interface Visit {
  id: string;
  order: OrderKey;
  cancel?: string[];
  resume?: { id: string; payload: string }[];
  take?: string;
  /** The run that it starts, by the name of its work. */
  start?: { name: string; agent: string; task: string };
  receives: boolean;
  waits: boolean;
}

/** What a visit did, and what it came to if that was an end. */
export interface Told {
  action: string;
  cancelled: string[];
  requestId?: string;
  ended?: { status: "completed" | "failed"; text: string };
}

/** How an assignment ended, as a reader saw it. */
export interface Ending {
  requestId: string;
  status: "completed" | "failed" | "closed";
  /** The text, or its digest when it is long. */
  text: string;
  code?: string;
}

/** A fact with the number of the process that wrote it. */
export type Line = Fact & { s: number };

/** Long texts are written down by their digest. */
export function digest(text: string): string {
  if (text.length <= 1_000) return text;
  return `${text.slice(0, 100)}…${text.length}:${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
}
