import type { AnyActorRef, InspectionEvent } from "xstate";
import { countChildren, isResting, publicState, statePath } from "../../machines/projection.ts";
import type { Children, SupervisorEvent, WorkerContext, WorkerEvent, WorkerFact } from "../../machines/vocabulary.ts";
import { keys } from "../store/keys.ts";
import type { Write } from "../store/committer.ts";
import { parentPath, runIdOf, type ActorRow, type Tree, type WorkerView } from "./tree.ts";

/** A fact with the worker that told it, as it is after the step so far. */
export interface Told {
  fact: WorkerFact;
  worker: { path: string; context: WorkerContext };
}

/** A write with the object that it was made from. */
export type Recorded = Write & { record: unknown };

export interface StateChange {
  runId: string;
  label: string;
  agent: string;
  from: string | undefined;
  to: string;
}

/** Turns a fact into records, and may send further events. */
export type Recorder = (told: Told, step: Step) => void;

/**
 * One command's whole effect on a tree: synchronous, and committed as one batch. While it runs, the tree's
 * inspection feed reports here which actors were touched and which facts they told.
 */
export class Step {
  readonly tree: Tree;
  /** UTC milliseconds, the same for everything in this step. */
  readonly now: number;
  readonly #read: (key: string) => unknown;
  readonly #writes = new Map<string, Recorded>();
  readonly #afterCommit: (() => void)[] = [];
  readonly #ifUndone: (() => void)[] = [];
  readonly #touched = new Set<string>();
  readonly #told: Told[] = [];
  readonly #notesChanges: boolean;
  #sent = false;
  #failure: { error: unknown } | undefined;

  /** @param notesChanges somebody wants to hear of changed states. */
  constructor(tree: Tree, now: number, read: (key: string) => unknown, notesChanges: boolean) {
    this.#notesChanges = notesChanges;
    this.tree = tree;
    this.now = now;
    this.#read = read;
  }

  /** True once an actor got an event: from then on a throw means the tree must be read again. */
  get dirty(): boolean {
    return this.#sent;
  }

  /** What was written, as text and as objects; a deleted row has neither. */
  get writes(): Recorded[] {
    return [...this.#writes.values()];
  }

  get afterCommit(): readonly (() => void)[] {
    return this.#afterCommit;
  }

  /** What the chart would do with an event now. */
  can(runId: string, event: WorkerEvent): boolean {
    const path = this.tree.paths.get(runId);
    const snapshot = path === undefined ? undefined : this.tree.actors.get(path)?.getSnapshot();
    return snapshot?.status === "active" && snapshot.can(event);
  }

  worker(runId: string): WorkerView | undefined {
    return this.tree.worker(runId);
  }

  /** Sends an event to a worker. @throws what a guard or an assignment of the chart threw. */
  send(runId: string, event: WorkerEvent): void {
    const path = this.tree.paths.get(runId);
    const actor = path === undefined ? undefined : this.tree.actors.get(path);
    if (actor === undefined) throw new Error(`no live worker has run id ${runId}`);
    this.#deliver(actor, event);
  }

  /** Sends an event to whoever stands at a path: the supervisor at the empty one. */
  sendTo(path: string, event: SupervisorEvent): void {
    const actor = this.tree.actors.get(path);
    if (actor === undefined) throw new Error(`no live actor at ${path || "the root"}`);
    this.#deliver(actor, event);
  }

  read<T>(key: string): T | undefined {
    const own = this.#writes.get(key);
    return (own ? own.record : this.#read(key)) as T | undefined;
  }

  /** Writes a record. It must not be changed afterwards. */
  put(key: string, record: unknown): void {
    this.#writes.set(key, { type: "put", key, value: JSON.stringify(record), record });
  }

  del(key: string): void {
    this.#writes.set(key, { type: "del", key, record: undefined });
  }

  /** Runs once the batch is on disk, in the order of the calls; never when it is undone. */
  after(task: () => void): void {
    this.#afterCommit.push(task);
  }

  /** Runs when the step is undone, so that what was reserved outside the store is given back. */
  ifUndone(task: () => void): void {
    this.#ifUndone.push(task);
  }

  /** The command failed or could not be stored. */
  undo(): void {
    for (const task of this.#ifUndone.splice(0)) task();
  }

  /** The kernel's one observer on the actor system. It never throws. */
  observe(event: InspectionEvent): void {
    const actor = event.actorRef as AnyActorRef;
    if (event.type === "@xstate.snapshot") {
      this.#touched.add(this.tree.pathOf(actor));
    } else if (event.type === "@xstate.action") {
      if (event.action.type === "xstate.emit") {
        const { event: fact } = event.action.params as unknown as { event: WorkerFact };
        const path = this.tree.pathOf(actor);
        this.#told.push({ fact, worker: { path, context: actor.getSnapshot().context } });
      }
    } else if (event.type === "@xstate.event" && event.event.type.startsWith("xstate.error.actor")) {
      this.#failure ??= { error: (event.event as unknown as { error: unknown }).error };
    }
  }

  /** Takes a resting worker's row away: its owner has what it was kept for. */
  removeResting(runId: string): void {
    const resting = this.tree.resting.get(runId);
    if (resting === undefined) return;
    this.#sent = true;
    this.#noteChange({ value: "closed", context: resting.context }, JSON.stringify({ settling: "undelivered" }));
    this.tree.resting.delete(runId);
    this.del(keys.actor(this.tree.id, resting.path));
    if (resting.path.includes("/")) this.#touched.add(resting.path);
  }

  /** Lets facts become records and parents hear of their children, until nothing moves any more. */
  settle(record: Recorder): void {
    for (;;) {
      const next = this.#told.shift();
      if (next) record(next, this);
      else if (!this.#tellParents() && !this.#rest()) break;
    }
  }

  /** Workers whose top state this step changed. */
  readonly changes: StateChange[] = [];

  /** Touched actors become rows. */
  capture(): void {
    for (const path of this.#touched) {
      const actor = this.tree.actors.get(path);
      const snapshot = actor?.getSnapshot();
      const key = keys.actor(this.tree.id, path);
      if (snapshot === undefined || snapshot.status !== "active") {
        this.#noteEnd(path, snapshot);
        this.tree.remove(path);
        if (this.tree.written.delete(path) && !this.tree.resting.has(runIdOf(path))) this.del(key);
        continue;
      }
      const value = JSON.stringify(snapshot.value);
      const written = this.tree.written.get(path);
      if (written?.context === snapshot.context && written?.value === value) continue;
      if (path !== "" && written?.value !== value) this.#noteChange(snapshot, written?.value);
      this.tree.written.set(path, { value, context: snapshot.context });
      this.put(key, rowOf(actor as AnyActorRef));
    }
  }

  /** A worker that is gone: the last change of its state. */
  #noteEnd(path: string, snapshot: { value: unknown; context: WorkerContext } | undefined): void {
    const before = this.tree.written.get(path)?.value;
    if (path === "" || before === undefined || snapshot === undefined || this.tree.resting.has(runIdOf(path))) return;
    this.#noteChange({ value: "closed", context: snapshot.context }, before);
  }

  #noteChange(snapshot: { value: unknown; context: WorkerContext }, before: string | undefined): void {
    if (!this.#notesChanges) return;
    const from = before === undefined ? undefined : publicState(statePath(JSON.parse(before)));
    const to = publicState(statePath(snapshot.value as never));
    if (from === to) return;
    const { runId, label, agent } = snapshot.context;
    this.changes.push({ runId, label, agent, from, to });
  }

  /** The first state of a new tree's root is a change too. */
  touchRoot(): void {
    this.#touched.add("");
  }

  #deliver(actor: AnyActorRef, event: WorkerEvent | SupervisorEvent): void {
    this.#sent = true;
    actor.send(event);
    if (this.#failure) throw this.#failure.error;
    const snapshot = actor.getSnapshot();
    if (snapshot.status === "error") throw snapshot.error;
  }

  /** Parents of touched workers learn what their children owe them, leaves first. */
  #tellParents(): boolean {
    const parents = new Set<string>();
    for (const path of this.#touched) if (path.includes("/")) parents.add(parentPath(path));
    let told = false;
    for (const path of parents) {
      const actor = this.tree.actors.get(path);
      const snapshot = actor?.getSnapshot();
      if (actor === undefined || snapshot?.status !== "active") continue;
      const children = countChildren(this.tree.childrenOf(path), this.tree.restingBelow(path));
      if (sameCounts(snapshot.context.children, children)) continue;
      this.#deliver(actor, { type: "children.changed", children });
      told = true;
    }
    return told;
  }

  /** Finished one-shot workers leave the actor system; their rows stay until they are acknowledged. */
  #rest(): boolean {
    let rested = false;
    for (const path of this.#touched) {
      const actor = path === "" ? undefined : this.tree.actors.get(path);
      const snapshot = actor?.getSnapshot();
      if (actor === undefined || snapshot?.status !== "active") continue;
      if (!isResting(statePath(snapshot.value), snapshot.context)) continue;
      this.#noteChange(snapshot, this.tree.written.get(path)?.value);
      this.tree.resting.set(runIdOf(path), { path, context: snapshot.context });
      this.put(keys.actor(this.tree.id, path), rowOf(actor));
      this.sendTo(parentPath(path), { type: "worker.rested", runId: runIdOf(path) });
      this.tree.remove(path);
      rested = true;
    }
    return rested;
  }
}

function rowOf(actor: AnyActorRef): ActorRow {
  const snapshot = actor.getSnapshot();
  const machine = snapshot.machine as { id: string; version?: string };
  return { machine: machine.id, version: machine.version ?? "", value: snapshot.value, context: snapshot.context };
}

function sameCounts(a: Children, b: Children): boolean {
  return a.living === b.living && a.active === b.active && a.undelivered === b.undelivered && a.asking === b.asking;
}
