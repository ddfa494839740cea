import type { Question } from "../asks/question.ts";
import { messageOf } from "../errors.ts";
import type { Events } from "../events.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { AskRecord, DeliveryRecord, OutcomeRecord, OwnerRef, RequestRecord } from "../kernel/records.ts";
import { addressOf, ownerKeyOf } from "../owners.ts";
import { keys, prefixed } from "../store/keys.ts";
import { passFailpoint } from "../store/failpoint.ts";
import { Desk, receiverExists, type Receiver } from "./desk.ts";
import type { Result } from "./result.ts";

/** What somebody who waits for an assignment is told. */
export type Notice = { type: "question"; question: Question } | { type: "changed" };

interface Waiter {
  /** Hears questions too; somebody who only wants the result does not. */
  hears: boolean;
  tell(notice: Notice): void;
}

type Withdrawn = Pick<DeliveryRecord, "owner" | "requestId" | "deliveryId" | "askId">;

/** How a receiver becomes an owner's. */
export interface Attachment {
  /** Takes over from another one. */
  replace?: boolean;
  /** Called when another one takes over. */
  replaced?: () => void;
}

export interface DeliveriesOptions {
  kernel: Kernel;
  events: Events;
  request(requestId: string): RequestRecord | undefined;
  /** The result as its owner gets it. */
  result(request: RequestRecord, outcome: OutcomeRecord, attempt: number): Result;
  /** Puts the reply into a question. */
  question(ask: AskRecord, request: RequestRecord, attempt: number): Question;
  /** Acknowledges in memory at once, on disk with the next batch. */
  acknowledge(delivery: DeliveryRecord): void;
  quiet(): void;
}

/**
 * Every ask and every result on its way to an owner: pushed to the owner's receiver, else told to a
 * handle that waits, else parked. Rows say what is open; nothing here outlives the process.
 */
export class Deliveries {
  readonly #options: DeliveriesOptions;
  readonly #desks = new Map<string, Desk>();
  /** Receivers of whole scopes. */
  readonly #scopes = new Map<string, Receiver>();
  readonly #waiters = new Map<string, Set<Waiter>>();
  /** Questions whose handler was called in this process. */
  readonly #handed = new Set<string>();
  /** Assignments whose end a visit waits for, and how many do. */
  readonly #reserved = new Map<string, number>();
  /** Open questions that were said to be unheard. */
  readonly #unheard = new Set<string>();
  #warnedAt = -Infinity;
  #closing = false;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
  }

  /** Handlers under way, and receivers that what is open is still looked up for. */
  get running(): number {
    let running = 0;
    for (const desk of this.#desks.values()) running += desk.running;
    return running;
  }

  /** For how many owners something is kept in memory. */
  get desks(): number {
    return this.#desks.size;
  }

  /**
   * Makes a receiver the owner's, and hands it everything that is open.
   * @throws HerdError `receiver_exists` unless `replace` is set.
   */
  attach(owner: OwnerRef, receiver: Receiver, { replace = false, replaced }: Attachment = {}): () => void {
    const treeId = ownerKeyOf(owner);
    const desk = this.#desk(treeId);
    if (desk.own && !replace) throw receiverExists(`owner "${owner.id}"`, "{ replace: true }");
    const before = desk.replaced;
    desk.clear();
    before?.();
    desk.own = receiver;
    desk.replaced = replaced;
    if (owner.scope !== undefined) desk.scoped = this.#scopes.get(owner.scope);
    desk.load();
    return () => {
      if (desk.own !== receiver) return;
      desk.clear();
      // Whoever receives for the scope goes on.
      desk.load();
      this.#putAway(treeId);
    };
  }

  /**
   * Makes a receiver that of a whole scope: of every owner there that has none of its own. It is handed what is open.
   * @throws HerdError `receiver_exists`.
   */
  receive(scope: string, receiver: Receiver): () => void {
    if (this.#scopes.has(scope)) throw receiverExists(`scope "${scope}"`, "the function that receive gave");
    this.#scopes.set(scope, receiver);
    this.#options.kernel.inBackground(this.#hear(scope, receiver));
    return () => {
      if (this.#scopes.get(scope) !== receiver) return;
      this.#scopes.delete(scope);
      for (const [owner, desk] of this.#desks) {
        if (desk.scoped !== receiver) continue;
        desk.scoped = undefined;
        if (desk.own === undefined) desk.clear();
        this.#putAway(owner);
      }
    };
  }

  /** Whether results of this owner are acknowledged by a handler rather than by a handle. */
  hasResultReceiver(request: RequestRecord): boolean {
    if (this.#reserved.has(request.requestId)) return true;
    // While the herd closes nobody acknowledges: what was not handed over in time is handed over again.
    if (this.#closing) return true;
    return request.parentRunId === undefined && this.receivesResults(request);
  }

  /** Whether this owner has a receiver of results, also while the herd closes. */
  receivesResults({ owner }: Pick<RequestRecord, "owner">): boolean {
    return this.#receiverOf(owner)?.onResult !== undefined;
  }

  /** Whether somebody is there now who is told how an assignment of this owner ends. */
  receives(owner: OwnerRef, requestId: string): boolean {
    return this.#receiverOf(owner)?.onResult !== undefined || this.#reserved.has(requestId);
  }

  /**
   * A visit waits for the end of an assignment and takes it: no receiver is handed it meanwhile.
   * @returns how to let go; an end that nobody acknowledged by then goes to the receiver, or parks.
   */
  reserve(requestId: string): () => void {
    this.#reserved.set(requestId, (this.#reserved.get(requestId) ?? 0) + 1);
    return () => {
      const left = (this.#reserved.get(requestId) ?? 1) - 1;
      if (left > 0) return void this.#reserved.set(requestId, left);
      this.#reserved.delete(requestId);
      const { kernel } = this.#options;
      if (kernel.recovers) kernel.inBackground(kernel.ready().then(() => this.#offer(requestId)));
      else this.#offer(requestId);
    };
  }

  /** What nobody took goes on its way. */
  #offer(requestId: string): void {
    const { kernel } = this.#options;
    const request = kernel.ended || kernel.fence ? undefined : this.#options.request(requestId);
    const outcome = request && kernel.committed<OutcomeRecord>(keys.outcome(requestId));
    const key = request && outcome?.deliveryId && keys.delivery(addressOf(request), outcome.deliveryId);
    const delivery = key ? kernel.read<DeliveryRecord>(key) : undefined;
    if (request && delivery) this.#deskFor(request, delivery)?.add(delivery);
    this.tell(requestId, { type: "changed" });
  }

  /** Whether this owner may know of a delivery: it was handed to its receiver, or there is none to hand it to. */
  mayKnow(owner: string, deliveryId: string, whose: OwnerRef | undefined): boolean {
    if (whose === undefined || this.#receiverOf(whose)?.onQuestion === undefined) return true;
    if (this.#handed.has(deliveryId)) return true;
    const { kernel } = this.#options;
    return (
      Number.parseInt(deliveryId.slice(0, 6), 36) < kernel.epoch ||
      kernel.read(keys.delivery(owner, deliveryId)) === undefined
    );
  }

  /** Whether a receiver's handler has this delivery now: nobody else may take it meanwhile. */
  isLeased({ owner, deliveryId, requestId, kind }: DeliveryRecord): boolean {
    if (kind === "result" && this.#reserved.has(requestId)) return true;
    return this.#desks.get(owner)?.isRunning(deliveryId) === true;
  }

  /** The last delivery failure of a run, for the list. */
  errorOf(owner: string, runId: string): string | undefined {
    const error = this.#desks.get(owner)?.errorOf(runId);
    return error === undefined ? undefined : `delivery failed, retrying: ${messageOf(error)}`;
  }

  /** A question is on disk. */
  asked(request: RequestRecord, ask: AskRecord, delivery: DeliveryRecord): void {
    const { events } = this.#options;
    const waiters = this.#waiters.get(request.requestId);
    this.#deskFor({ owner: ask.addressee ?? request.owner }, delivery)?.add(delivery);
    if (!waiters && !events.has("question")) return;
    const question = this.#options.question(ask, request, 1);
    events.emit("question", question);
    for (const waiter of waiters ?? []) waiter.tell({ type: "question", question });
    if (waiters && request.parentRunId === undefined) this.#warnUnheard(question, waiters);
  }

  /** An assignment ended, and that is on disk. */
  ended(request: RequestRecord, outcome: OutcomeRecord, delivery: DeliveryRecord | undefined): void {
    if (delivery && !this.#reserved.has(request.requestId)) this.#deskFor(request, delivery)?.add(delivery);
    if (this.#options.events.has("result"))
      this.#options.events.emit("result", this.#options.result(request, outcome, 1));
    this.tell(request.requestId, { type: "changed" });
  }

  /** A delivery is acknowledged, or its question answered or given up. */
  withdrawn({ owner, requestId, deliveryId, askId }: Withdrawn): void {
    this.#handed.delete(deliveryId);
    if (askId !== undefined) this.#unheard.delete(askId);
    this.#desks.get(owner)?.remove(deliveryId);
    this.#putAway(owner);
    this.tell(requestId, { type: "changed" });
  }

  tell(requestId: string, notice: Notice): void {
    for (const waiter of this.#waiters.get(requestId) ?? []) waiter.tell(notice);
  }

  /** Registers somebody who waits for news of an assignment. @returns how to stop waiting. */
  wait(requestId: string, waiter: Waiter): () => void {
    const waiters = this.#waiters.get(requestId) ?? new Set();
    this.#waiters.set(requestId, waiters);
    waiters.add(waiter);
    return () => {
      waiters.delete(waiter);
      if (waiters.size === 0 && this.#waiters.get(requestId) === waiters) this.#waiters.delete(requestId);
    };
  }

  /** Somebody waits for a result while this question is open: says so unless somebody hears it. */
  noteOpen(question: Question): void {
    const waiters = this.#waiters.get(question.requestId);
    if (waiters) this.#warnUnheard(question, waiters);
  }

  /** How often a delivery may have been handed out before, other processes included. */
  attempt(delivery: DeliveryRecord, attempts: number): number {
    return attempts + Math.max(0, this.#options.kernel.epoch - delivery.epoch);
  }

  /** Retries that have become due. */
  tick(): void {
    for (const desk of this.#desks.values()) desk.tick();
  }

  /** Everybody who waits looks again: the store cannot be written any more, or the herd closes. */
  wakeAll(): void {
    for (const requestId of [...this.#waiters.keys()]) this.tell(requestId, { type: "changed" });
  }

  /** Stops handing out. Handlers under way finish on their own. */
  close(): void {
    this.#closing = true;
    this.#scopes.clear();
    for (const desk of this.#desks.values()) {
      desk.scoped = undefined;
      desk.clear();
    }
  }

  #receiverOf(owner: OwnerRef): Receiver | undefined {
    const own = this.#desks.get(ownerKeyOf(owner))?.own;
    return own ?? (owner.scope === undefined ? undefined : this.#scopes.get(owner.scope));
  }

  /** The desk that a delivery goes over, if anybody receives there. */
  #deskFor({ owner }: Pick<RequestRecord, "owner">, delivery: DeliveryRecord): Desk | undefined {
    const isTheirs = owner.scope !== undefined && delivery.owner === ownerKeyOf(owner);
    const scoped = isTheirs ? this.#scopes.get(owner.scope as string) : undefined;
    if (scoped === undefined) return this.#desks.get(delivery.owner);
    const desk = this.#desk(delivery.owner);
    desk.scoped = scoped;
    return desk;
  }

  /** Finds the owners of a scope for whom something is open. */
  async #hear(scope: string, receiver: Receiver): Promise<void> {
    const { kernel } = this.#options;
    const rows = await kernel.range(prefixed(keys.scope(scope)));
    const trees = new Set(rows.map(([key]) => key.slice(key.lastIndexOf("!") + 1)));
    for (const tree of trees) {
      const open = await kernel.range({ ...prefixed(keys.delivery(tree, "")), limit: 1 });
      if (this.#scopes.get(scope) !== receiver) return;
      if (open.length === 0) continue;
      const desk = this.#desk(tree);
      desk.scoped = receiver;
      desk.load();
    }
  }

  #desk(treeId: string): Desk {
    let desk = this.#desks.get(treeId);
    if (desk === undefined) {
      desk = new Desk({
        now: () => this.#options.kernel.now(),
        load: () => this.#load(treeId),
        loadFailed: (error) => this.#options.kernel.inBackground(Promise.reject(error)),
        hand: (receiver, delivery, attempt) => this.#inMemory(delivery, () => this.#hand(receiver, delivery, attempt)),
        failed: (delivery, attempt, error, retryAt) =>
          this.#options.events.emit("undelivered", {
            deliveryId: delivery.deliveryId,
            label: delivery.label,
            attempt: this.attempt(delivery, attempt),
            error,
            retryAt: new Date(retryAt).toISOString(),
          }),
        quiet: () => {
          this.#putAway(treeId);
          this.#options.quiet();
        },
      });
      this.#desks.set(treeId, desk);
    }
    return desk;
  }

  /** A receiver of a scope meets more and more owners: what none of them needs any more is not kept. */
  #putAway(treeId: string): void {
    if (this.#desks.get(treeId)?.isSpare) this.#desks.delete(treeId);
  }

  async #load(treeId: string): Promise<void> {
    const rows = await this.#options.kernel.range(prefixed(`d!${treeId}!`));
    for (const [, text] of rows) {
      const delivery = JSON.parse(text) as DeliveryRecord;
      if (delivery.kind === "question" || !this.#reserved.has(delivery.requestId)) this.#desk(treeId).add(delivery);
    }
  }

  /** Keeps the tree of a delivery in flight, so that its acknowledgement is queued the moment its handler resolves. */
  async #inMemory<T>({ tree }: DeliveryRecord, hand: () => Promise<T>): Promise<T> {
    const { kernel } = this.#options;
    kernel.pin(tree);
    try {
      await kernel.ready();
      await kernel.tree(tree);
      return await hand();
    } finally {
      kernel.unpin(tree);
    }
  }

  /** Looks at a delivery again right before each call: answered, closed and taken ones are dropped. */
  async #hand(receiver: Receiver, delivery: DeliveryRecord, attempts: number): Promise<boolean> {
    const { kernel } = this.#options;
    const { deliveryId, requestId, owner } = delivery;
    if (kernel.read(keys.delivery(owner, deliveryId)) === undefined) return false;
    const request = this.#options.request(requestId);
    if (request === undefined) return false;
    const attempt = this.attempt(delivery, attempts);
    passFailpoint("delivery.before");
    if (delivery.kind === "question") {
      const ask = kernel.committed<AskRecord>(keys.ask(delivery.askId ?? ""));
      if (ask === undefined || ask.answer || ask.abandoned) return false;
      if (receiver.onQuestion === undefined) return false;
      this.#handed.add(deliveryId);
      try {
        await receiver.onQuestion(this.#options.question(ask, request, attempt));
      } catch (error) {
        // A handler that failed after its reply was accepted did its work.
        if (kernel.read<AskRecord>(keys.ask(ask.askId))?.answer === undefined) throw error;
      }
    } else {
      const outcome = kernel.committed<OutcomeRecord>(keys.outcome(requestId));
      if (outcome === undefined) return false;
      if (receiver.onResult === undefined) return false;
      await receiver.onResult(this.#options.result(request, outcome, attempt));
    }
    passFailpoint("delivery.after");
    if (kernel.read(keys.delivery(owner, deliveryId)) !== undefined) this.#options.acknowledge(delivery);
    return true;
  }

  #warnUnheard(question: Question, waiters: ReadonlySet<Waiter>): void {
    if (this.#receiverOf(question.owner)?.onQuestion !== undefined) return;
    if ([...waiters].some((waiter) => waiter.hears) || this.#unheard.has(question.askId)) return;
    this.#unheard.add(question.askId);
    const message =
      `Worker "${question.label}" asks ${JSON.stringify(question.question)} and nobody here hears it. Next: answer with ` +
      `herd.owner(${JSON.stringify(question.owner.id)}).reply({ askId: ${JSON.stringify(question.askId)}, message }), ` +
      `give herd.owner() an onQuestion, or read the handle with "for await".`;
    const { events, kernel } = this.#options;
    if (events.has("unheard")) return events.emit("unheard", { question, message });
    if (kernel.now() - this.#warnedAt < 60_000) return;
    this.#warnedAt = kernel.now();
    process.emitWarning(message, { type: "HerdUnheardQuestion" });
  }
}
