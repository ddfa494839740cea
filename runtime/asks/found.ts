import type { AskRecord, DeliveryRecord, OutcomeRecord, RequestRecord } from "../kernel/records.ts";
import type { ParkedEntry } from "./entry.ts";

/** An entry with what it stands for, and its place in the order. */
export interface Found {
  entry: ParkedEntry;
  /** Since when, UTC milliseconds, and what came first of those of the same one. */
  at: number;
  order: string;
  request: RequestRecord;
  /** Of a question. */
  ask?: AskRecord;
  /** Of an outcome. */
  delivery?: DeliveryRecord;
}

/** The order of every list of entries. */
export function oldestFirst(a: Found, b: Found): number {
  return a.at - b.at || (a.order < b.order ? -1 : 1);
}

/** What a run came to next: its end, or questions without whose answers nothing of it goes on. */
export type Next = { type: "ended"; ended: OutcomeRecord } | { type: "asks"; asks: Found[] };

/** Somebody who waits for what a run comes to. */
export interface Watch {
  /** Resolves once, with what is on disk. */
  next: Promise<Next>;
  /** Stops waiting. */
  end(): void;
}
