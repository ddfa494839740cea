import type { Ending, Fact, Line } from "./facts.ts";
import { VisitHistory } from "./visit-history.ts";
import type { Order, Work } from "./work.ts";

/** An assignment as the processes that wrote the ledger know it. */
export interface Assigned extends Order {
  owner: string;
  task: string;
  /** Known once it was accepted and somebody lived to write it down. */
  requestId?: string;
  acceptedLabel?: string;
  /** Somebody began to close it, and was told that it is closed. */
  closing: boolean;
  closed: boolean;
  /** How it ended, once anybody saw it. */
  ending?: Ending;
}

/** A question as owners know it. */
export interface Asked {
  askId: string;
  owner?: string;
  /** The reply that was accepted, if anybody lived to write it down. */
  accepted?: { message: string; id?: string };
  /** A handler of its owner's receiver was called with it. */
  handed: boolean;
}

/** A question or a result that was handed out. */
export interface Handed {
  /** To a receiver's handler. */
  times: number;
  /** The last process whose handler resolved it. */
  resolvedIn?: number;
  /** Acknowledged, and that is certainly on disk. */
  certain: boolean;
}

export interface Step {
  effects: { session: number; value: string }[];
  journalled?: string;
}

export type Attempt = Extract<Fact, { fact: "replying" }> & { session: number };

/**
 * The sum of a ledger. Lines that contradict earlier ones, whatever the store holds, become violations at once:
 * something given again after it was acknowledged, a second accepted reply, an effect after its journal entry.
 */
export class History {
  readonly violations: string[] = [];
  readonly works = new Map<string, Assigned>();
  readonly visits = new VisitHistory(this.violations);
  readonly byRequest = new Map<string, Assigned>();
  readonly asks = new Map<string, Asked>();
  /** Replies by their text, which is never used twice but under the same id. */
  readonly attempts = new Map<string, Attempt>();
  readonly deliveries = new Map<string, Handed>();
  readonly endings = new Map<string, Ending>();
  readonly steps = new Map<string, Step>();
  /** Requests whose result a killed process may have got from a handle without living to write it down. */
  readonly maybeTaken = new Set<string>();
  /** The same by owner, in order. */
  readonly owners = new Map<string, { works: Assigned[]; attempts: Attempt[]; answered: Asked[] }>();
  readonly counts = { assigned: 0, replied: 0, closed: 0, results: 0, acknowledged: 0, steps: 0 };
  session = 0;
  /** Handlers that resolved in this session, and how many had when each command began. */
  #resolved: string[] = [];
  #certainUpTo = 0;
  #begun = new Map<number, { resolved: number; line: Line }>();
  /** Handles that somebody looks at, by command; owners whose receiver takes results. */
  #reading = new Map<number, string>();
  readonly #attached = new Set<string>();

  add(line: Line): void {
    switch (line.fact) {
      case "session":
        this.#endSession();
        this.session = line.s;
        break;
      case "session.closed":
        this.#acknowledgeUpTo(this.#resolved.length);
        this.#reading.clear();
        break;
      case "assigning":
        this.#begin(line);
        this.#assigning(line);
        break;
      case "replying":
        this.#begin(line);
        this.attempts.set(line.message, { ...line, session: line.s });
        this.of(line.owner).attempts.push({ ...line, session: line.s });
        break;
      case "closing": {
        this.#begin(line);
        const work = this.works.get(line.name);
        if (work) work.closing = true;
        break;
      }
      case "assigned":
        this.#end(line.c);
        this.#assigned(line);
        break;
      case "replied":
        this.#end(line.c);
        this.#replied(line);
        break;
      case "closed": {
        this.#end(line.c);
        this.counts.closed++;
        const work = this.works.get(line.name);
        if (work) work.closed = true;
        break;
      }
      case "refused":
        this.#refused(line);
        // Every refusal waits for what was queued before it, but one for which there was no room in the queue.
        if (line.reason === "overloaded") this.#begun.delete(line.c);
        else this.#end(line.c);
        break;
      case "attached":
        if (line.results) this.#attached.add(line.owner);
        else this.#attached.delete(line.owner);
        break;
      case "reading":
        this.#reading.set(line.c, line.requestId);
        break;
      case "looked":
        this.#reading.delete(line.c);
        break;
      case "question":
        this.#question(line);
        break;
      case "result":
        this.#result(line);
        break;
      case "resolved": {
        this.#resolved.push(line.deliveryId);
        this.#delivery(line.deliveryId).resolvedIn = line.s;
        break;
      }
      case "taken":
        this.#acknowledge(line.deliveryId);
        break;
      case "effect":
        this.#effect(line);
        break;
      case "journalled":
        this.#journalled(line);
        break;
      case "visiting":
      case "visited":
      case "visit.failed":
      case "visit.refused":
        this.visits.add(line);
        break;
      case "violation":
        this.violations.push(line.message);
        break;
    }
  }

  of(owner: string): { works: Assigned[]; attempts: Attempt[]; answered: Asked[] } {
    let all = this.owners.get(owner);
    if (all === undefined) this.owners.set(owner, (all = { works: [], attempts: [], answered: [] }));
    return all;
  }

  ask(askId: string): Asked {
    let ask = this.asks.get(askId);
    if (ask === undefined) this.asks.set(askId, (ask = { askId, handed: false }));
    return ask;
  }

  step(name: string, at: string): Step {
    const key = `${name}#${at}`;
    let step = this.steps.get(key);
    if (step === undefined) this.steps.set(key, (step = { effects: [] }));
    return step;
  }

  /** The process before was killed: beside no receiver, what it was reading may be acknowledged. */
  #endSession(): void {
    for (const requestId of this.#reading.values()) {
      if (!this.#attached.has(this.byRequest.get(requestId)?.owner ?? "")) this.maybeTaken.add(requestId);
    }
    this.visits.endSession();
    this.#attached.clear();
    this.#resolved = [];
    this.#certainUpTo = 0;
    this.#begun = new Map();
    this.#reading = new Map();
  }

  #begin(line: Line & { c: number }): void {
    this.#begun.set(line.c, { resolved: this.#resolved.length, line });
  }

  /** A command is on disk or refused, so what was acknowledged before it began is on disk too. */
  #end(c: number): void {
    const begun = this.#begun.get(c);
    this.#begun.delete(c);
    if (begun) this.#acknowledgeUpTo(begun.resolved);
  }

  #acknowledgeUpTo(end: number): void {
    for (; this.#certainUpTo < end; this.#certainUpTo++) {
      this.#acknowledge(this.#resolved[this.#certainUpTo] as string);
    }
  }

  #acknowledge(deliveryId: string): void {
    const delivery = this.#delivery(deliveryId);
    if (!delivery.certain) this.counts.acknowledged++;
    delivery.certain = true;
  }

  #delivery(deliveryId: string): Handed {
    let delivery = this.deliveries.get(deliveryId);
    if (delivery === undefined) this.deliveries.set(deliveryId, (delivery = { times: 0, certain: false }));
    return delivery;
  }

  #assigning({ owner, name, agent, task, id, label, deadlineMs }: Extract<Fact, { fact: "assigning" }>): void {
    if (this.works.has(name)) return;
    const work: Assigned = {
      owner,
      task,
      agent: agent as Order["agent"],
      work: JSON.parse(task) as Work,
      closing: false,
      closed: false,
      ...(id !== undefined && { id }),
      ...(label !== undefined && { label }),
      ...(deadlineMs !== undefined && { deadlineMs }),
    };
    this.works.set(name, work);
    this.of(owner).works.push(work);
  }

  #assigned({ name, requestId, label }: Extract<Fact, { fact: "assigned" }>): void {
    const work = this.works.get(name);
    if (work === undefined) return this.#violate(`${name} was accepted and never assigned`);
    if (work.requestId === undefined) this.counts.assigned++;
    else if (work.requestId !== requestId || work.acceptedLabel !== label) {
      const both = `${work.requestId} as ${work.acceptedLabel}, then ${requestId} as ${label}`;
      this.#violate(`assignment ${name} was accepted twice: ${both}`);
    }
    work.requestId = requestId;
    work.acceptedLabel = label;
    this.byRequest.set(requestId, work);
  }

  #replied({ askId, message, id, s }: Extract<Line, { fact: "replied" }>): void {
    const ask = this.ask(askId);
    const attempt = this.attempts.get(message);
    if (attempt) ask.owner = attempt.owner;
    const { accepted } = ask;
    if (accepted === undefined) {
      this.counts.replied++;
      ask.accepted = { message, ...(id !== undefined && { id }) };
      if (ask.owner !== undefined) this.of(ask.owner).answered.push(ask);
    } else if (accepted.message !== message || accepted.id !== id || id === undefined) {
      const second = `${accepted.message} and then, in process ${s}, ${message}`;
      this.#violate(`two replies to ${askId} were accepted: ${second}`);
    }
  }

  #refused({ c, reason, askId, winner }: Extract<Fact, { fact: "refused" }>): void {
    const begun = this.#begun.get(c)?.line;
    if (reason !== "already_answered" || begun?.fact !== "replying" || askId === undefined) return;
    const accepted = this.asks.get(askId)?.accepted;
    if (accepted && accepted.id !== winner) {
      const told = `names ${winner ?? "no reply"}, the accepted one is ${accepted.id ?? "without an id"}`;
      this.#violate(`already_answered for ${askId} ${told}`);
    }
    if (accepted?.id !== undefined && accepted.id === begun.id && accepted.message === begun.message) {
      this.#violate(`the same reply ${begun.id} to ${askId} was accepted and then refused`);
    }
  }

  #question({ via, askId, deliveryId, attempt, s }: Extract<Line, { fact: "question" }>): void {
    const ask = this.ask(askId);
    if (via !== "receiver") return;
    ask.handed = true;
    if (ask.accepted) this.#violate(`question ${askId} was given in process ${s} although its reply was accepted`);
    this.#hand(deliveryId, attempt, `question ${askId}`, s);
  }

  #result(line: Extract<Line, { fact: "result" }>): void {
    const { via, c, deliveryId, attempt, requestId, status, text, code, s } = line;
    if (c !== undefined) this.#reading.delete(c);
    const ending: Ending = { requestId, status, text, ...(code !== undefined && { code }) };
    const before = this.endings.get(requestId);
    if (before === undefined) this.counts.results++;
    else if (JSON.stringify(before) !== JSON.stringify(ending)) {
      const both = `${JSON.stringify(before)}, then ${JSON.stringify(ending)}`;
      this.#violate(`assignment ${requestId} ended twice: ${both}`);
    }
    this.endings.set(requestId, ending);
    const work = this.byRequest.get(requestId);
    if (work) work.ending = ending;
    if (via !== "receiver") return;
    if (status === "closed") this.#violate(`the receiver was given the closed assignment ${requestId}`);
    this.#hand(deliveryId, attempt, `result of ${requestId}`, s);
  }

  #hand(deliveryId: string, attempt: number, what: string, session: number): void {
    const delivery = this.#delivery(deliveryId);
    if (delivery.certain || delivery.resolvedIn === session) {
      this.#violate(`the acknowledged ${what} (delivery ${deliveryId}) was given again in process ${session}`);
    }
    if (delivery.times > 0 && attempt === 1) {
      this.#violate(`the ${what} (delivery ${deliveryId}) was given again in process ${session} as attempt 1`);
    }
    delivery.times++;
  }

  #effect({ name, at, value, s }: Extract<Line, { fact: "effect" }>): void {
    const step = this.step(name, at);
    if (step.journalled !== undefined) {
      this.#violate(`step ${at} of ${name} ran again in process ${s} after it was journalled as ${step.journalled}`);
    }
    if (step.effects.some(({ session }) => session === s)) {
      this.#violate(`step ${at} of ${name} ran twice in process ${s}, which did not end in between`);
    }
    step.effects.push({ session: s, value });
  }

  #journalled({ name, at, value, s }: Extract<Line, { fact: "journalled" }>): void {
    const step = this.step(name, at);
    if (step.journalled === undefined) this.counts.steps++;
    const known = step.journalled ?? step.effects.at(-1)?.value;
    if (known !== value) {
      this.#violate(`step ${at} of ${name} gave ${value} in process ${s}, it was journalled as ${known ?? "nothing"}`);
    }
    step.journalled = value;
  }

  #violate(message: string): void {
    this.violations.push(message);
  }
}
