import { resolve } from "node:path";
import type { BackupReceipt, Herd, HerdStatus, OwnerRow } from "../api.ts";
import type { ParkedEntry } from "../asks/entry.ts";
import type { HerdInbox } from "../asks/people.ts";
import type { Question, ReplyReceipt } from "../asks/question.ts";
import { visit } from "../asks/visit.ts";
import type { ParkedToolName, VisitOutcome, VisitRequest } from "../asks/visit-shapes.ts";
import type { Assignment } from "../deliveries/assignment.ts";
import type { Attachment } from "../deliveries/deliveries.ts";
import type { Receiver } from "../deliveries/desk.ts";
import type { Result } from "../deliveries/result.ts";
import type { Door, DoorRequest, DoorRun } from "../doors/shapes.ts";
import { HerdError } from "../errors.ts";
import type { HerdEventName, HerdEvents } from "../events.ts";
import type { HerdEngine } from "../herd-engine.ts";
import type { AskRecord } from "../kernel/records.ts";
import { controllerOf, LocalOwner, type Gate } from "../local-owner.ts";
import type { Subject } from "../owners.ts";
import { keys } from "../store/keys.ts";
import type { Controller } from "../subagent/acceptance.ts";
import type { ControlOptions } from "./grants.ts";
import type { ControlHost } from "./host.ts";
import type { By } from "./protocol.ts";

/** A herd of this process, as far as it is spoken for elsewhere. */
export interface LocalHerd extends Herd, Gate {
  readonly engine: HerdEngine;
  readonly opened: Promise<void>;
  attach(by: Controller, receiver: Receiver, how: Attachment): () => void;
}

/** Lets clients of the control socket at a herd of this process. */
export class HerdHost implements ControlHost {
  readonly directory: string;
  readonly access: ControlOptions;
  readonly #herd: LocalHerd;
  readonly #engine: HerdEngine;

  constructor(herd: LocalHerd, directory: string, access: ControlOptions) {
    this.access = access;
    this.directory = resolve(directory);
    this.#herd = herd;
    this.#engine = herd.engine;
  }

  get opened(): Promise<void> {
    return this.#herd.opened;
  }

  get status(): HerdStatus {
    return this.#herd.status;
  }

  ownerFrom(by: By): LocalOwner {
    return new LocalOwner(this.#engine, this.#herd, this.#controller(by));
  }

  attachFrom(by: By, receiver: Receiver, how: Attachment): () => void {
    const controller = this.#controller(by);
    const detach = this.#herd.attach(controller, receiver, how);
    this.#engine.limits.note(controller);
    return detach;
  }

  async look(requestId: string): Promise<Assignment> {
    this.#herd.assertReadable("assignment");
    return this.#engine.handle(await this.#engine.accepted(requestId), true);
  }

  async returned(requestId: string, deliveryId: string): Promise<void> {
    // Also while the herd closes: what somebody has is not given again.
    await this.#engine.lookout.returnedElsewhere(await this.#engine.accepted(requestId), deliveryId);
  }

  async replyTo(
    askId: string,
    cwd: string,
    ...[answer, options]: Parameters<Question["reply"]>
  ): Promise<ReplyReceipt> {
    this.#herd.assertOpen("reply");
    await this.#engine.kernel.ready();
    const ask = this.#engine.kernel.read<AskRecord>(keys.ask(askId));
    const request = ask && this.#engine.request(ask.requestId);
    if (ask && request) return this.#engine.replyTo(ask, request, answer, options, cwd);
    throw new HerdError({
      category: "target_not_found",
      reason: "target_not_found",
      message: `There is no question ${JSON.stringify(askId)} in this store`,
      nextAction: "list your workers and their open questions",
      operation: "reply",
    });
  }

  receive(filter: { scope: string }, receiver: Receiver): () => void {
    return this.#herd.receive(filter, receiver);
  }

  parked(subject: Subject): Promise<ParkedEntry[]> {
    return this.#herd.parked(subject);
  }

  take(subject: Subject, id?: string): Promise<Result | undefined> {
    return this.#herd.take(subject, id);
  }

  async visitFrom(cwd: string, request: VisitRequest): Promise<VisitOutcome> {
    this.#herd.assertOpen("visit");
    return visit(this.#engine, request, { cwd });
  }

  parkedToolFrom(by: By, name: ParkedToolName, input: unknown, signal: AbortSignal): Promise<unknown> {
    return this.ownerFrom(by).parkedTool(name, input, signal);
  }

  door(request: DoorRequest): Promise<Door> {
    return this.#herd.door(request);
  }

  doors(): Promise<Door[]> {
    return this.#herd.doors();
  }

  async doorNamed(name: string): Promise<Door> {
    this.#herd.assertOpen("door");
    return this.#engine.doors.named(name);
  }

  nextDue(): Promise<Date | undefined> {
    return this.#herd.nextDue();
  }

  run(id: string): Promise<DoorRun> {
    return this.#herd.run(id);
  }

  runs(): Promise<DoorRun[]> {
    return this.#herd.runs();
  }

  get inbox(): HerdInbox {
    return this.#herd.inbox;
  }

  owners(): Promise<OwnerRow[]> {
    return this.#herd.owners();
  }

  backup(directory: string): Promise<BackupReceipt> {
    return this.#herd.backup(directory);
  }

  tick(now?: Date): Promise<void> {
    return this.#herd.tick(now);
  }

  on<Name extends HerdEventName>(event: Name, listener: (event: HerdEvents[Name]) => void): () => void {
    return this.#herd.on(event, listener);
  }

  whenLeaving(tell: (error: HerdError) => void): () => void {
    return this.#engine.whenLeaving(tell);
  }

  #controller({ owner: { id, scope, keys: subjectKeys }, workspace, cwd, limits }: By): Controller {
    const owner: string | Subject = scope === undefined ? id : { scope, keys: subjectKeys ?? {} };
    return controllerOf(this.#engine, owner, {
      cwd,
      ...(workspace !== undefined && { workspace }),
      ...(limits && { limits }),
    });
  }
}
