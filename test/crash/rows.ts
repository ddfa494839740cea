import type { Row } from "../../runtime/index.ts";
import type {
  AskRecord,
  CallerIdRecord,
  DeliveryRecord,
  LabelRecord,
  OrderRecord,
  OutcomeRecord,
  ParkedRecord,
  RequestRecord,
} from "../../runtime/kernel/records.ts";
import type { ActorRow } from "../../runtime/kernel/tree.ts";
import type { Entry } from "../../runtime/functions/journal.ts";
import { statePath } from "../../machines/projection.ts";
import type { WorkerContext } from "../../machines/vocabulary.ts";
import type { Work } from "./work.ts";

/** A request with what it is asked to do. */
export interface Accepted extends RequestRecord {
  work: Work;
}

export interface StoredWorker {
  tree: string;
  path: string;
  state: string;
  context: WorkerContext;
}

/** A store's rows by kind. Their keys are described in `runtime/store/keys.ts`. */
export class Rows {
  readonly requests = new Map<string, Accepted>();
  readonly outcomes = new Map<string, OutcomeRecord>();
  readonly asks = new Map<string, AskRecord>();
  /** By request, then by name. */
  readonly journals = new Map<string, Map<string, Entry>>();
  readonly deliveries = new Map<string, DeliveryRecord>();
  readonly orders: OrderRecord[] = [];
  readonly labels = new Map<string, LabelRecord>();
  /** The session that each assignment belongs to. */
  readonly sessions = new Map<string, string>();
  /** Launches and leases, each with the run that it stands for. */
  readonly claims = new Map<string, string>();
  readonly callerIds = new Map<string, CallerIdRecord>();
  /** By run id. */
  readonly workers = new Map<string, StoredWorker>();
  /** Requests with a clock, and requests with a time at which it strikes. */
  readonly deadlines = new Set<string>();
  readonly due = new Set<string>();
  /** Asks with a time at which they expire, and what counts under the cap of programs. */
  readonly expiries = new Set<string>();
  readonly counted = new Set<string>();
  /** Trees of runs that visits started. */
  readonly visited = new Set<string>();
  /** The questions that an owner's list shows, by assignment. */
  readonly parked = new Map<string, string[]>();

  constructor(rows: readonly Row[]) {
    for (const [key, text] of rows) {
      const [kind, first = "", second = "", third = ""] = key.split("!");
      if (kind === "m" || kind === "s") continue;
      const record: unknown = JSON.parse(text);
      if (kind === "q") this.requests.set(first, withWork(record as RequestRecord));
      else if (kind === "u") this.outcomes.set(first, record as OutcomeRecord);
      else if (kind === "k") this.asks.set(first, record as AskRecord);
      else if (kind === "j") this.#journal(first).set(second, record as Entry);
      else if (kind === "d") this.deliveries.set(second, record as DeliveryRecord);
      else if (kind === "o") this.orders.push(record as OrderRecord);
      else if (kind === "l") this.labels.set(key, record as LabelRecord);
      else if (kind === "n") this.sessions.set((record as { requestId: string }).requestId, first);
      else if (kind === "w") this.claims.set(key, first);
      else if (kind === "x") this.claims.set(key, (record as LabelRecord).runId);
      else if (kind === "i") this.callerIds.set(key, record as CallerIdRecord);
      else if (kind === "e") this.deadlines.add(first);
      else if (kind === "t" && second === "deadline") this.due.add(third);
      else if (kind === "t" && second === "expiry") this.expiries.add(third);
      else if (kind === "c") this.counted.add(second);
      else if (kind === "r") this.visited.add(second);
      else if (kind === "a" && second !== "") this.#worker(first, second, record as ActorRow);
      else if (kind === "p") this.parked.set(second, (record as ParkedRecord).askIds);
      else if (kind !== "a" && kind !== "t" && kind !== "b")
        throw new Error(`nobody told the auditor of rows like ${key}`);
    }
  }

  journal(requestId: string): ReadonlyMap<string, Entry> {
    return this.journals.get(requestId) ?? new Map();
  }

  /** The questions of an assignment by their text. */
  asksOf(requestId: string): Map<string, AskRecord> {
    const own = new Map<string, AskRecord>();
    for (let number = 1; ; number++) {
      const ask = this.asks.get(`${requestId}.${String(number).padStart(4, "0")}`);
      if (ask === undefined) return own;
      own.set(ask.question, ask);
    }
  }

  /** The request that a run works on, also after its end. */
  requestOfRun(runId: string): Accepted | undefined {
    this.#byRun ??= new Map([...this.requests.values()].map((request) => [request.runId, request]));
    return this.#byRun.get(runId);
  }

  /** The outermost of the runs that wait for a request's run. */
  topOf(request: Accepted): Accepted {
    const parent = request.parentRunId === undefined ? undefined : this.requestOfRun(request.parentRunId);
    return parent === undefined ? request : this.topOf(parent);
  }

  #byRun: Map<string, Accepted> | undefined;

  #journal(requestId: string): Map<string, Entry> {
    let journal = this.journals.get(requestId);
    if (journal === undefined) this.journals.set(requestId, (journal = new Map()));
    return journal;
  }

  #worker(tree: string, path: string, row: ActorRow): void {
    const context = row.context as WorkerContext;
    this.workers.set(context.runId, { tree, path, state: statePath(row.value as never), context });
  }
}

function withWork(record: RequestRecord): Accepted {
  return { ...record, work: JSON.parse(record.task) as Work };
}
