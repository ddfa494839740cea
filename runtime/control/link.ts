import type { Question } from "../asks/question.ts";
import type { Receiver } from "../deliveries/desk.ts";
import type { Connection } from "./connection.ts";

/** A receiver with the folder in which the files of its replies are looked up. */
export interface RemoteReceiver extends Receiver {
  cwd: string;
}

/** What the owners and handles of a herd in another process share. */
export interface Link {
  readonly connection: Connection;
  /** A question as it came, with its reply. */
  question(told: unknown, cwd?: string): Question;
  /** For a call whose answer nobody waits for: that it failed is one process warning, unless the herd is gone. */
  inBackground(call: Promise<unknown>): void;
  /** Has a receiver hear what comes. @returns its number here. */
  attach(receiver: RemoteReceiver): number;
  detach(receiver: number): void;
}
