import { ZodError } from "zod";
import { createActor, type AnyActorRef, type AnyStateNode, type InspectionEvent } from "xstate";
import { isResting, statePath } from "../../machines/projection.ts";
import { leaf, worker } from "../../machines/worker.ts";
import { supervisor } from "../../machines/supervisor.ts";
import { SupervisorContext, WorkerContext } from "../../machines/vocabulary.ts";
import { messageOf } from "../errors.ts";
import { ownerKeyOf } from "../owners.ts";
import type { Row } from "../store/store.ts";
import type { OwnerRef } from "./records.ts";

/** One actor on disk: its snapshot without its children. */
export interface ActorRow {
  machine: string;
  version: string;
  value: unknown;
  context: unknown;
}

/** Longest diagnostic that is shown. */
const DIAGNOSTIC_LIMIT = 256;
const NO_PARENT = "its parent's record is missing or unreadable";

/** A worker whose row cannot be believed; it is shown and never touched. */
export interface UnknownWorker {
  path: string;
  label: string | undefined;
  diagnostic: string;
  /** What its record says, where that can be read and only its ancestry cannot be believed. */
  context?: WorkerContext;
}

/** A finished one-shot worker that waits for its owner's acknowledgement: a row, no actor. */
export interface RestingWorker {
  path: string;
  context: WorkerContext;
}

interface Written {
  value: string;
  context: unknown;
}

/** A live view of a worker. */
export interface WorkerView {
  path: string;
  state: string;
  context: WorkerContext;
}

/** One owner's actor system in memory, read from its rows. */
export class Tree {
  readonly id: string;
  readonly owner: OwnerRef;
  /** What is addressed to its owner goes by this. The tree of a run that a visit started has another id. */
  readonly ownerKey: string;
  readonly root: AnyActorRef;
  /** Actors by path; the root's path is empty, a worker's ends with its run id. */
  readonly actors = new Map<string, AnyActorRef>();
  readonly paths = new Map<string, string>();
  readonly resting = new Map<string, RestingWorker>();
  readonly unknown: UnknownWorker[] = [];
  /** What each row holds on disk or in a queued batch, to leave unchanged rows unwritten. */
  readonly written = new Map<string, Written>();

  constructor(id: string, owner: OwnerRef, rows: readonly Row[], observe: (event: InspectionEvent) => void) {
    this.id = id;
    const assembled = this.#assemble(rows);
    this.owner = assembled?.owner ?? owner;
    this.ownerKey = ownerKeyOf(this.owner);
    this.root = createActor(supervisor, {
      id,
      input: { owner },
      ...(assembled && { snapshot: assembled.snapshot as never }),
      inspect: (event) => {
        if (event.type === "@xstate.actor") this.#add(event.actorRef as AnyActorRef);
        else observe(event);
      },
    });
    // A root without observers reports errors by throwing them into the void.
    this.root.subscribe({ error: () => undefined });
    this.root.start();
    if (assembled) this.#verify(assembled.paths);
  }

  /** Every row must have become a live actor: XState drops what it cannot restore without a word. */
  #verify(paths: Iterable<string>): void {
    for (const path of paths) {
      const snapshot = this.actors.get(path)?.getSnapshot();
      if (snapshot?.status === "active") {
        this.written.set(path, { value: JSON.stringify(snapshot.value), context: snapshot.context });
      } else {
        this.unknown.push({ path, label: undefined, diagnostic: "its record could not be brought back to life" });
        this.remove(path);
      }
    }
  }

  /** Called for every actor that the system creates, restored or spawned. */
  #add(actor: AnyActorRef): void {
    const parent = parentOf(actor);
    const path = parent === undefined ? "" : join(this.pathOf(parent), actor.id);
    this.actors.set(path, actor);
    if (path !== "") this.paths.set(actor.id, path);
  }

  remove(path: string): void {
    this.actors.delete(path);
    this.paths.delete(runIdOf(path));
  }

  pathOf(actor: AnyActorRef): string {
    const parent = parentOf(actor);
    return parent === undefined ? "" : join(this.pathOf(parent), actor.id);
  }

  /** The live worker of a run, or undefined when it has no actor. */
  worker(runId: string): WorkerView | undefined {
    const path = this.paths.get(runId);
    const actor = path === undefined ? undefined : this.actors.get(path);
    return actor && view(path as string, actor);
  }

  /** All live workers, parents before their children. */
  *workers(): Generator<WorkerView> {
    for (const [path, actor] of this.actors) if (path !== "") yield view(path, actor);
  }

  /** The live direct children of a path. */
  *childrenOf(path: string): Generator<WorkerView> {
    const actor = this.actors.get(path);
    if (!actor) return;
    for (const child of Object.values(actor.getSnapshot().children as Record<string, AnyActorRef>)) {
      if (child.getSnapshot().status === "active") yield view(join(path, child.id), child);
    }
  }

  /** How many resting workers a path has. */
  restingBelow(path: string): number {
    let count = 0;
    for (const resting of this.resting.values()) if (parentPath(resting.path) === path) count++;
    return count;
  }

  /** Rows to one snapshot, parents first. A row that cannot be believed becomes `unknown`, with all below it. */
  #assemble(rows: readonly Row[]): { owner: OwnerRef; snapshot: unknown; paths: Iterable<string> } | undefined {
    const nodes = new Map<string, { children: Record<string, unknown> }>();
    let root: { owner: OwnerRef; snapshot: unknown; paths: Iterable<string> } | undefined;
    for (const [key, text] of rows) {
      const path = key.slice(key.indexOf("!", 2) + 1);
      try {
        const row = JSON.parse(text) as ActorRow;
        const snapshot = snapshotOf(row);
        if (path === "") {
          const context = SupervisorContext.parse(row.context) as { owner: OwnerRef };
          root = { owner: context.owner, snapshot, paths: nodes.keys() };
          nodes.set("", snapshot);
        } else {
          const context = WorkerContext.parse(row.context);
          const state = known(worker, row);
          if (isResting(state, context)) {
            this.resting.set(runIdOf(path), { path, context });
            continue;
          }
          const parent = nodes.get(parentPath(path));
          if (parent === undefined) {
            this.unknown.push({ path, label: context.label, diagnostic: NO_PARENT, context });
            continue;
          }
          parent.children[runIdOf(path)] = { snapshot, src: "worker" };
          nodes.set(path, snapshot);
        }
      } catch (error) {
        this.unknown.push({ path, label: labelOf(text), diagnostic: whyUnreadable(error).slice(0, DIAGNOSTIC_LIMIT) });
      }
    }
    this.#nameCircles();
    return root;
  }

  /** Workers that stand below each other have no root that leads to them. */
  #nameCircles(): void {
    const unmatched = new Map(this.unknown.flatMap((row) => (row.context ? [[runIdOf(row.path), row]] : [])));
    const parentOf = ({ path }: UnknownWorker) => unmatched.get(runIdOf(parentPath(path)));
    for (const row of unmatched.values()) {
      const labels = [row.label];
      let at = parentOf(row);
      for (; at !== undefined && at !== row && labels.length <= unmatched.size; at = parentOf(at))
        labels.push(at.label);
      if (at !== row) continue;
      row.diagnostic = `its ancestry is a circle: ${[...labels, row.label].join(" below ")}`.slice(0, DIAGNOSTIC_LIMIT);
    }
  }
}

function view(path: string, actor: AnyActorRef): WorkerView {
  const snapshot = actor.getSnapshot();
  return { path, state: statePath(snapshot.value), context: snapshot.context };
}

function snapshotOf(row: ActorRow) {
  return {
    status: "active",
    value: row.value,
    context: row.context,
    historyValue: {},
    children: {} as Record<string, unknown>,
    output: undefined,
    error: undefined,
  };
}

const states = new WeakMap<object, Set<string>>();

/** The row's state path, if this version of the machine knows it. */
function known(machine: typeof worker | typeof leaf, row: ActorRow): string {
  if (row.version !== machine.version) throw new Error(`machine version ${row.version}, this is ${machine.version}`);
  let paths = states.get(machine);
  if (paths === undefined) {
    paths = new Set(atomicPaths(machine.root));
    states.set(machine, paths);
  }
  const path = statePath(row.value as never);
  if (!paths.has(path)) throw new Error(`state ${path} is not one of this version`);
  return path;
}

function* atomicPaths(node: AnyStateNode): Generator<string> {
  const inner = Object.values(node.states);
  if (inner.length === 0) yield node.path.join(".");
  for (const state of inner) yield* atomicPaths(state);
}

function whyUnreadable(error: unknown): string {
  if (!(error instanceof ZodError)) return messageOf(error);
  return error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
}

function labelOf(text: string): string | undefined {
  return /"label":"([a-z][a-z0-9_-]{0,31})"/.exec(text)?.[1];
}

/** XState keeps the parent private; the kernel alone looks at it. */
function parentOf(actor: AnyActorRef): AnyActorRef | undefined {
  return (actor as unknown as { _parent?: AnyActorRef })._parent;
}

export function join(parent: string, id: string): string {
  return parent === "" ? id : `${parent}/${id}`;
}

export function parentPath(path: string): string {
  return path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "";
}

export function runIdOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
