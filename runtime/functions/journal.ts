import type { Json } from "../../machines/vocabulary.ts";
import type { AskRecord, OutcomeRecord } from "../kernel/records.ts";

/**
 * What a run did and got, by name and occurrence: `load#1`, `load#2`; without a name `ask#1`, `assign:counter#1`.
 * There is no global order, so branches may finish in any order and new code may add, remove or move calls.
 */
export type Entry = StepEntry | AssignEntry | AskEntry;

export interface StepEntry {
  kind: "step";
  /** Absent when the step returned nothing. */
  value?: Json;
}

export interface AssignEntry {
  kind: "assign";
  agent: string;
  task: string;
  requestId: string;
  runId: string;
  /** The child's end, once the parent has read it. */
  outcome?: OutcomeRecord;
}

export interface AskEntry {
  kind: "ask";
  ask: AskRecord;
}

/** What a call wants to be: its kind, its name if it has one, and what an unnamed one is told apart by. */
export interface Wanted {
  kind: Entry["kind"];
  name: string | undefined;
  /** The name of unnamed ones, before the number. */
  base: string;
  agent?: string;
  text?: string;
  /** Of a question: who is asked. */
  asks?: Asked;
}

/** Who a question is put to: the direct owner, the caller or a person. */
export type Asked = "owner" | "caller" | "user";

export type Claim =
  | { type: "recorded"; key: string; entry: Entry }
  | { type: "new"; key: string }
  /** Something else is recorded here. `certain` unless a parallel branch may still come for it. */
  | { type: "mismatch"; key: string; entry: Entry; certain: boolean };

export class Journal {
  readonly #entries = new Map<string, Entry>();
  readonly #claimed = new Set<string>();
  readonly #occurrences = new Map<string, number>();

  get size(): number {
    return this.#entries.size;
  }

  /** The entry under a key, also one that no call has claimed yet. */
  get(key: string): Entry | undefined {
    return this.#entries.get(key);
  }

  set(key: string, entry: Entry): void {
    this.#entries.set(key, entry);
  }

  *entries(): Generator<[string, Entry]> {
    yield* this.#entries;
  }

  /** Finds what a call did in an earlier execution, or the key under which it will be recorded. */
  claim(wanted: Wanted): Claim {
    const { name, kind } = wanted;
    if (name !== undefined) {
      const number = (this.#occurrences.get(name) ?? 0) + 1;
      this.#occurrences.set(name, number);
      const key = `${name}#${number}`;
      const entry = this.#entries.get(key);
      if (entry === undefined) return this.#claimNew(key);
      const fits = entry.kind === kind && isSame(entry, wanted);
      return fits ? this.#claimRecorded(key, entry) : { type: "mismatch", key, entry, certain: true };
    }
    return this.#claimUnnamed(wanted);
  }

  /** Unnamed calls are told apart by their text, so parallel branches may come in any order. */
  #claimUnnamed(wanted: Wanted): Claim {
    const { base, kind, text } = wanted;
    let other: { key: string; entry: Entry } | undefined;
    let number = 1;
    for (; ; number++) {
      const key = `${base}#${number}`;
      const entry = this.#entries.get(key);
      if (entry === undefined && !this.#claimed.has(key)) break;
      if (entry === undefined || this.#claimed.has(key)) continue;
      if (entry.kind === kind && textOf(entry) === text && isSame(entry, wanted)) {
        return this.#claimRecorded(key, entry);
      }
      other ??= { key, entry };
    }
    if (other) return { type: "mismatch", ...other, certain: false };
    return this.#claimNew(`${base}#${number}`);
  }

  #claimRecorded(key: string, entry: Entry): Claim {
    this.#claimed.add(key);
    return { type: "recorded", key, entry };
  }

  #claimNew(key: string): Claim {
    this.#claimed.add(key);
    return { type: "new", key };
  }
}

/** A child of the same agent, a question to the same side. */
function isSame(entry: Entry, { agent, asks }: Wanted): boolean {
  if (entry.kind === "assign") return entry.agent === agent;
  return entry.kind !== "ask" || askedOf(entry) === asks;
}

function askedOf({ ask }: AskEntry): Asked {
  return ask.parked?.to ?? "owner";
}

const WHOM: Record<Asked, string> = { owner: "", caller: " to its caller", user: " to a person" };

function textOf(entry: Entry): string | undefined {
  if (entry.kind === "ask") return entry.ask.question;
  return entry.kind === "assign" ? entry.task : undefined;
}

/** What stands recorded and what the code asks for now, for the person who has to decide. */
export function describeMismatch({ key, entry }: { key: string; entry: Entry }, wanted: Wanted): string {
  const now =
    wanted.kind === "step"
      ? `a step named ${JSON.stringify(wanted.name)}`
      : wanted.kind === "ask"
        ? `the question ${JSON.stringify(wanted.text)}${WHOM[wanted.asks ?? "owner"]}`
        : `the task ${JSON.stringify(wanted.text)} for agent "${wanted.agent}"`;
  const then =
    entry.kind === "step"
      ? "a step"
      : entry.kind === "ask"
        ? `the question ${JSON.stringify(entry.ask.question)}${WHOM[askedOf(entry)]}`
        : `the task ${JSON.stringify(entry.task)} for agent "${entry.agent}"`;
  return (
    `The journal has ${then} under "${key}", this program comes with ${now}. Next: run a program that asks for what ` +
    `is recorded, give the call a name of its own, or close the worker.`
  );
}
