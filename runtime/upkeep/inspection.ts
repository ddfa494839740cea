import { openAsks } from "../../machines/projection.ts";
import type { WorkerContext } from "../../machines/vocabulary.ts";
import { HerdError, messageOf } from "../errors.ts";
import type {
  AskRecord,
  DeliveryRecord,
  LabelRecord,
  OutcomeRecord,
  ParkedRecord,
  RequestRecord,
} from "../kernel/records.ts";
import { FORMAT, unknownFormat } from "../kernel/options.ts";
import { runIdOf, Tree, type ActorRow } from "../kernel/tree.ts";
import { keys, prefixed } from "../store/keys.ts";
import { readSequence } from "../store/sequence.ts";
import type { Row, Store } from "../store/store.ts";

/** Something in a store that cannot be believed. */
export interface Problem {
  /** The key of the row, where it is one row that is wrong. */
  key?: string;
  /** What is wrong, as a sentence. */
  message: string;
}

/** Rows in memory at once. */
const PAGE = 1_000;
/** Problems that are told; a store with more has one cause for all of them. */
const MOST_PROBLEMS = 1_000;

/** Kinds of rows that stand for an accepted task: the part of their key that names it. */
const OF_A_REQUEST = "ujve";
const KNOWN_KINDS = "msaqukjvdownxlietbpchryfgzS";

/** Looks at every row of an open store that nobody writes, and at what rows say of each other. */
export class Inspection {
  rows = 0;
  owners = 0;
  workers = 0;
  readonly problems: Problem[] = [];
  readonly #store: Store;
  readonly #signal: AbortSignal | undefined;

  constructor(store: Store, signal?: AbortSignal) {
    this.#store = store;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    await this.#sequence();
    const format = this.#store.get(keys.meta("format"));
    // Rows of another format would only look broken.
    if (Number(format) !== FORMAT) throw unknownFormat(format ?? "none");
    let tree = { id: "", rows: [] as Row[] };
    for await (const row of this.#pages()) {
      this.rows++;
      const [kind = "", first = ""] = row[0].split("!");
      // Actors stand together, one tree after another.
      if (tree.id !== "" && (kind !== "a" || first !== tree.id)) {
        this.#tree(tree.id, tree.rows);
        tree = { id: "", rows: [] };
      }
      if (kind !== "a") this.#row(kind, first, row);
      else {
        tree.id = first;
        tree.rows.push(row);
      }
    }
    if (tree.id !== "") this.#tree(tree.id, tree.rows);
  }

  async #sequence(): Promise<void> {
    try {
      await readSequence(this.#store);
    } catch (error) {
      if (!(error instanceof HerdError)) throw error;
      const { missing, last } = error.details as { missing: number; last: number };
      this.#say(`Batch ${missing} of ${last} is missing: what it wrote is lost.`);
    }
  }

  /** One owner with its workers: each must come to life, and have what its state says. */
  #tree(id: string, rows: Row[]): void {
    this.owners++;
    const tree = new Tree(id, { id: "" }, rows, () => undefined);
    for (const { path, label, diagnostic } of tree.unknown) {
      if (path !== "") this.workers++;
      const who = path === "" ? "The owner's own record" : `The worker ${label ?? runIdOf(path)}`;
      this.#say(`${who} cannot be read: ${diagnostic}.`, keys.actor(id, path));
    }
    for (const { path, context } of [...tree.workers(), ...tree.resting.values()]) {
      this.workers++;
      this.#worker(keys.actor(id, path), context);
    }
    tree.root.stop();
  }

  #worker(key: string, { runId, label, workspace, assignment, ask }: WorkerContext): void {
    const holder = this.#read<LabelRecord>(keys.label(workspace, label))?.runId;
    if (holder !== runId) this.#say(`The label ${label} belongs to ${holder ?? "nobody"}, not to its worker.`, key);
    if (assignment && !this.#has(keys.request(assignment.requestId))) {
      const launching = this.#read<{ pending?: unknown }>(keys.launch(runId))?.pending !== undefined;
      if (!launching) this.#say(`The worker ${label} works on ${assignment.requestId}, which is not stored.`, key);
    }
    for (const askId of openAsks(ask)) {
      if (isOpen(this.#read<AskRecord>(keys.ask(askId)))) continue;
      this.#say(`The worker ${label} waits for an answer to ${askId}, which is not open.`, key);
    }
  }

  #row(kind: string, first: string, [key, text]: Row): void {
    if (!KNOWN_KINDS.includes(kind) || kind === "") return this.#say("This version knows no rows of this kind.", key);
    if (kind === "m" || kind === "s") return;
    let record: unknown;
    try {
      record = JSON.parse(text);
    } catch (error) {
      return this.#say(`The row cannot be read: ${messageOf(error)}.`, key);
    }
    if (OF_A_REQUEST.includes(kind) && !this.#has(keys.request(first))) {
      return this.#say(`The row belongs to assignment ${first}, which is not stored.`, key);
    }
    if (kind === "q") this.#request(key, record as RequestRecord);
    if (kind === "k") this.#ask(key, record as AskRecord);
    if (kind === "d") this.#delivery(key, record as DeliveryRecord);
    if (kind === "l") this.#label(key, record as LabelRecord);
    if (kind === "p") this.#parked(key, record as ParkedRecord);
    if (kind === "h" && !isOpen(this.#read<AskRecord>(keys.ask(first)))) {
      this.#say(`The question ${first} waits for a person, and it is not open.`, key);
    }
    if (kind === "r" && !this.#has(keys.actor(key.split("!")[2] ?? "", ""))) {
      this.#say("It names a run that a visit started, of which nothing is left.", key);
    }
  }

  /** What a list shows of an assignment that has not ended. */
  #parked(key: string, { askIds }: ParkedRecord): void {
    const [, , requestId = ""] = key.split("!");
    const ended = this.#has(keys.outcome(requestId)) || !this.#has(keys.request(requestId));
    if (ended) this.#say(`The list shows questions of ${requestId}, which has ended.`, key);
    for (const askId of askIds) {
      if (!this.#has(keys.ask(askId))) this.#say(`The list shows the question ${askId}, which is not stored.`, key);
    }
  }

  /** Whatever has not ended has a worker. */
  #request(key: string, { requestId, tree, path }: RequestRecord): void {
    if (this.#has(keys.outcome(requestId)) || this.#has(keys.actor(tree, path))) return;
    this.#say(`The assignment ${requestId} has neither a worker nor a result.`, key);
  }

  #ask(key: string, ask: AskRecord): void {
    const request = this.#read<RequestRecord>(keys.request(ask.requestId));
    if (request === undefined) return this.#say(`Its assignment ${ask.requestId} is not stored.`, key);
    if (!isOpen(ask)) return;
    const actor = this.#read<ActorRow>(keys.actor(request.tree, request.path));
    const asks = (actor?.context as WorkerContext | undefined)?.ask ?? null;
    if (!openAsks(asks).includes(ask.askId))
      this.#say(`The question is open, and its worker does not wait for an answer to it.`, key);
  }

  /** What is on its way is something that is open. */
  #delivery(key: string, { kind, requestId, askId = "" }: DeliveryRecord): void {
    if (kind === "result") {
      if (this.#read<OutcomeRecord>(keys.outcome(requestId)) === undefined) {
        this.#say(`A result of ${requestId} is on its way, which has none.`, key);
      }
    } else if (!isOpen(this.#read<AskRecord>(keys.ask(askId)))) {
      this.#say(`The question ${askId} is on its way, and it is not open.`, key);
    }
  }

  #label(key: string, { tree, path, runId }: LabelRecord): void {
    if (!this.#has(keys.actor(tree, path))) this.#say(`The label belongs to run ${runId}, which has no worker.`, key);
  }

  #has(key: string): boolean {
    return this.#store.get(key) !== undefined;
  }

  /** A row that cannot be read is told where it stands. */
  #read<T>(key: string): T | undefined {
    try {
      return JSON.parse(this.#store.get(key) ?? "null") ?? undefined;
    } catch {
      return undefined;
    }
  }

  #say(message: string, key?: string): void {
    if (this.problems.length >= MOST_PROBLEMS) return;
    this.problems.push({ message, ...(key !== undefined && { key }) });
  }

  async *#pages(): AsyncGenerator<Row> {
    const { lt } = prefixed("");
    for (let gte = ""; ;) {
      this.#signal?.throwIfAborted();
      const page = await this.#store.range({ gte, lt, limit: PAGE });
      yield* page;
      if (page.length < PAGE) return;
      gte = `${page.at(-1)?.[0]}\u0000`;
    }
  }
}

function isOpen(ask: AskRecord | undefined): boolean {
  return ask !== undefined && !ask.answer && !ask.abandoned;
}
