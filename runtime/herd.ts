import { setTimeout as pause } from "node:timers/promises";
import type { Json } from "../machines/vocabulary.ts";
import { reply, replyFields } from "./asks/reply.ts";
import type { ReplyReceipt } from "./asks/question.ts";
import type { BackendFactory } from "./backend.ts";
import type { Assignment } from "./deliveries/assignment.ts";
import type { Receiver } from "./deliveries/desk.ts";
import type { Clock } from "./engine.ts";
import { HerdError, invalidRequest, messageOf } from "./errors.ts";
import { HerdEngine } from "./herd-engine.ts";
import type { HerdEventName, HerdEvents } from "./events.ts";
import type { AgentDefinition } from "./functions/agent.ts";
import type { RequestRecord } from "./kernel/records.ts";
import { resolveOptions, type HerdOptions } from "./options.ts";
import { ownerRef, treeIdOf, type Subject } from "./owners.ts";
import { levelStore } from "./store/level.ts";
import { keys } from "./store/keys.ts";
import { StoreLockedError } from "./store/store.ts";
import type { Controller } from "./subagent/acceptance.ts";
import { assign } from "./subagent/assign.ts";
import { close, closeFields } from "./subagent/close.ts";
import { list } from "./subagent/list.ts";
import type { AssignRequest, CloseReceipt, Listing, SteerReceipt } from "./subagent/shapes.ts";
import { steer } from "./subagent/steer.ts";
import { subagent } from "./subagent/tools.ts";
import { Ticker } from "./tick.ts";

/** Whoever assigns and answers. The id is the whole identity: the same id after a restart is the same owner. */
export interface Owner<Agent extends string> {
  /** The model-facing `subagent` tool: snake_case JSON in and out, public errors never thrown. */
  subagent(request: unknown): Promise<any>;
  /**
   * Assigns a task to a fresh worker; resolves when it is accepted on disk.
   *
   * What can happen twice: with `id` nothing: the same id gives the same handle, also after a restart and after the
   * end. Without it every call is a new assignment.
   * @throws HerdError `unknown_agent`, `worker_label_exists`, `id_reused`, `overloaded`, … before anything changed.
   */
  assign(request: AssignRequest<Agent>): Promise<Assignment>;
  /**
   * Changes what a worker works on now; it never makes a second result.
   *
   * What can happen twice: the worker may hear the same steer again after a restart.
   */
  steer(request: { label: string; message: string; files?: string[] }): Promise<SteerReceipt>;
  /**
   * Answers one question. With `askId` exactly that one; with `label` whatever the worker asks now.
   *
   * What can happen twice: nothing. The same `id` succeeds quietly, any other second reply is `already_answered`.
   */
  reply(
    request: ({ askId: string } | { label: string }) & { message: Json; files?: string[]; id?: string },
  ): Promise<ReplyReceipt>;
  /** Closes a worker and everything below it. Its assignment ends as `closed` for whoever waits for it. */
  close(request: { label: string }): Promise<CloseReceipt>;
  list(): Promise<Listing>;
  /** Gives the place of the receiver back; what is open stays open. */
  detach(): void;
}

export interface OwnerOptions extends Receiver {
  /** What labels are unique in; the owner id unless set. */
  workspace?: string;
  /** Where its workers work and its files are looked up; the process's directory at `createHerd` unless set. */
  cwd?: string;
  /** Takes over from another receiver of this process. */
  replace?: boolean;
}

/** A herd's whole condition in one word. */
export type HerdStatus = "opening" | "open" | "fenced" | "closing" | "closed";

export interface Herd<Agent extends string = string> extends AsyncDisposable {
  readonly status: HerdStatus;
  owner(id: string | Subject, options?: OwnerOptions): Owner<Agent>;
  /** The handle of an assignment by its request id, in any process that has the store. */
  assignment(requestId: string): Promise<Assignment>;
  /** Listens to what was committed. @returns how to stop. */
  on<Name extends HerdEventName>(event: Name, listener: (event: HerdEvents[Name]) => void): () => void;
  /** Lets everything happen that is due; `createHerd` calls it every `tickMs`. */
  tick(now?: Date): Promise<void>;
  /**
   * Stops the program without failing the work: takes no new commands, aborts every `worker.signal`, waits up to
   * `graceMs` (10,000) for functions that execute, and closes the store. Open work goes on at the next start.
   */
  close(options?: { graceMs?: number }): Promise<void>;
}

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

/**
 * Opens a herd: the store, its agents, and whatever was under way when it was last closed or killed.
 * @throws HerdError `bad_option`, `bad_agent`, `store_locked`, `store_damaged`, `store_format`.
 */
export async function createHerd<
  const Agents extends Record<string, AgentDefinition>,
  const Files extends HerdOptions<Agents>["definitions"] = undefined,
>(options: HerdOptions<Agents> & { definitions?: Files } = {}): Promise<Herd<AgentNames<Agents, Files>>> {
  return openHerd(options);
}

/** The names that can be assigned: what definition files define is not known before they are read. */
type AgentNames<Agents, Files> = Files extends readonly unknown[] ? string : Extract<keyof Agents, string>;

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

  constructor(engine: HerdEngine) {
    this.engine = engine;
    this.#ticker = new Ticker(engine);
  }

  get status(): HerdStatus {
    return this.#status === "open" && this.engine.kernel.fence ? "fenced" : this.#status;
  }

  async open(): Promise<void> {
    const { waitForLockMs, tickMs, passive } = this.engine.options;
    const until = Date.now() + waitForLockMs;
    for (;;) {
      try {
        await this.engine.open();
        break;
      } catch (error) {
        if (!(error instanceof StoreLockedError)) throw error instanceof HerdError ? error : unavailable(error);
        if (Date.now() >= until) throw storeLocked(error, waitForLockMs);
        await pause(50);
      }
    }
    this.#status = "open";
    if (tickMs > 0 && !passive) {
      this.#timer = setInterval(() => this.engine.kernel.inBackground(this.tick()), tickMs);
      this.#timer.unref();
    }
  }

  owner(id: string | Subject, options: OwnerOptions = {}): Owner<string> {
    const owner = ownerRef(id);
    const treeId = treeIdOf(owner);
    const { engine } = this;
    const by: Controller = {
      treeId,
      owner,
      workspace: options.workspace ?? owner.id,
      cwd: options.cwd ?? engine.cwd,
      path: "",
    };
    if (options.cwd !== undefined) engine.folders.set(treeId, options.cwd);
    const hears = options.onQuestion !== undefined || options.onResult !== undefined;
    const detach = hears ? this.#attach(by, options) : () => undefined;
    return {
      subagent: async (request) => {
        try {
          this.#assertOpen("subagent");
        } catch (error) {
          return { ok: false, error: (error as HerdError).toJSON() };
        }
        return subagent(engine, by, request);
      },
      assign: async (request) => {
        this.#assertOpen("assign");
        return engine.handle(await assign(engine, by, request));
      },
      reply: async (request) => {
        this.#assertOpen("reply");
        return reply(engine, {
          ...replyFields(request),
          owner: treeId,
          cwd: by.cwd,
          operation: "reply",
          treeId,
          path: "",
          workspace: by.workspace,
        });
      },
      steer: async (request) => {
        this.#assertOpen("steer");
        return steer(engine, by, request);
      },
      close: async (request) => {
        this.#assertOpen("close");
        return close(engine, { ...by, ...closeFields(request), operation: "close" });
      },
      list: async () => {
        this.#assertReadable("list");
        return list(engine, by);
      },
      detach,
    };
  }

  async assignment(requestId: string): Promise<Assignment> {
    this.#assertReadable("assignment");
    await this.engine.kernel.settled();
    const request = this.engine.kernel.committed<RequestRecord>(keys.request(requestId));
    if (request) return this.engine.handle(request);
    throw new HerdError({
      category: "target_not_found",
      reason: "target_not_found",
      message: `There is no assignment ${JSON.stringify(requestId)} in this store`,
      nextAction: "use the requestId that assign gave; finished ones are kept for the time set in retention",
      operation: "assignment",
    });
  }

  on<Name extends HerdEventName>(event: Name, listener: (event: HerdEvents[Name]) => void): () => void {
    return this.engine.events.on(event, listener);
  }

  async tick(now?: Date): Promise<void> {
    this.#assertOpen("tick");
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
    this.engine.deliveries.close();
    this.engine.functions.stopAll("parked", "The process ended.");
    await this.engine.kernel.abandon();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(graceMs: number): Promise<void> {
    this.#status = "closing";
    clearInterval(this.#timer);
    const { deliveries, functions, backends, kernel, sessions } = this.engine;
    this.engine.leave(herdClosed("closing", "wait"));
    deliveries.close();
    await functions.close(graceMs);
    await backends.close(graceMs);
    if (!kernel.fence) {
      await kernel.settled();
      await sessions.flush(graceMs);
    }
    await kernel.close();
    this.#status = "closed";
  }

  #attach(by: Controller, receiver: OwnerOptions): () => void {
    this.#assertOpen("owner");
    return this.engine.deliveries.attach(by.owner, receiver, receiver.replace === true);
  }

  #assertReadable(operation: string): void {
    if (this.#status !== "open") throw herdClosed(this.#status, operation);
  }

  #assertOpen(operation: string): void {
    this.#assertReadable(operation);
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

function unavailable(cause: unknown): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "store_unavailable",
    message: `The store cannot be opened: ${messageOf(cause)}`,
    nextAction: "use a directory that this process may write, or make this one usable",
    operation: "createHerd",
    cause,
  });
}

function storeLocked({ location, holder }: StoreLockedError, waitedMs: number): HerdError {
  const who = holder
    ? `process ${holder.pid} (${holder.command}), since ${holder.since}`
    : "another process that left no name";
  return new HerdError({
    category: "worker_busy",
    reason: "store_locked",
    message: `The store at ${location} is in use by ${who}${waitedMs > 0 ? `; waited ${waitedMs} ms` : ""}`,
    nextAction: "end that process, use another directory, or raise waitForLockMs if it is about to close",
    operation: "createHerd",
    details: { location, ...(holder && { holder }) },
  });
}
