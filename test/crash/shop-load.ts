import { setTimeout as pause } from "node:timers/promises";
import type { ParkedEntry } from "../../runtime/index.ts";
import type { Visit } from "./facts.ts";
import type { Ledger } from "./ledger.ts";
import type { Random } from "./random.ts";
import { ORDERS, type OrderKey, type Shop } from "./shop.ts";
import { makeWork, VISITED_NAMES } from "./work.ts";

/** Entries of one subject that are parked at once. */
const MOST_PARKED = 6;

/** Visits every subject, again and again, until the process ends. */
export function driveShops(shop: Shop, ledger: Ledger, random: Random): void {
  for (const order of ORDERS) void new Drive(shop, ledger, random, order).run();
}

class Drive {
  readonly #shop: Shop;
  readonly #ledger: Ledger;
  readonly #random: Random;
  readonly #order: OrderKey;

  constructor(shop: Shop, ledger: Ledger, random: Random, order: OrderKey) {
    this.#shop = shop;
    this.#ledger = ledger;
    this.#random = random;
    this.#order = order;
  }

  async run(): Promise<never> {
    for (;;) {
      await pause(this.#random.between(0, 15));
      const entries = await this.#shop.parked(this.#order);
      switch (this.#random.weighted({ start: 4, resume: 8, take: 4, cancel: 1, both: 1, doubt: 2 })) {
        case "start":
          if (entries.length < MOST_PARKED) this.#start();
          break;
        case "resume":
          this.#resume(entries);
          break;
        case "take":
          this.#take(entries);
          break;
        case "cancel":
          await this.#cancel(entries);
          break;
        case "both":
          this.#resume(entries, this.#random.pick(entries)?.id);
          break;
        case "doubt":
          await this.#doubt();
          break;
      }
    }
  }

  #start(): void {
    const agent = this.#random.pick(VISITED_NAMES);
    const name = this.#shop.newName(`v${this.#order}-`);
    const work = makeWork(this.#random, agent, name);
    this.#visit({ start: { name, agent, task: JSON.stringify(work) } });
  }

  /** One ask, or several of its group; and what is cancelled along with it. */
  #resume(entries: readonly ParkedEntry[], cancel?: string): void {
    const asking = entries.filter(({ status }) => status === "asking");
    const first = this.#random.pick(asking);
    if (first === undefined) return;
    const group = asking.filter(({ requestId, groupId }) => requestId === first.requestId && groupId === first.groupId);
    const chosen = this.#random.chance(0.6) ? [first] : group;
    const resume = chosen.map(({ id }) => ({ id, payload: this.#shop.newName("p") }));
    this.#visit({ resume, ...(cancel !== undefined && { cancel: [cancel] }) });
    // Two who answer the same at once.
    if (this.#random.chance(0.2)) this.#visit({ resume: [{ id: first.id, payload: this.#shop.newName("p") }] });
  }

  #take(entries: readonly ParkedEntry[]): void {
    const ended = this.#random.pick(entries.filter(({ status }) => status === "finished" || status === "failed"));
    if (ended === undefined) return;
    this.#visit({ take: ended.id });
    if (this.#random.chance(0.2)) this.#visit({ take: ended.id });
  }

  async #cancel(entries: readonly ParkedEntry[]): Promise<void> {
    const entry = this.#random.pick(entries);
    if (entry) await this.#shop.visit({ ...this.#new(), cancel: [entry.id] });
  }

  /** Makes a visit again: one of this process, or one that an earlier process may not have heard of. */
  async #doubt(): Promise<void> {
    const { visits } = this.#ledger.history;
    const mine = (visit: Visit) => visit.order === this.#order;
    const unheard = visits.unheard().filter(mine);
    const all = [...visits.visits.values()].filter(mine).slice(-30);
    const known = unheard.length > 0 && this.#random.chance(0.7) ? this.#random.pick(unheard) : this.#random.pick(all);
    if (known === undefined) return;
    const { told: _told, received: _received, receivedIn: _in, unheard: _unheard, ...visit } = known;
    await this.#shop.visit({ ...visit, waits: false });
  }

  /** Nobody waits for it here: it waits for what its run comes to. */
  #visit(parts: Partial<Visit>): void {
    void this.#shop.visit({ ...this.#new(), ...parts });
  }

  #new(): Pick<Visit, "id" | "order" | "receives" | "waits"> {
    return {
      id: this.#shop.newName("v"),
      order: this.#order,
      receives: this.#random.chance(0.7),
      waits: this.#random.chance(0.8),
    };
  }
}
