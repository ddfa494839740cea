import type { Herd, Owner } from "../api.ts";
import type { Question, ReplyReceipt } from "../asks/question.ts";
import type { ParkedToolName, VisitOutcome, VisitRequest } from "../asks/visit-shapes.ts";
import type { Assignment } from "../deliveries/assignment.ts";
import type { Attachment } from "../deliveries/deliveries.ts";
import type { Receiver } from "../deliveries/desk.ts";
import type { Door } from "../doors/shapes.ts";
import type { HerdError } from "../errors.ts";
import type { ControlOptions } from "./grants.ts";
import type { By } from "./protocol.ts";

/** What the control socket needs of the herd that it speaks for. */
export interface ControlHost extends Pick<
  Herd,
  | "status"
  | "on"
  | "tick"
  | "owners"
  | "receive"
  | "parked"
  | "take"
  | "inbox"
  | "door"
  | "doors"
  | "nextDue"
  | "run"
  | "runs"
  | "backup"
> {
  /** The herd's folder, absolute. */
  readonly directory: string;
  /** Who is let in, and what is offered besides. */
  readonly access: ControlOptions;
  /** Resolves once the herd takes commands; what comes earlier waits. */
  readonly opened: Promise<void>;
  /** An owner that acts from elsewhere: what it does leaves the owner of this process as it is. */
  ownerFrom(by: By): Owner<string>;
  /** Makes somebody elsewhere the owner's receiver. @throws HerdError `receiver_exists`. */
  attachFrom(by: By, receiver: Receiver, how: Attachment): () => void;
  /** A visit from elsewhere: what it starts works in `cwd`. */
  visitFrom(cwd: string, request: VisitRequest): Promise<VisitOutcome>;
  /** A call of a parked tool from elsewhere. @param signal aborted when nobody there waits for it any more. */
  parkedToolFrom(by: By, name: ParkedToolName, input: unknown, signal: AbortSignal): Promise<unknown>;
  /** A saved door. @throws HerdError `target_not_found`. */
  doorNamed(name: string): Promise<Door>;
  /** A handle that only looks: what it gives is acknowledged by `returned`. @throws HerdError `target_not_found`. */
  look(requestId: string): Promise<Assignment>;
  /** Somebody elsewhere has this result: acknowledges it unless a receiver does that. */
  returned(requestId: string, deliveryId: string): Promise<void>;
  /** Answers a question as `question.reply` does, files looked up in `cwd`. */
  replyTo(askId: string, cwd: string, ...answer: Parameters<Question["reply"]>): Promise<ReplyReceipt>;
  /** Called when the herd takes nothing any more. @returns how to stop listening. */
  whenLeaving(tell: (error: HerdError) => void): () => void;
}
