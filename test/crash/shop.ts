import { HerdError, type Herd, type ParkedEntry, type VisitOutcome } from "../../runtime/index.ts";
import { digest, type Told, type Visit } from "./facts.ts";
import type { Ledger } from "./ledger.ts";

/** The subjects of the load, by their order. Two and two share a customer, who sees what either has parked. */
export const ORDERS = ["0", "1", "2", "3"] as const;
export type OrderKey = (typeof ORDERS)[number];

const customerOf = (order: OrderKey) => `c${Math.floor(Number(order) / 2)}`;
export const subjectOf = (order: OrderKey) => ({ scope: "shop", keys: { order, customer: customerOf(order) } });

/** Refusals that may meet a visit whatever the engine did before. */
const REFUSALS = [
  "entry_gone",
  "being_delivered",
  "overloaded",
  "visit_request cancel_resume_overlap",
  "visit_request finished_payload",
];

/** Visits subjects, and writes every visit into the ledger, before and after. */
export class Shop {
  readonly #herd: Herd;
  readonly #ledger: Ledger;
  #numbers = 0;

  constructor(herd: Herd, ledger: Ledger) {
    this.#herd = herd;
    this.#ledger = ledger;
  }

  /** An id, or a payload, that nothing else of the campaign has. */
  newName(kind: string): string {
    return `${kind}${this.#ledger.session}.${++this.#numbers}`;
  }

  /** What is parked; nothing is listed while too much waits for the disk. */
  async parked(order: OrderKey): Promise<ParkedEntry[]> {
    try {
      return await this.#herd.parked(subjectOf(order));
    } catch (error) {
      if (error instanceof HerdError && error.reason === "overloaded") return [];
      throw error;
    }
  }

  /** How many workers run on a subject. */
  async workers(order: OrderKey): Promise<number> {
    return (await this.#herd.owner(subjectOf(order)).list()).workers.length;
  }

  /** Answers an ask, or takes an outcome; what runs is left alone. */
  async resolve(order: OrderKey, { id, status }: ParkedEntry): Promise<void> {
    const visit = { id: this.newName("v"), order, receives: true, waits: false };
    if (status === "asking") await this.visit({ ...visit, resume: [{ id, payload: this.newName("p") }] });
    else if (status !== "running") await this.visit({ ...visit, take: id });
  }

  /** Makes a visit, or one of before again. */
  async visit(visit: Visit): Promise<void> {
    const { id, order, cancel, resume, take, start, receives, waits } = visit;
    const c = this.#ledger.next();
    this.#ledger.write({ fact: "visiting", c, visit });
    try {
      const outcome = await this.#herd.visit({
        subject: subjectOf(order),
        id,
        ...(cancel && { cancel }),
        ...(resume && { resume }),
        ...(take !== undefined && { take }),
        ...(start && { start: { agent: start.agent, task: start.task } }),
        receivesOutcome: receives,
        waits,
      });
      this.#ledger.write({ fact: "visited", c, told: toldOf(outcome) });
    } catch (error) {
      if (!(error instanceof HerdError)) throw error;
      this.#failed(c, visit, error);
    }
  }

  /** A run that failed is what the visit came to; anything else is a refusal. */
  #failed(c: number, visit: Visit, { reason, rule, message }: HerdError): void {
    const known = this.#ledger.history.visits.visits.get(visit.id)?.told;
    const refusal = rule === undefined ? reason : `${reason} ${rule}`;
    if (reason === "run_failed") this.#ledger.write({ fact: "visit.failed", c, text: message });
    else this.#ledger.write({ fact: "visit.refused", c, reason });
    if (reason === "run_failed" || REFUSALS.includes(refusal)) return;
    const what = `visit ${JSON.stringify(visit)}${known ? ", which was made," : ""} was refused as ${refusal}: ${message}`;
    this.#ledger.write({ fact: "violation", message: what });
  }
}

function toldOf({ action, kind, cancelled, requestId, result }: VisitOutcome): Told {
  return {
    action,
    cancelled,
    ...(requestId !== undefined && { requestId }),
    ...(kind === "result" && { ended: { status: "completed", text: digest(String(result)) } }),
  };
}
