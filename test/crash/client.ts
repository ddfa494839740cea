import { setTimeout as pause } from "node:timers/promises";
import {
  HerdError,
  type Assignment,
  type Herd,
  type Listing,
  type OwnerEvent,
  type OwnerOptions,
  type Result,
} from "../../runtime/index.ts";
import { digest, type Ending, type Via } from "./facts.ts";
import type { Assigned } from "./history.ts";
import type { Ledger } from "./ledger.ts";
import type { Random } from "./random.ts";
import type { Order } from "./work.ts";

type CrashOwner = ReturnType<Herd["owner"]>;

/** How a receiver's handlers behave. Resolving acknowledges, throwing asks for another attempt. */
export interface Behaviour {
  question(question: { askId: string; reply: (how: Reply) => Promise<unknown> }): Promise<void>;
  result(result: Result): Promise<void>;
}

export interface Reply {
  message: string;
  id?: string;
}

/** The owners of the load. Two and two share a workspace, so that they compete for labels. */
export const OWNERS = Array.from({ length: 10 }, (_, index) => `owner-${index}`);
const workspaceOf = (owner: string) => `workspace-${Math.floor(OWNERS.indexOf(owner) / 2)}`;

/** Refusals that may meet a command whatever the engine did before. */
const REFUSALS = {
  assign: ["worker_label_exists", "too_many_workers", "overloaded"],
  reply: ["already_answered", "closed", "overloaded"],
  replyByLabel: ["already_answered", "closed", "overloaded", "target_not_found", "not_asking", "newer_question"],
  close: ["target_not_found", "closing", "overloaded"],
} as const;

/** A herd whose every command, question and result is written down in the ledger, before and after. */
export class Client {
  readonly herd: Herd;
  readonly ledger: Ledger;
  readonly #owners = new Map<string, CrashOwner>();
  readonly #running = new Set<string>();
  #messages = 0;

  constructor(herd: Herd, ledger: Ledger) {
    this.herd = herd;
    this.ledger = ledger;
  }

  owner(id: string): CrashOwner {
    let owner = this.#owners.get(id);
    if (owner === undefined) this.#owners.set(id, (owner = this.herd.owner(id, { workspace: workspaceOf(id) })));
    return owner;
  }

  /** A text that no other reply of the campaign has. */
  newMessage(): string {
    return `r${this.ledger.session}.${++this.#messages}`;
  }

  violate(message: string): void {
    this.ledger.write({ fact: "violation", message });
  }

  /** Assigns, or repeats what was assigned before under the same id. Undefined when it was refused. */
  async assign(owner: string, order: Order, task = JSON.stringify(order.work)): Promise<Assignment | undefined> {
    const c = this.ledger.next();
    const { agent, work, id, label, deadlineMs } = order;
    const known = this.ledger.history.works.get(work.name);
    const options = {
      ...(id !== undefined && { id }),
      ...(label !== undefined && { label }),
      ...(deadlineMs !== undefined && { deadlineMs }),
    };
    this.ledger.write({ fact: "assigning", c, owner, name: work.name, agent, task, ...options });
    // What was accepted stays accepted; a task of another text under its id does not.
    const allowed: readonly string[] =
      known === undefined || known.requestId === undefined
        ? REFUSALS.assign
        : known.task === task
          ? ["overloaded"]
          : ["id_reused", "overloaded"];
    try {
      const handle = await this.owner(owner).assign({ agent, task, ...options });
      if (known?.requestId !== undefined && known.task !== task) this.violate(`${id} was taken for another task`);
      this.ledger.write({ fact: "assigned", c, name: work.name, requestId: handle.requestId, label: handle.label });
      return handle;
    } catch (error) {
      this.#refused(c, `assign ${work.name}`, error, allowed);
      return undefined;
    }
  }

  async reply(owner: string, target: { askId: string } | { label: string }, how: Reply): Promise<void> {
    return this.#reply(owner, target, how, () => this.owner(owner).reply({ ...target, ...how }));
  }

  async close(owner: string, name: string, label: string): Promise<void> {
    const c = this.ledger.next();
    this.ledger.write({ fact: "closing", c, owner, name, label });
    try {
      await this.owner(owner).close({ label });
      this.ledger.write({ fact: "closed", c, name });
    } catch (error) {
      this.#refused(c, `close ${label}`, error, REFUSALS.close);
    }
  }

  /** The workers that an owner sees; nobody is listed while too much waits for the disk. */
  async list(owner: string): Promise<Listing["workers"]> {
    try {
      return (await this.owner(owner).list()).workers;
    } catch (error) {
      if (error instanceof HerdError && error.reason === "overloaded") return [];
      throw error;
    }
  }

  /** Looks at where an assignment stands, which takes its result when no receiver does. */
  async look(handle: Assignment): Promise<void> {
    const c = this.ledger.next();
    this.ledger.write({ fact: "reading", c, requestId: handle.requestId });
    const status = await handle.status();
    if (status.result) this.#took(status.result, c);
    else this.ledger.write({ fact: "looked", c });
  }

  /** Waits for the result. */
  async result(handle: Assignment): Promise<void> {
    const c = this.ledger.next();
    this.ledger.write({ fact: "reading", c, requestId: handle.requestId });
    this.#took(await handle.result(), c);
  }

  /** Follows a handle to its end and answers what it is asked. */
  async follow(
    owner: string,
    handle: Assignment,
    how: "next" | "iterate",
    answer: (askId: string) => Promise<void>,
  ): Promise<void> {
    const begin = () => {
      const c = this.ledger.next();
      this.ledger.write({ fact: "reading", c, requestId: handle.requestId });
      return c;
    };
    let c = begin();
    for await (const event of how === "iterate" ? handle : nextOf(handle)) {
      if (event.type === "result") return this.#took(event.result, c);
      const { askId, requestId, deliveryId, attempt } = event.question;
      this.ledger.write({ fact: "looked", c });
      this.ledger.write({ fact: "question", via: "handle", owner, askId, requestId, deliveryId, attempt });
      await answer(askId);
      c = begin();
    }
  }

  /** Makes a receiver the owner's; without `results` it only hears questions, and the other way round. */
  receive(owner: string, behaviour: Behaviour, hears: { questions: boolean; results: boolean }): CrashOwner {
    const options: OwnerOptions = {
      workspace: workspaceOf(owner),
      replace: true,
      ...(hears.questions && {
        onQuestion: ({ askId, requestId, deliveryId, attempt, reply }) =>
          this.#handle(deliveryId, async () => {
            this.ledger.write({ fact: "question", via: "receiver", owner, askId, requestId, deliveryId, attempt });
            await behaviour.question({
              askId,
              reply: ({ message, ...options }) =>
                this.#reply(owner, { askId }, { message, ...options }, () => reply(message, options)),
            });
          }),
      }),
      ...(hears.results && {
        onResult: (result) =>
          this.#handle(result.deliveryId, async () => {
            this.#saw(result, "receiver");
            await behaviour.result(result);
          }),
      }),
    };
    const attached = this.herd.owner(owner, options);
    this.ledger.write({ fact: "attached", owner, results: hears.results });
    this.#owners.set(owner, attached);
    return attached;
  }

  async #handle(deliveryId: string, body: () => Promise<void>): Promise<void> {
    if (this.#running.has(deliveryId)) this.violate(`delivery ${deliveryId} was given while its handler runs`);
    this.#running.add(deliveryId);
    try {
      await body();
      // The engine hears of it first.
      setImmediate(() => this.ledger.write({ fact: "resolved", deliveryId }));
    } finally {
      this.#running.delete(deliveryId);
    }
  }

  /** A handle gave a result: that acknowledges it, and what comes after it in the same tree is on disk no earlier. */
  #took(result: Result, c: number): void {
    const { deliveryId, owner } = result;
    this.#saw(result, "handle", c);
    if (deliveryId === "") return;
    const after = () => this.ledger.write({ fact: "taken", deliveryId });
    // A herd that closes meanwhile writes it too, and says so.
    this.owner(owner.id)
      .list()
      .then(after, () => undefined);
  }

  #saw(result: Result, via: Via, c?: number): void {
    const { deliveryId, attempt } = result;
    const seen = endingOf(result);
    this.ledger.write({ fact: "result", via, ...(c !== undefined && { c }), deliveryId, attempt, ...seen });
  }

  async #reply(
    owner: string,
    target: { askId: string } | { label: string },
    how: Reply,
    call: () => Promise<{ askId: string; requestId: string }>,
  ): Promise<void> {
    const c = this.ledger.next();
    this.ledger.write({ fact: "replying", c, owner, ...target, ...how });
    const askId = "askId" in target ? target.askId : undefined;
    const allowed = askId === undefined ? REFUSALS.replyByLabel : this.#allowedFor(askId, how);
    try {
      const { askId: answered, requestId: receipt } = await call();
      if (askId !== undefined && askId !== answered) this.violate(`a reply to ${askId} answered ${answered}`);
      this.ledger.write({ fact: "replied", c, askId: answered, ...how, receipt });
    } catch (error) {
      this.#refused(c, `reply ${how.message} to ${JSON.stringify(target)}`, error, allowed, askId);
    }
  }

  /** What was accepted decides how every later reply to the same question is met. */
  #allowedFor(askId: string, { message, id }: Reply): readonly string[] {
    const accepted = this.ledger.history.asks.get(askId)?.accepted;
    if (accepted === undefined) return REFUSALS.reply;
    if (id === undefined || id !== accepted.id) return ["already_answered", "overloaded"];
    return message === accepted.message ? ["overloaded"] : ["id_reused", "overloaded"];
  }

  #refused(c: number, what: string, error: unknown, allowed: readonly string[], askId?: string): void {
    if (!(error instanceof HerdError)) throw error;
    const { reason, ids, message } = error;
    const winner = ids?.["replyId"];
    this.ledger.write({
      fact: "refused",
      c,
      reason,
      ...(askId !== undefined && { askId }),
      ...(winner !== undefined && { winner }),
    });
    if (!allowed.includes(reason)) this.violate(`${what} was refused as ${reason}: ${message}`);
  }
}

/** The events of a handle, asked for one by one. */
async function* nextOf(handle: Assignment): AsyncGenerator<OwnerEvent> {
  for (;;) yield await handle.next();
}

export function endingOf({ requestId, status, text, error }: Result): Ending {
  return { requestId, status, text: digest(text), ...(error && { code: error.code }) };
}

/** Whether anybody knows that an assignment is over. */
export const isOver = ({ ending, closed }: Assigned): boolean => ending !== undefined || closed;

/** Answers and acknowledges everything, at once. */
export function obliging(client: Client): Behaviour {
  return {
    question: async ({ reply }) => void (await reply({ message: client.newMessage() })),
    result: async () => {},
  };
}

/** Replies as hands and programs do: once, twice at once, twice under one id, under an id with another text. */
export async function replyVariously(
  random: Random,
  client: Client,
  send: (how: Reply) => Promise<unknown>,
): Promise<void> {
  const message = client.newMessage();
  const id = `id-${message}`;
  switch (random.weighted({ plain: 4, named: 4, race: 1, repeated: 1, twice: 1 })) {
    case "plain":
      await send({ message });
      break;
    case "named":
      await send({ message, id });
      break;
    case "race":
      await Promise.all([send({ message, id }), send({ message: client.newMessage() })]);
      break;
    case "repeated":
      await Promise.all([send({ message, id }), send({ message, id })]);
      break;
    case "twice":
      await send({ message, id });
      await pause(random.between(0, 5));
      await send({ message, id });
      break;
  }
}
