import type { Visit, Told, Line } from "./facts.ts";

/** A visit as the processes that wrote the ledger know it. */
export interface Visited extends Visit {
  /** What it did, once somebody lived to write that down. */
  told?: Told;
  /** A process that made it, or made it again, was killed before it knew what came of it. */
  unheard: boolean;
  /** It brought a result or a failure to whoever made it. */
  received?: { status: "completed" | "failed"; text: string };
  /** The process that was told so first. */
  receivedIn?: number;
}

/** The part of a ledger that is about subjects: every visit by its id, and what contradicts itself at once. */
export class VisitHistory {
  readonly visits = new Map<string, Visited>();
  /** Runs that a visit was to start, by the name of their work. */
  readonly started = new Map<string, Visited>();
  /** Which visit's answer to an ask was accepted. */
  readonly accepted = new Map<string, { visit: string; payload: string }>();
  readonly violations: string[];
  #pending = new Map<number, Visited>();

  /** @param violations where contradictions go. */
  constructor(violations: string[]) {
    this.violations = violations;
  }

  add(line: Extract<Line, { fact: "visiting" | "visited" | "visit.failed" | "visit.refused" }>): void {
    if (line.fact === "visiting") return this.#visiting(line);
    const visited = this.#pending.get(line.c);
    this.#pending.delete(line.c);
    if (visited === undefined) this.violations.push(`visit ${line.c} ended and never began`);
    else if (line.fact === "visited") this.#visited(visited, line.told, line.s);
    else if (line.fact === "visit.failed") this.#received(visited, { status: "failed", text: line.text }, line.s);
    else this.#refused(visited, line.reason, line.s);
  }

  /** The process was killed: what it was about to hear may have happened. */
  endSession(): void {
    for (const visited of this.#pending.values()) visited.unheard = true;
    this.#pending = new Map();
  }

  /** The visits whose end no process of before has heard of. */
  unheard(): Visited[] {
    return [...this.visits.values()].filter(({ unheard, told, received }) => unheard && !told && !received);
  }

  #visiting({ c, visit }: Extract<Line, { fact: "visiting" }>): void {
    const visited = this.visits.get(visit.id) ?? { ...visit, unheard: false };
    this.visits.set(visit.id, visited);
    if (visit.start) this.started.set(visit.start.name, visited);
    this.#pending.set(c, visited);
  }

  #visited(visited: Visited, told: Told, session: number): void {
    const { id } = visited;
    const { ended, ...did } = told;
    const before = visited.told;
    if (before && JSON.stringify(before) !== JSON.stringify(did)) {
      const both = `${JSON.stringify(before)}, then in process ${session} ${JSON.stringify(did)}`;
      this.violations.push(`the same visit ${id} did two things: ${both}`);
    }
    visited.told = did;
    this.#accept(visited);
    if (ended) this.#received(visited, ended, session);
  }

  #accept({ id, resume = [] }: Visited): void {
    for (const { id: ask, payload } of resume) {
      const first = this.accepted.get(ask);
      if (first && first.visit !== id) {
        this.violations.push(`two answers to ${ask} were accepted: of visit ${first.visit}, then of ${id}`);
      }
      this.accepted.set(ask, { visit: id, payload });
    }
  }

  #received(visited: Visited, ended: NonNullable<Visited["received"]>, session: number): void {
    const { id, received } = visited;
    if (received && JSON.stringify(received) !== JSON.stringify(ended)) {
      this.violations.push(`visit ${id} came to ${received.text}, then in process ${session} to ${ended.text}`);
    }
    visited.received = ended;
    visited.receivedIn ??= session;
    // A run that failed was resumed before.
    this.#accept(visited);
  }

  #refused({ id, told, received }: Visited, reason: string, session: number): void {
    if ((told || received) && reason !== "overloaded") {
      this.violations.push(`visit ${id} was made, and refused in process ${session} as ${reason}`);
    }
  }
}
