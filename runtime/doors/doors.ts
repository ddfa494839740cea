import type { Json } from "../../machines/vocabulary.ts";
import { orAborted, visit, type VisitOptions } from "../asks/visit.ts";
import type { VisitOutcome } from "../asks/visit-shapes.ts";
import type { Done } from "../asks/visit-step.ts";
import type { Engine } from "../engine.ts";
import { HerdError, invalidRequest, messageOf } from "../errors.ts";
import { newId } from "../ids.ts";
import type { Step } from "../kernel/step.ts";
import { ownerKeyOf, ownerRef, type Subject } from "../owners.ts";
import { keys, prefixed } from "../store/keys.ts";
import { compileContract, type DoorContract } from "./contract.ts";
import { checkCron } from "./cron.ts";
import { doorDocument, savedDoor, storedDoor, type DoorDocument, type SavedDoor } from "./document.ts";
import type { Endpoint } from "./endpoint.ts";
import { subjectFor, visitFor } from "./fire.ts";
import { Jq } from "./jq.ts";
import { copyJson } from "./json.ts";
import { Runs } from "./runs.ts";
import { Schedules, timing, withoutTimes } from "./schedules.ts";
import type { Door, DoorKind, DoorVisitOptions, RouteOutcome } from "./shapes.ts";
import { checkSecret } from "./signature.ts";
import { compileSubject } from "./subject.ts";
import { answerDelivery, type Fired } from "./webhook.ts";

/** A door that can be gone through. */
type Ready = Omit<DoorDocument, "contract"> & { contract: DoorContract };

/** The doors of a herd: those that are saved, and those that this process only has at hand. */
export class Doors {
  readonly runs: Runs;
  readonly #engine: Engine;
  readonly #jq: Jq;
  /** Contracts that are functions live as long as the process that registered them. */
  readonly #contracts = new Map<string, DoorContract>();
  /** Those that doors listen with, and all that listen: those of doors that were changed may have deliveries to answer. */
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #listening = new Set<Endpoint>();
  /** Conversations, each with the visit that has its turn. */
  readonly #conversations = new Map<string, Promise<unknown>>();
  /** What changes doors, one after the other. */
  #changing: Promise<unknown> = Promise.resolve();
  #closed = false;
  readonly #schedules: Schedules;

  constructor(engine: Engine, runs: Runs) {
    this.#engine = engine;
    this.runs = runs;
    this.#jq = new Jq({ timeoutMs: engine.options.jqTimeoutMs });
    this.#schedules = new Schedules(engine, {
      isReady: (name, stored) => this.#contracts.has(name) || storedDoor(stored).contract !== undefined,
      fire: async (name, alongside) => {
        const door = await this.#ready(name);
        const input = door.defaults ?? null;
        await this.#through(door, await subjectFor(this.#jq, door, input), input, { detached: true, alongside });
      },
      failed: (door, error) => this.#failed(door, error),
    });
  }

  /** Endpoints of saved webhooks listen again. One that cannot is told and hinders nobody. */
  open(): Promise<void> {
    return this.#inOrder(async () => {
      for (const door of await this.#saved()) {
        if (door.kind !== "webhook" || door.port === undefined) continue;
        const { name = "", port } = door;
        await this.#listen(name, port).then(
          (endpoint) => this.#endpoints.set(name, endpoint),
          (error: unknown) => this.#failed(door, error),
        );
      }
    });
  }

  /** @param graceMs how long deliveries under way may take, in milliseconds. */
  async close(graceMs = 0): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#listening].map((endpoint) => endpoint.close(graceMs)));
    await this.#jq.close();
  }

  /**
   * Checks, compiles and saves a door; one of that name is updated.
   * @throws HerdError naming the field and the rule; nothing was changed.
   */
  async save(request: unknown): Promise<Door> {
    const door = doorDocument(request);
    await this.#check(door);
    const { name } = door;
    if (name === undefined) return this.#handle(door.kind, undefined, door);
    await this.#inOrder(() => this.#put(name, door));
    return this.#handle(door.kind, name);
  }

  /** Every saved door, by name. */
  async list(): Promise<Door[]> {
    return (await this.#saved()).map(({ kind, name }) => this.#handle(kind, name as string));
  }

  /** @throws HerdError `target_not_found`. */
  async named(name: string): Promise<Door> {
    return this.#handle((await this.#stored(name)).kind, name);
  }

  /** Whether a schedule that is due fires in this process. */
  fires(name: string): boolean {
    return this.#schedules.fires(name);
  }

  /** A schedule is due. Whatever goes wrong is told, and it goes on with its next time. */
  due(key: string, name: string, now: number): Promise<void> {
    return this.#schedules.due(key, name, now);
  }

  async #check(door: DoorDocument): Promise<void> {
    const { kind, subject, target, contract } = door;
    // Where no worker goes on, what is started is refused by its name; what is resumed may be another program's.
    if (this.#engine.options.runWorkers) (await this.#engine.roster.current(this.#engine.cwd)).known(target.agent);
    if (door.cron !== undefined) checkCron(door.cron, door.timezone, "door");
    if (kind === "webhook") checkSecret(door.secret ?? "", "door");
    if (typeof subject === "string") await compileSubject(this.#jq, subject, "door");
    await compileContract(this.#jq, contract, "door");
    if (kind === "schedule" && typeof subject === "string" && door.defaults === undefined) throw noInput();
  }

  /** Of two who change doors at once the second waits for the first. */
  #inOrder<T>(change: () => Promise<T>): Promise<T> {
    const changed = this.#changing.then(() => this.#engine.kernel.ready()).then(change);
    this.#changing = changed.catch(() => undefined);
    return changed;
  }

  async #put(name: string, door: DoorDocument): Promise<void> {
    const { kernel } = this.#engine;
    const { port } = door;
    const listening = this.#endpoints.get(name);
    const stays = listening !== undefined && kernel.read<SavedDoor>(keys.door(name))?.port === port;
    // Before it is saved: a port that is not to be had is a refusal, and what listens goes on.
    const endpoint = port === undefined || stays ? undefined : await this.#listen(name, port);
    try {
      await kernel.write([
        { type: "put", key: keys.door(name), value: JSON.stringify(savedDoor(door)) },
        ...timing(kernel, name, door, kernel.read<SavedDoor>(keys.door(name))),
      ]);
    } catch (error) {
      if (endpoint) await this.#silence(endpoint);
      throw error;
    }
    this.#contracts.set(name, door.contract);
    if (stays) return;
    this.#endpoints.delete(name);
    if (endpoint) this.#endpoints.set(name, endpoint);
    // Deliveries to it that are under way are answered, and not waited for.
    if (listening) kernel.inBackground(this.#silence(listening));
  }

  async #listen(name: string, port: number): Promise<Endpoint> {
    // Read when there is something to listen for.
    const { listen } = await import("./endpoint.ts");
    const handle = (request: Request) => this.#fetch(name, request);
    const endpoint = await listen({ port, path: `/${name}`, handle });
    this.#listening.add(endpoint);
    if (!this.#closed) return endpoint;
    await this.#silence(endpoint);
    throw this.#engine.closed ?? new Error("the herd is closed");
  }

  async #silence(endpoint: Endpoint): Promise<void> {
    await endpoint.close();
    this.#listening.delete(endpoint);
  }

  async #saved(): Promise<SavedDoor[]> {
    const rows = await this.#engine.kernel.range(prefixed(keys.door("")));
    return rows.map(([, text]) => JSON.parse(text) as SavedDoor);
  }

  async #stored(name: string): Promise<SavedDoor> {
    await this.#engine.kernel.settled();
    const door = this.#engine.kernel.committed<SavedDoor>(keys.door(name));
    if (door) return door;
    throw new HerdError({
      category: "target_not_found",
      reason: "target_not_found",
      message: `There is no door ${JSON.stringify(name)}`,
      nextAction: "make it with herd.door; herd.doors lists those that are there",
      operation: "door",
      ids: { name },
    });
  }

  /** A saved door with its expressions. @throws HerdError `door_unregistered` while they are functions of another process. */
  async #ready(name: string): Promise<Ready> {
    const door = storedDoor(await this.#stored(name));
    const contract = this.#contracts.get(name) ?? door.contract;
    if (contract) return { ...door, contract };
    throw invalidRequest(
      "door",
      "door_unregistered",
      `The expressions of door "${name}" are functions, which no program has registered since the herd was opened`,
      "register it again with herd.door under the same name, or write its expressions in jq",
      { ids: { name } },
    );
  }

  #handle(kind: DoorKind, name: string | undefined, unnamed?: Ready): Door {
    const door = async () => unnamed ?? this.#ready(name as string);
    const url = name === undefined ? undefined : this.#endpoints.get(name)?.url;
    return {
      ...(name !== undefined && { name }),
      kind,
      ...(url !== undefined && { url }),
      visit: async (input, options = {}) => this.#visit(await door(), input, options),
      fetch: async (request) => {
        if (kind !== "webhook") throw noWebhook(name, kind);
        return this.#fetch(name as string, request);
      },
      remove: async () => {
        if (name !== undefined) await this.#inOrder(() => this.#remove(name));
      },
    };
  }

  async #remove(name: string): Promise<void> {
    const { kernel } = this.#engine;
    await kernel.write([{ type: "del", key: keys.door(name) }, ...withoutTimes(kernel, name)]);
    this.#contracts.delete(name);
    const endpoint = this.#endpoints.get(name);
    this.#endpoints.delete(name);
    if (endpoint) await this.#silence(endpoint);
  }

  async #visit(door: Ready, given: unknown, options: DoorVisitOptions): Promise<unknown> {
    const input = door.kind === "schedule" && door.defaults !== undefined ? door.defaults : inputOf(given);
    const subject = await subjectFor(this.#jq, door, input);
    switch (door.kind) {
      case "program":
        return this.#through(door, subject, input, {}, options);
      case "route":
        return orAborted(
          this.#inTurn(subject, async () => routed(await this.#through(door, subject, input, {}, options))),
          options.signal,
        );
      case "submit":
        return this.#submit(door, subject, input);
      default:
        return this.#through(door, subject, input, { detached: true });
    }
  }

  async #through(
    door: Ready,
    subject: Subject,
    input: Json,
    options: VisitOptions,
    waiting: DoorVisitOptions = {},
  ): Promise<VisitOutcome> {
    const request = await visitFor(this.#engine, this.#jq, door, subject, input);
    const receivesOutcome = options.detached !== true;
    const outcome = await visit(this.#engine, { ...request, receivesOutcome, ...waiting }, options);
    const { action, cancelled, requestId } = outcome;
    this.#tell(door, { action, cancelled, ...(requestId !== undefined && { requestId }) });
    return outcome;
  }

  /** One visit at a time on each subject: a conversation has one turn after the other. */
  async #inTurn<T>(subject: Subject, turn: () => Promise<T>): Promise<T> {
    const key = ownerKeyOf(ownerRef(subject));
    const taken = (this.#conversations.get(key) ?? Promise.resolve()).then(turn);
    const over = taken.catch(() => undefined);
    this.#conversations.set(key, over);
    try {
      return await taken;
    } finally {
      if (this.#conversations.get(key) === over) this.#conversations.delete(key);
    }
  }

  /** The record of what was submitted is in the batch that starts it. @returns its id. */
  async #submit(door: Ready, subject: Subject, input: Json): Promise<string> {
    const record = { runId: newId(), door: door.name ?? "", agent: door.target.agent };
    let top: string | undefined;
    await this.#through(door, subject, input, {
      detached: true,
      alongside: (step, done) => {
        this.runs.begin(step, record, done);
        top = done.top;
        return undefined;
      },
    }).catch((error: unknown) => {
      // A failed outcome that was taken is what the record says.
      if (!(error instanceof HerdError) || error.reason !== "run_failed") throw error;
    });
    if (top !== undefined) this.#follow(top);
    return record.runId;
  }

  /** Ends the record when its run asks; its end ends it by itself. */
  #follow(requestId: string): void {
    const request = this.#engine.request(requestId);
    if (request === undefined) return;
    const watch = this.#engine.visits.watch(request);
    const followed = this.#engine.whileOpen(watch.next).then(async (next) => {
      if (next.type === "asks") await this.runs.look(requestId);
    });
    this.#engine.kernel.inBackground(followed.finally(() => watch.end()));
  }

  async #fetch(name: string, request: Request): Promise<Response> {
    const { kernel } = this.#engine;
    // What is on its way to the disk may come to nothing.
    const before = async (id: string): Promise<Fired | undefined> => {
      await kernel.settled();
      return kernel.committed<Fired>(keys.fired(name, id));
    };
    return answerDelivery(request, {
      secret: async () => (await this.#stored(name)).secret ?? "",
      now: () => kernel.now(),
      before,
      fire: async (id, input) => {
        const door = await this.#ready(name);
        const subject = await subjectFor(this.#jq, door, input);
        let isFirst = false;
        const alongside = (step: Step, done: Done) => {
          const key = keys.fired(name, id);
          // Two of the same delivery at once: the second is undone.
          isFirst = step.read(key) === undefined;
          if (!isFirst) throw new Error("the same delivery was faster");
          step.put(key, { action: done.action, cancelled: done.cancelled, requestId: done.requestId } satisfies Fired);
          step.put(keys.due(step.now + REMEMBERED_MS, "forget", newId()), { key });
          return key;
        };
        try {
          return { outcome: await this.#through(door, subject, input, { detached: true, alongside }) };
        } catch (error) {
          // What this one names may be gone because the other one was faster.
          const again = isFirst ? undefined : await before(id);
          if (again) return { again };
          throw error;
        }
      },
      failed: async (error) => this.#failed(await this.#stored(name), error),
    });
  }

  #tell({ name, kind }: Pick<DoorDocument, "name" | "kind">, what: object): void {
    this.#engine.events.emit("door", { ...(name !== undefined && { name }), kind, ...what });
  }

  /** A fire that nobody waits for went wrong. */
  #failed(door: Pick<DoorDocument, "name" | "kind">, error: unknown): void {
    if (this.#engine.events.has("door")) return this.#tell(door, { error });
    process.emitWarning(`door "${door.name}" (${door.kind}): ${messageOf(error)}`, { type: "HerdDoorWarning" });
  }
}

/** How long a delivery of a webhook is known: its signature is too old long before. */
const REMEMBERED_MS = 24 * 60 * 60 * 1000;

function inputOf(given: unknown): Json {
  if (given === undefined) return null;
  try {
    return copyJson(given);
  } catch (error) {
    throw invalidRequest("door", "invalid_field", `input: ${messageOf(error)}`, "give the input as JSON", {
      field: "input",
    });
  }
}

function routed({ kind, result, asks = [] }: VisitOutcome): RouteOutcome {
  return { reply: kind === "result" ? (result ?? null) : null, asks };
}

function noWebhook(name: string | undefined, kind: DoorKind): HerdError {
  return invalidRequest(
    "door",
    "no_webhook",
    `The door ${name === undefined ? "" : `"${name}" `}is a ${kind}, and takes no signed deliveries`,
    "visit it with door.visit, or make it a webhook",
    { field: "kind" },
  );
}

function noInput(): HerdError {
  return invalidRequest(
    "door",
    "invalid_field",
    "defaults: must be given where the subject of a schedule is a program: it is the input that it reads",
    "give defaults, or a subject as { scope, keys }",
    { field: "defaults" },
  );
}
