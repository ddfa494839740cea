/**
 * The auditing process: takes a store that another process was killed on, holds it against the ledger, row by row
 * and then through the API, and tells in one line of JSON what it found.
 *
 *     node test/crash/audit.ts DIRECTORY SESSION SEED [drain]
 *
 * With `drain` it answers and acknowledges everything, so that all work has to end and nothing may be left. Without
 * it, it ends in order or by SIGKILL, as the seed says.
 */
import { writeSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { HerdError, levelStore, verifyStore, type Row } from "../../runtime/index.ts";
import { ownerKeyOf } from "../../runtime/owners.ts";
import { checkRows } from "./checks.ts";
import { Client, obliging, OWNERS } from "./client.ts";
import { Ledger } from "./ledger.ts";
import { ledgerOf, openCrashHerd, storeOf } from "./open.ts";
import { Random } from "./random.ts";
import { Rows } from "./rows.ts";
import { ORDERS, Shop } from "./shop.ts";

/** How long an open delivery may take to reach a receiver, and everything to end. */
const DELIVERY_MS = 15_000;
const DRAIN_MS = 60_000;

export interface Report {
  violations: string[];
  /** What the store holds, for people. */
  summary: string;
}

/** Reads all rows of a store that nobody has open; none when it was killed before there was a store. */
export async function readRows(directory: string): Promise<Row[]> {
  const store = levelStore(storeOf(directory), { create: false });
  try {
    await store.open();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  try {
    return await store.range({ gte: "", lt: "\u{10ffff}" });
  } finally {
    await store.close();
  }
}

/** One audit. The herd is closed in order unless `leave` is set. */
class Audit {
  readonly #directory: string;
  readonly #ledger: Ledger;
  readonly #random: Random;
  readonly #drain: boolean;
  #client!: Client;
  #shop!: Shop;

  constructor(directory: string, session: number, seed: number, drain: boolean) {
    this.#directory = directory;
    this.#ledger = new Ledger(ledgerOf(directory), session, "audit");
    this.#random = new Random(seed, session);
    this.#drain = drain;
  }

  /** @param leave keeps the herd open, for a process that is about to be killed. */
  async run(leave: boolean): Promise<Report> {
    const rows = new Rows(await readRows(this.#directory));
    const found = [...(await this.#verified()), ...checkRows(this.#ledger.history, rows)];
    if (found.length > 0) return this.#report(found, rows);

    this.#client = new Client(await openCrashHerd(this.#directory, this.#ledger, this.#random), this.#ledger);
    this.#shop = new Shop(this.#client.herd, this.#ledger);
    const owners = OWNERS.filter(() => this.#drain || this.#random.chance(0.5));
    for (const owner of owners) this.#client.receive(owner, obliging(this.#client), { questions: true, results: true });
    await this.#deliver(owners, rows);
    await this.#sample();
    if (this.#drain) await this.#converge();
    if (leave) return this.#report(this.#ledger.history.violations, rows);

    await this.#client.herd.close();
    this.#ledger.write({ fact: "session.closed" });
    const after = new Rows(await readRows(this.#directory));
    const left = [...(await this.#verified()), ...checkRows(this.#ledger.history, after, { ended: this.#drain })];
    return this.#report(left, after);
  }

  /** What the product itself finds wrong with the store. A session may be killed before there is one. */
  async #verified(): Promise<string[]> {
    try {
      const { problems } = await verifyStore(storeOf(this.#directory));
      return problems.map(({ message, key = "the store" }) => `${key}: ${message}`);
    } catch (error) {
      if (error instanceof HerdError && error.reason === "no_store") return [];
      throw error;
    }
  }

  /** Everything that was open for an owner comes to its receiver. */
  async #deliver(owners: readonly string[], rows: Rows): Promise<void> {
    const trees = new Map(owners.map((owner) => [ownerKeyOf({ id: owner }), owner]));
    const { history, session } = this.#ledger;
    const missing = () =>
      [...rows.deliveries.values()].filter(
        ({ owner, deliveryId }) => trees.has(owner) && history.deliveries.get(deliveryId)?.resolvedIn !== session,
      );
    const came = await eventually(DELIVERY_MS, () => missing().length === 0);
    if (came) return;
    for (const { kind, requestId, deliveryId, owner } of missing()) {
      const to = trees.get(owner) ?? owner;
      this.#client.violate(`the ${kind} of ${requestId} (delivery ${deliveryId}) never came to the receiver of ${to}`);
    }
  }

  /** Some of what was accepted, read and repeated through the API. The client and the ledger notice what is wrong. */
  async #sample(): Promise<void> {
    const { history } = this.#ledger;
    const { herd } = this.#client;
    const works = [...history.works.values()].filter(({ requestId }) => requestId !== undefined);
    for (const work of this.#some(works, 40)) {
      const handle = await herd.assignment(work.requestId as string);
      if (handle.label !== work.acceptedLabel) this.#client.violate(`${work.requestId} changed its label`);
      await this.#client.look(handle);
      if (work.id !== undefined) await this.#client.assign(work.owner, work);
    }
    const answered = [...history.owners.values()].flatMap((owner) => owner.answered);
    for (const { owner = "", askId, accepted } of this.#some(answered, 30)) {
      await this.#client.reply(owner, { askId }, { message: this.#client.newMessage() });
      if (accepted?.id !== undefined) await this.#client.reply(owner, { askId }, accepted);
    }
    await this.#sampleVisits();
  }

  /** Visits made again, and made under another id: what one did, none does a second time. */
  async #sampleVisits(): Promise<void> {
    const made = [...this.#ledger.history.visits.visits.values()].filter(({ told }) => told !== undefined);
    for (const { told: _told, received: _received, receivedIn: _in, unheard: _unheard, ...visit } of this.#some(
      made,
      20,
    )) {
      await this.#shop.visit({ ...visit, waits: false });
      const { id: _id, start: _start, ...again } = visit;
      if (visit.start === undefined)
        await this.#shop.visit({ ...again, id: this.#shop.newName("rival"), waits: false });
    }
  }

  #some<Item>(items: readonly Item[], count: number): Item[] {
    if (items.length <= count) return [...items];
    return Array.from({ length: count }, () => this.#random.pick(items) as Item);
  }

  /** Answers everything until all is over, then uses the labels that everybody wanted once more. */
  async #converge(): Promise<void> {
    if (!(await eventually(DRAIN_MS, () => this.#answerAll()))) return this.#stuck();
    for (const [index, owner] of OWNERS.entries()) {
      if (index % 2 === 1) continue;
      for (let slot = 1; slot <= 3; slot++) {
        const work = { name: `end-${this.#ledger.session}-${index}-${slot}`, acts: [] };
        const handle = await this.#client.assign(owner, { agent: "plain", work, label: `slot-${slot}` });
        if (handle === undefined)
          this.#client.violate(`label slot-${slot} of ${owner} is not free although all is done`);
      }
    }
    if (!(await eventually(DRAIN_MS, () => this.#answerAll()))) await this.#stuck();
  }

  /** @returns whether no owner has a worker any more. */
  async #answerAll(): Promise<boolean> {
    let left = 0;
    for (const owner of OWNERS) {
      const workers = await this.#client.list(owner);
      left += workers.length;
      for (const { question, parentLabel } of workers) {
        if (question === undefined || parentLabel !== undefined) continue;
        await this.#client.reply(owner, { askId: question.askId }, { message: this.#client.newMessage() });
      }
    }
    for (const order of ORDERS) {
      const entries = await this.#shop.parked(order);
      left += entries.length + (await this.#shop.workers(order));
      for (const entry of entries) await this.#shop.resolve(order, entry);
    }
    return left === 0;
  }

  async #stuck(): Promise<void> {
    for (const owner of OWNERS) {
      for (const worker of await this.#client.list(owner)) {
        const { label, state, activeRequestId, question, diagnostic, cleanupError } = worker;
        const more = JSON.stringify({ activeRequestId, question, diagnostic, cleanupError });
        this.#client.violate(`worker ${label} of ${owner} did not end, it is ${state}: ${more}`);
      }
    }
  }

  #report(violations: string[], rows: Rows): Report {
    const { requests, outcomes, deliveries } = rows;
    const { acknowledged, replied, steps } = this.#ledger.history.counts;
    const visits = [...this.#ledger.history.visits.visits.values()].filter(({ told, received }) => told || received);
    return {
      violations,
      summary:
        `${requests.size} assignments, ${outcomes.size} ended, ${deliveries.size} deliveries open, ` +
        `${replied} replies, ${visits.length} visits, ${acknowledged} acknowledged, ${steps} steps`,
    };
  }
}

/** Looks again and again. @returns false when it did not come true in time. */
async function eventually(ms: number, look: () => boolean | Promise<boolean>): Promise<boolean> {
  const until = Date.now() + ms;
  while (!(await look())) {
    if (Date.now() > until) return false;
    await pause(10);
  }
  return true;
}

if (import.meta.main) {
  const [directory = "", session = "0", seed = "0", drain] = process.argv.slice(2);
  const killed = drain === undefined && new Random(Number(seed), Number(session), 1).chance(0.5);
  const report = await new Audit(directory, Number(session), Number(seed), drain === "drain").run(killed);
  writeSync(1, `${JSON.stringify(report)}\n`);
  if (killed && report.violations.length === 0) process.kill(process.pid, "SIGKILL");
  process.exit(report.violations.length === 0 ? 0 : 1);
}
