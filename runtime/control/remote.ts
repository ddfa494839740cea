import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { BackupReceipt, Herd, HerdStatus, Owner, OwnerOptions, OwnerRow } from "../api.ts";
import type { ParkedEntry } from "../asks/entry.ts";
import type { HerdInbox } from "../asks/people.ts";
import type { Question } from "../asks/question.ts";
import type { VisitOutcome, VisitRequest } from "../asks/visit-shapes.ts";
import type { Assignment } from "../deliveries/assignment.ts";
import type { Receiver } from "../deliveries/desk.ts";
import type { Result } from "../deliveries/result.ts";
import type { Door, DoorRequest, DoorRun } from "../doors/shapes.ts";
import { HerdError, messageOf } from "../errors.ts";
import { detached } from "./errors.ts";
import { checkedLimits } from "../evidence/limits.ts";
import { Events, type HerdEventName, type HerdEvents } from "../events.ts";
import { checkedScope, ownerRef, type Subject } from "../owners.ts";
import type { Connection } from "./connection.ts";
import type { Link, RemoteReceiver } from "./link.ts";
import type { By } from "./protocol.ts";
import { RemoteAssignment } from "./remote-assignment.ts";
import { checkSendable, RemoteDoor } from "./remote-door.ts";
import { RemoteOwner } from "./remote-owner.ts";
import type { Notices } from "./wire.ts";

/** A herd in another process. Every promise is kept there; here is nothing that could be lost. */
export class RemoteHerd implements Herd, Link {
  readonly connection: Connection;
  /** Where relative files are looked up unless an owner says otherwise. */
  readonly cwd: string;
  readonly #events = new Events();
  readonly #listening = new Map<HerdEventName, number>();
  readonly #receivers = new Map<number, RemoteReceiver>();
  /** Calls whose answers nobody waits for; `close` does. */
  readonly #background = new Set<Promise<unknown>>();
  readonly #onDisconnect: ((error: HerdError) => void) | undefined;
  #numbers = 0;
  #status: HerdStatus;
  #closing = false;

  /** @param onDisconnect called once when the connection ends and was not closed here. */
  constructor(connection: Connection, cwd: string, onDisconnect?: (error: HerdError) => void) {
    this.connection = connection;
    this.cwd = cwd;
    this.#onDisconnect = onDisconnect;
    this.#status = connection.welcome.status;
    connection.hear("status", ({ status }) => (this.#status = status));
    connection.hear("event", (notice) => this.#told(notice));
    connection.answer("receiver/question", async ({ receiver, question }) => {
      const { onQuestion, cwd } = this.#receiver(receiver);
      await onQuestion?.(this.question(question, cwd));
    });
    connection.answer("receiver/result", async ({ receiver, result }) => {
      await this.#receiver(receiver).onResult?.(result as Result);
    });
    void connection.ended.then(() => this.#ended());
  }

  /** That of the herd in the other process; `closed` once the connection is gone, which does not end the herd. */
  get status(): HerdStatus {
    return this.#status;
  }

  owner(id: string | Subject, options: OwnerOptions = {}): Owner<string> {
    const { workspace, cwd = this.cwd, limits } = options;
    const by: By = {
      owner: ownerRef(id),
      cwd: resolve(this.cwd, cwd),
      ...(workspace !== undefined && { workspace }),
      ...(limits !== undefined && { limits: checkedLimits(limits) }),
    };
    return new RemoteOwner(this, by, options);
  }

  receive(filter: { scope: string }, { onQuestion, onResult }: Receiver): () => void {
    const scope = checkedScope(filter?.scope);
    const hears = { ...(onQuestion && { onQuestion }), ...(onResult && { onResult }) };
    const receiver = this.attach({ cwd: this.cwd, ...hears });
    const hearing = { hearsQuestions: onQuestion !== undefined, hearsResults: onResult !== undefined };
    this.inBackground(this.connection.call("herd/receive", { scope, receiver, ...hearing }));
    return () => {
      if (!this.#receivers.has(receiver)) return;
      this.detach(receiver);
      if (this.connection.isOpen) this.inBackground(this.connection.call("owner/detach", { receiver }));
    };
  }

  async parked(subject: Subject): Promise<ParkedEntry[]> {
    ownerRef(subject);
    return this.connection.call("herd/parked", { subject });
  }

  async take(subject: Subject, id?: string): Promise<Result | undefined> {
    ownerRef(subject);
    const taken = await this.connection.call("herd/take", { subject, ...(id !== undefined && { id }) });
    return (taken as Result | null) ?? undefined;
  }

  async visit(given: VisitRequest): Promise<VisitOutcome> {
    const { signal, ...request } = given ?? {};
    const cwd = this.cwd;
    return this.connection.call("herd/visit", { cwd, request }, { signal, waits: true });
  }

  async door(request: DoorRequest): Promise<Door> {
    checkSendable(request);
    return new RemoteDoor(this.connection, await this.connection.call("herd/door", { request }), request);
  }

  async doors(): Promise<Door[]> {
    const doors = await this.connection.call("herd/doors", {});
    return doors.map((door) => new RemoteDoor(this.connection, door, undefined));
  }

  async nextDue(): Promise<Date | undefined> {
    const due = await this.connection.call("herd/nextDue", {});
    return due === null ? undefined : new Date(due);
  }

  run(id: string): Promise<DoorRun> {
    return this.connection.call("herd/run", { id });
  }

  runs(): Promise<DoorRun[]> {
    return this.connection.call("herd/runs", {});
  }

  readonly inbox: HerdInbox = {
    list: () => this.connection.call("inbox/list", {}),
    answer: (request) => this.connection.call("inbox/answer", { request }),
    on: (name, listener) => this.on(name, listener as never),
  };

  owners(): Promise<OwnerRow[]> {
    return this.connection.call("herd/owners", {});
  }

  async assignment(requestId: string): Promise<Assignment> {
    return new RemoteAssignment(this, await this.connection.call("herd/assignment", { requestId }), this.cwd);
  }

  on<Name extends HerdEventName>(name: Name, listener: (event: HerdEvents[Name]) => void): () => void {
    const stop = this.#events.on(name, listener);
    const count = (this.#listening.get(name) ?? 0) + 1;
    this.#listening.set(name, count);
    if (count === 1) this.inBackground(this.connection.call("herd/listen", { event: name }));
    let stopped = false;
    return () => {
      if (stopped) return;
      stopped = true;
      stop();
      const left = (this.#listening.get(name) ?? 1) - 1;
      this.#listening.set(name, left);
      if (left === 0 && this.connection.isOpen) {
        this.inBackground(this.connection.call("herd/unlisten", { event: name }));
      }
    };
  }

  async tick(now?: Date): Promise<void> {
    await this.connection.call("herd/tick", now === undefined ? {} : { now: now.toISOString() });
  }

  backup(directory: string): Promise<BackupReceipt> {
    return this.connection.call("herd/backup", { directory: resolve(this.cwd, directory) });
  }

  async close({ graceMs = 10_000 }: { graceMs?: number } = {}): Promise<void> {
    this.#closing = true;
    const calls = (async () => {
      while (this.#background.size > 0) await Promise.allSettled([...this.#background]);
    })();
    const grace = new AbortController();
    const over = pause(graceMs, undefined, { signal: grace.signal }).catch(() => undefined);
    await Promise.race([calls, over, this.connection.ended]);
    grace.abort();
    await this.connection.close(graceMs);
    this.#status = "closed";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  attach(receiver: RemoteReceiver): number {
    const number = ++this.#numbers;
    this.#receivers.set(number, receiver);
    return number;
  }

  detach(receiver: number): void {
    this.#receivers.delete(receiver);
  }

  question(told: unknown, cwd = this.cwd): Question {
    const question = told as Omit<Question, "reply">;
    return {
      ...question,
      reply: (answer, options = {}) =>
        this.connection.call("question/reply", { askId: question.askId, cwd, answer, options }),
    };
  }

  inBackground(call: Promise<unknown>): void {
    const done: Promise<unknown> = call
      .catch((error: unknown) => {
        if (this.#closing || !this.connection.isOpen) return;
        // A herd that closes says so by itself; what was not carried out is not lost.
        if (error instanceof HerdError && error.reason === "herd_closed") return;
        process.emitWarning(messageOf(error), { type: "HerdConnectionWarning" });
      })
      .finally(() => this.#background.delete(done));
    this.#background.add(done);
  }

  /** Whoever only listens would never learn that there is nothing to hear any more. */
  #ended(): void {
    this.#status = "closed";
    if (this.#closing) return;
    const error = this.connection.gone("listen");
    if (this.#onDisconnect) {
      try {
        return this.#onDisconnect(error);
      } catch (thrown) {
        return process.emitWarning(`onDisconnect threw: ${messageOf(thrown)}`, { type: "HerdListenerWarning" });
      }
    }
    const listening = [...this.#listening.values()].some((count) => count > 0);
    if (this.#receivers.size === 0 && !listening) return;
    process.emitWarning(`${error.message} Receivers and listeners here hear nothing more.`, {
      type: "HerdConnectionWarning",
    });
  }

  #receiver(number: number): RemoteReceiver {
    const receiver = this.#receivers.get(number);
    if (receiver) return receiver;
    throw detached();
  }

  #told({ event, value }: Notices["event"]): void {
    this.#events.emit(event, this.#revived(event, value) as never);
  }

  #revived(event: HerdEventName, value: unknown): unknown {
    if (event === "question") return this.question(value);
    const told = value as Record<string, unknown>;
    if (event === "unheard") return { ...told, question: this.question(told["question"]) };
    if ("error" in told) return { ...told, error: new Error(String(told["error"])) };
    return told;
  }
}
