import { setTimeout as pause } from "node:timers/promises";
import type { BackupReceipt, Herd, HerdStatus, Owner, OwnerOptions, OwnerRow } from "./api.ts";
import type { ParkedEntry } from "./asks/entry.ts";
import { parkedOn } from "./asks/parked.ts";
import type { HerdInbox } from "./asks/people.ts";
import { take } from "./asks/take.ts";
import { visit } from "./asks/visit.ts";
import type { VisitOutcome, VisitRequest } from "./asks/visit-shapes.ts";
import type { BackendFactory } from "./backend.ts";
import { backup } from "./upkeep/backup.ts";
import type { Control } from "./control/index.ts";
import type { Assignment } from "./deliveries/assignment.ts";
import type { Attachment } from "./deliveries/deliveries.ts";
import type { Receiver } from "./deliveries/desk.ts";
import type { Result } from "./deliveries/result.ts";
import type { Clock } from "./clock.ts";
import type { Door, DoorRequest, DoorRun } from "./doors/shapes.ts";
import { refuseDelivery } from "./doors/webhook.ts";
import { HerdError, invalidRequest } from "./errors.ts";
import { HerdEngine } from "./herd-engine.ts";
import type { HerdEventName, HerdEvents } from "./events.ts";
import { ownersOf } from "./inventory.ts";
import { controllerOf, LocalOwner } from "./local-owner.ts";
import { noStore, storeLocked, unavailable } from "./opening.ts";
import { resolveOptions, type HerdOptions } from "./options.ts";
import { checkedScope, ownerRef, type Subject } from "./owners.ts";
import { levelStore } from "./store/level.ts";
import { StoreLockedError } from "./store/store.ts";
import type { Controller } from "./subagent/acceptance.ts";
import { nextDue, Ticker } from "./tick.ts";

/** What only tests and the project's own programs set. */
export interface Internals {
  clock?: Clock;
  backends?: readonly BackendFactory[];
  backendOf?(agent: string): string | undefined;
}

/** The same as `engines` in package.json says. */
const OLDEST_NODE = { major: 22, minor: 19 };

const systemClock: Clock = {
  now: () => Date.now(),
  pause: (ms, signal) => pause(ms, undefined, signal && { signal }).catch(() => undefined),
};

/** `createHerd` with what tests replace. */
export async function openHerd(options: HerdOptions<object>, internals: Internals = {}): Promise<HerdInstance> {
  checkNode(process.versions.node);
  const resolved = resolveOptions(options);
  const store = resolved.store ?? levelStore(resolved.directory, { create: !resolved.passive });
  const engine = new HerdEngine({
    store,
    options: resolved,
    clock: internals.clock ?? systemClock,
    cwd: process.cwd(),
    backends: [...resolved.backends, ...(internals.backends ?? [])],
    ...(internals.backendOf && { backendOf: internals.backendOf }),
  });
  if (resolved.durability === "process") {
    const message = 'durability "process": what is acknowledged survives the end of this process, not of the machine';
    process.emitWarning(message, { type: "HerdDurabilityWarning" });
  }
  for (const warning of engine.agents.warnings) process.emitWarning(warning, { type: "HerdAgentWarning" });
  const herd = new HerdInstance(engine);
  await herd.open();
  return herd;
}

/** One open herd. */
export class HerdInstance implements Herd {
  readonly engine: HerdEngine;
  readonly #ticker: Ticker;
  #status: HerdStatus = "opening";
  #timer: NodeJS.Timeout | undefined;
  #closed: Promise<void> | undefined;
  #control: Control | undefined;
  readonly #inbox: HerdInbox = {
    list: async () => {
      this.assertReadable("inbox");
      return this.engine.inbox.list();
    },
    answer: async (request) => {
      this.assertOpen("answer");
      return this.engine.inbox.answer(request);
    },
    on: (name, listener) => this.engine.events.on(name, listener as never),
  };
  readonly #opened = Promise.withResolvers<void>();

  constructor(engine: HerdEngine) {
    this.engine = engine;
    this.#ticker = new Ticker(engine);
  }

  get status(): HerdStatus {
    return this.#status === "open" && this.engine.kernel.fence ? "fenced" : this.#status;
  }

  async open(): Promise<void> {
    await this.#openStore();
    try {
      // Before anything goes on: a worker may end this process at once, and its clients should have heard of it.
      await this.#listen();
      await this.engine.resume();
    } catch (error) {
      await this.crash();
      throw this.#refusal(error);
    }
    this.#status = "open";
    this.#opened.resolve();
    const { runWorkers } = this.engine.options;
    // Where no worker goes on nobody is let in.
    if (runWorkers && !this.engine.options.passive) await this.engine.doors.open();
    // After whoever awaits the herd has begun to listen: what is held is held while the store is opened.
    setImmediate(() => this.engine.events.begin());
    const { tickMs, passive } = this.engine.options;
    if (tickMs > 0 && !passive) {
      this.#timer = setInterval(() => this.engine.kernel.inBackground(this.tick()), tickMs);
      this.#timer.unref();
    }
  }

  /** Resolves once it takes commands. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  owner(id: string | Subject, options: OwnerOptions = {}): Owner<string> {
    const by = controllerOf(this.engine, id, options);
    if (options.cwd !== undefined) this.engine.folders.set(by.treeId, options.cwd);
    const hears = options.onQuestion !== undefined || options.onResult !== undefined;
    const detach = hears ? this.attach(by, options, { replace: options.replace === true }) : undefined;
    this.engine.limits.note(by);
    return new LocalOwner(this.engine, this, by, detach);
  }

  async backup(directory: string): Promise<BackupReceipt> {
    this.assertReadable("backup");
    return backup(this.engine.kernel, directory);
  }

  receive(filter: { scope: string }, receiver: Receiver): () => void {
    this.assertOpen("receive");
    return this.engine.deliveries.receive(checkedScope(filter?.scope), receiver);
  }

  async parked(subject: Subject): Promise<ParkedEntry[]> {
    this.assertReadable("parked");
    return (await parkedOn(this.engine, ownerRef(subject))).map(({ entry }) => entry);
  }

  async take(subject: Subject, id?: string): Promise<Result | undefined> {
    this.assertOpen("take");
    return take(this.engine, ownerRef(subject), id);
  }

  async visit(request: VisitRequest): Promise<VisitOutcome> {
    this.assertOpen("visit");
    return visit(this.engine, request);
  }

  async door(request: DoorRequest): Promise<Door> {
    this.assertOpen("door");
    return this.#guarded(await this.engine.doors.save(request));
  }

  async doors(): Promise<Door[]> {
    this.assertReadable("doors");
    return (await this.engine.doors.list()).map((door) => this.#guarded(door));
  }

  async run(id: string): Promise<DoorRun> {
    this.assertReadable("run");
    return this.engine.runs.view(id);
  }

  async runs(): Promise<DoorRun[]> {
    this.assertReadable("runs");
    return this.engine.runs.list();
  }

  /** A door takes nothing while its herd takes nothing. */
  #guarded(door: Door): Door {
    const { visit: goThrough, fetch, remove } = door;
    return {
      ...door,
      visit: async (input, options) => {
        this.assertOpen("door");
        return goThrough(input, options);
      },
      fetch: async (request) => {
        try {
          if (door.kind === "webhook") this.assertOpen("door");
        } catch (error) {
          return refuseDelivery(error as HerdError);
        }
        return fetch(request);
      },
      remove: async () => {
        this.assertOpen("door");
        return remove();
      },
    };
  }

  async nextDue(): Promise<Date | undefined> {
    this.assertReadable("nextDue");
    return nextDue(this.engine.kernel);
  }

  get inbox(): HerdInbox {
    return this.#inbox;
  }

  async owners(): Promise<OwnerRow[]> {
    this.assertReadable("owners");
    return ownersOf(this.engine.kernel);
  }

  async assignment(requestId: string): Promise<Assignment> {
    this.assertReadable("assignment");
    return this.engine.handle(await this.engine.accepted(requestId));
  }

  on<Name extends HerdEventName>(event: Name, listener: (event: HerdEvents[Name]) => void): () => void {
    return this.engine.events.on(event, listener);
  }

  async tick(now?: Date): Promise<void> {
    this.assertOpen("tick");
    await this.#ticker.tick(now?.getTime() ?? this.engine.kernel.now());
  }

  close({ graceMs = 10_000 }: { graceMs?: number } = {}): Promise<void> {
    this.#closed ??= this.#close(graceMs);
    return this.#closed;
  }

  /** Drops everything in memory, as the end of the process would. For tests. */
  async crash(): Promise<void> {
    this.#status = "closed";
    clearInterval(this.#timer);
    this.#control?.crash();
    this.engine.lookout.release();
    this.engine.deliveries.close();
    void this.engine.doors.close();
    this.engine.functions.stopAll("parked", "The process ended.");
    await this.engine.kernel.abandon();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(graceMs: number): Promise<void> {
    this.#status = "closing";
    clearInterval(this.#timer);
    const { deliveries, doors, functions, backends, kernel, sessions } = this.engine;
    this.engine.leave(herdClosed("closing", "wait"));
    await doors.close(graceMs);
    deliveries.close();
    await functions.close(graceMs);
    await backends.close(graceMs);
    if (!kernel.fence) {
      await kernel.settled();
      await sessions.flush(graceMs);
    }
    // Before the store is free: afterwards its folder may be another herd's.
    await this.#control?.close();
    if (!kernel.fence) await kernel.settled();
    await kernel.close();
    this.#status = "closed";
  }

  /** Takes the store, and waits a while for one that another process is closing. */
  async #openStore(): Promise<void> {
    const { waitForLockMs } = this.engine.options;
    const until = Date.now() + waitForLockMs;
    for (;;) {
      try {
        return await this.engine.kernel.open();
      } catch (error) {
        if (!(error instanceof StoreLockedError)) throw this.#refusal(error);
        if (Date.now() >= until) throw storeLocked(error, waitForLockMs);
        await pause(50);
      }
    }
  }

  /** Why the store cannot be opened. */
  #refusal(error: unknown): HerdError {
    if (error instanceof HerdError) return error;
    const { directory = "" } = this.engine.kernel.store;
    const isMissing = this.engine.options.passive && (error as NodeJS.ErrnoException).code === "ENOENT";
    return isMissing ? noStore(directory, error) : unavailable(error);
  }

  /** Opens the control socket, where there is a folder for it. */
  async #listen(): Promise<void> {
    const { control, passive } = this.engine.options;
    const { directory } = this.engine.kernel.store;
    if (control === false || passive || directory === undefined) return;
    // Read when it is needed: a herd without a folder, or a program that only imports us, does without it.
    const { Control, HerdHost } = await import("./control/index.ts");
    const access = control === true ? {} : control;
    this.#control = await Control.open(new HerdHost(this, directory, access));
  }

  /** Makes a receiver the owner's. @returns how it gives that place back. */
  attach(by: Controller, receiver: Receiver, how: Attachment): () => void {
    this.assertOpen("owner");
    return this.engine.deliveries.attach(by.owner, receiver, how);
  }

  assertReadable(operation: string): void {
    if (this.#status !== "open") throw herdClosed(this.#status, operation);
  }

  assertOpen(operation: string): void {
    this.assertReadable(operation);
    if (!this.engine.options.passive) return;
    throw new HerdError({
      category: "invalid_request",
      reason: "passive",
      message: "The herd was opened with passive: true, which only reads",
      nextAction: "open it without passive",
      operation,
    });
  }
}

/** @throws HerdError `node_too_old`: what is missing in it would fail later, and look like something else. */
export function checkNode(version: string): void {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major > OLDEST_NODE.major || (major === OLDEST_NODE.major && minor >= OLDEST_NODE.minor)) return;
  const { major: needs, minor: least } = OLDEST_NODE;
  throw invalidRequest(
    "createHerd",
    "node_too_old",
    `pi-herd needs Node.js ${needs}.${least} or newer, this is ${version}`,
    "run it with a newer Node.js",
  );
}

function herdClosed(status: HerdStatus, operation: string): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "herd_closed",
    message: `The herd is ${status}`,
    nextAction: "open it again with createHerd",
    operation,
  });
}
