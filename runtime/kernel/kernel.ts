import { HerdError, internalFailure, messageOf } from "../errors.ts";
import { Committer } from "../store/committer.ts";
import { keys, prefixed } from "../store/keys.ts";
import { readSequence, sequenceOperation } from "../store/sequence.ts";
import type { Operation, Range, Row, Store } from "../store/store.ts";
import { FORMAT, unknownFormat, type KernelOptions, type StepOptions } from "./options.ts";
import { RecentRecords } from "./recent.ts";
import type { OwnerRef } from "./records.ts";
import { Step } from "./step.ts";
import { Tree } from "./tree.ts";

/** Runs commands on trees: reads a tree when it is first needed, commits every step as one batch, forgets idle trees. */
export class Kernel {
  readonly store: Store;
  readonly #options: KernelOptions;
  readonly #trees = new Map<string, Tree>();
  /** Reasons to stay in memory: uncommitted rows, running functions, handlers at work. */
  readonly #pins = new Map<string, number>();
  readonly #recent = new RecentRecords();
  readonly #activating = new Map<string, Promise<Tree>>();
  /** Trees dropped with uncommitted rows: they are read again only after everything queued is on disk. */
  readonly #stale = new Set<string>();
  /** Trees that are not what is on disk: whoever holds one while it awaits something else reads it again. */
  readonly #dropped = new WeakSet<Tree>();
  #committer!: Committer;
  /** The steps that run now: one, or one for each tree of a command that touches several. */
  #steps: readonly Step[] = [];
  #epoch = 0;
  #ended = false;

  constructor(store: Store, options: KernelOptions) {
    this.store = store;
    this.#options = options;
  }

  /** How often this store was opened for writing, this time included. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Nothing is read or written any more. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Commands are taken: it was opened, and not ended since. */
  get takes(): boolean {
    return this.#committer !== undefined && !this.#ended;
  }

  get fence(): HerdError | undefined {
    return this.#committer.fence;
  }

  now(): number {
    return this.#options.now();
  }

  /** Opens the store: format, sequence and epoch, and nothing that grows with what is parked. */
  async open(): Promise<void> {
    await this.store.open();
    try {
      const sequence = await readSequence(this.store);
      const format = this.store.get(keys.meta("format"));
      if (format !== undefined && Number(format) !== FORMAT) throw unknownFormat(format);
      this.#epoch = Number(this.store.get(keys.meta("epoch")) ?? 0);
      this.#committer = new Committer(this.store, this.#options.passive ? sequence : sequence + 1, {
        ...this.#options,
        fenced: (error) => this.#options.fenced(error),
      });
      if (this.#options.passive) return;
      this.#epoch++;
      await this.store.batch(
        [
          { type: "put", key: keys.meta("format"), value: String(FORMAT) },
          { type: "put", key: keys.meta("epoch"), value: String(this.#epoch) },
          sequenceOperation(sequence + 1),
        ],
        { sync: this.#options.sync },
      );
    } catch (error) {
      await this.store.close();
      throw error;
    }
  }

  /** What a command would see: queued writes over committed ones. */
  read<T>(key: string): T | undefined {
    return (this.#recent.get(key) as T | undefined) ?? parsed<T>(this.#committer.get(key));
  }

  /** What is on disk: the only thing that may be told. */
  committed<T>(key: string): T | undefined {
    const recent = this.#committer.queues(key) ? undefined : (this.#recent.get(key) as T | undefined);
    return recent ?? parsed<T>(this.store.get(key));
  }

  /** Rows on disk, after everything queued before the call. */
  async range(bounds: Range): Promise<Row[]> {
    for (;;) {
      await this.settled();
      try {
        return await this.store.range(bounds);
      } catch (error) {
        // A batch that failed meanwhile is being written again, for which the store is closed and opened.
        if (this.#committer.recovery === undefined) throw error;
      }
    }
  }

  /** Resolves when everything queued so far is on disk: refusals and lists wait for it. */
  async settled(): Promise<void> {
    await this.#committer.settled();
    await this.ready();
  }

  /** Resolves when the store can be read: it cannot while a failed batch is being recovered. */
  async ready(): Promise<void> {
    do await this.#committer.recovery;
    while (this.#committer.recovery);
    if (this.fence) throw this.fence;
  }

  /** A failed batch is being written again, and the store may be closed: who reads waits until it is `ready`. */
  get recovers(): boolean {
    return this.#committer.recovery !== undefined;
  }

  get idle(): boolean {
    return this.#committer.idle && this.#activating.size === 0;
  }

  /** The tree if it is in memory. */
  loaded(treeId: string): Tree | undefined {
    return this.#trees.get(treeId);
  }

  /** Reads a tree into memory unless it is there. */
  async tree(treeId: string, owner: OwnerRef = { id: "" }): Promise<Tree> {
    return this.#trees.get(treeId) ?? this.#activate(treeId, owner);
  }

  /**
   * Runs one command on a tree. Its body is synchronous; a refusal is thrown before it sends an event.
   *
   * Resolves when the effect is on disk. Rejects with the refusal, after everything it may be based on is on
   * disk; or with `internal_failure` when the command failed and was undone.
   */
  run<T>(treeId: string, body: (step: Step) => T, options: StepOptions): Promise<T> {
    try {
      this.#committer.admit(options.operation, options.refusable);
    } catch (error) {
      return Promise.reject(error);
    }
    const tree = this.#trees.get(treeId);
    if (tree === undefined || this.#committer.recovery) return this.#runLater(treeId, body, options);
    return this.#runOn(tree, body, options);
  }

  async #runLater<T>(treeId: string, body: (step: Step) => T, options: StepOptions): Promise<T> {
    // Pinned, so that the tree that was read is the one in memory when the step runs.
    this.pin(treeId);
    try {
      for (;;) {
        if (this.#committer.recovery) await this.ready();
        const tree = this.#trees.get(treeId) ?? (await this.#activate(treeId, options.owner ?? { id: "" }));
        this.#committer.admit(options.operation, options.refusable);
        if (!this.#dropped.has(tree)) return this.#runOn(tree, body, options);
      }
    } finally {
      this.unpin(treeId);
    }
  }

  /**
   * Runs one command on several trees: they are read first, then its body runs in one synchronous section with a step for
   * each, in the order given, and all of it is one batch.
   *
   * @param trees their ids, each once, with whose they are where they may be new.
   */
  async runAcross<T>(
    trees: readonly { id: string; owner?: OwnerRef }[],
    body: (steps: readonly Step[]) => T,
    options: StepOptions,
  ): Promise<T> {
    for (const { id } of trees) this.pin(id);
    try {
      for (;;) {
        if (this.#committer.recovery) await this.ready();
        const read: Tree[] = [];
        for (const { id, owner = { id: "" } } of trees) read.push(await this.tree(id, owner));
        this.#committer.admit(options.operation, options.refusable);
        // One may have been dropped while another was read.
        const isCurrent = read.every((tree) => !this.#dropped.has(tree) && (this.#trees.get(tree.id) ?? tree) === tree);
        if (isCurrent && !this.#committer.recovery) return await this.#runOnAll(read, body, options);
      }
    } finally {
      for (const { id } of trees) this.unpin(id);
    }
  }

  #runOn<T>(tree: Tree, body: (step: Step) => T, options: StepOptions): Promise<T> {
    return this.#runOnAll([tree], ([step]) => body(step as Step), options);
  }

  #runOnAll<T>(trees: readonly Tree[], body: (steps: readonly Step[]) => T, options: StepOptions): Promise<T> {
    const now = this.#options.now();
    const steps = trees.map((tree) => new Step(tree, now, (key) => this.read(key), this.#options.notesChanges()));
    let value: T;
    try {
      value = this.#take(steps, body);
    } catch (error) {
      for (const step of steps) step.undo();
      const failure = error instanceof HerdError ? error : internalFailure(options.operation, error);
      const dirty = steps.filter((step) => step.dirty);
      for (const { tree } of dirty) this.#drop(tree);
      if (dirty.length > 0) return Promise.reject(failure);
      return this.#committer.settled().then(() => Promise.reject(failure));
    }
    for (const tree of trees) this.#touch(tree);
    const operations = steps.flatMap((step) => step.writes);
    const afterCommit = steps.flatMap((step) => step.afterCommit);
    for (const write of operations) {
      this.#recent.set(write.key, write.record, write.type === "put" ? write.value.length : 0);
    }
    if (operations.length === 0 && afterCommit.length === 0) {
      return options.lazy ? Promise.resolve(value) : this.#committer.settled().then(() => value);
    }
    for (const tree of trees) this.pin(tree.id);
    return new Promise((resolve, reject) => {
      this.#committer.submit({
        operations,
        groups: trees.map((tree) => tree.id),
        ...(options.lazy && { lazy: true }),
        landed: () => {
          for (const tree of trees) this.unpin(tree.id);
          resolve(value);
          for (const task of afterCommit) this.#carryOut(task);
        },
        undone: (error) => {
          for (const step of steps) step.undo();
          for (const { key } of operations) this.#recent.delete(key);
          for (const tree of trees) {
            this.unpin(tree.id);
            this.#drop(tree);
          }
          reject(error);
        },
      });
      if (options.lazy) resolve(value);
    });
  }

  /** What follows a commit is told to others: their faults are theirs, and stop no other command. */
  #carryOut(task: () => void): void {
    try {
      task();
    } catch (error) {
      process.emitWarning(`what follows a commit failed: ${messageOf(error)}`, { type: "HerdBackgroundWarning" });
    }
  }

  /** For work that nobody waits for: it may end with the herd, anything else is one process warning. */
  inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (this.#ended || this.fence || (error instanceof HerdError && error.reason === "herd_closed")) return;
      process.emitWarning(`background work failed: ${messageOf(error)}`, { type: "HerdBackgroundWarning" });
    });
  }

  /** Writes rows that belong to no tree. */
  write(operations: Operation[]): Promise<void> {
    this.#committer.admit("write");
    for (const { key } of operations) this.#recent.delete(key);
    return new Promise((resolve, reject) =>
      this.#committer.submit({ operations, groups: ["rows"], landed: resolve, undone: reject }),
    );
  }

  /** The trees in memory. */
  trees(): IterableIterator<Tree> {
    return this.#trees.values();
  }

  /** Keeps a tree in memory until the matching `unpin`. */
  pin(treeId: string): void {
    this.#pins.set(treeId, (this.#pins.get(treeId) ?? 0) + 1);
  }

  unpin(treeId: string): void {
    const left = (this.#pins.get(treeId) ?? 1) - 1;
    if (left > 0) this.#pins.set(treeId, left);
    else this.#pins.delete(treeId);
    if (this.#trees.size > this.#options.maxTrees) this.#forgetIdle();
  }

  /** Whether the herd that had the store before closed it in order. */
  get cleanBefore(): boolean {
    return Number(this.store.get(keys.meta("clean")) ?? 0) === this.#epoch - 1;
  }

  /** Writes what is queued, notes that this was no crash, and releases the store. */
  async close(): Promise<void> {
    this.#ended = true;
    // Where nothing ran, it is still open whether what ran before that ended in order.
    const inOrder = this.#options.executes || this.cleanBefore;
    if (!this.#options.passive && !this.fence && inOrder) {
      this.#committer.submit({
        operations: [{ type: "put", key: keys.meta("clean"), value: String(this.#epoch) }],
        groups: ["meta"],
        landed: () => undefined,
        undone: () => undefined,
      });
    }
    if (!this.fence) await this.#committer.settled();
    this.#committer.end();
    await this.store.close();
  }

  /** Drops everything in memory as the end of the process would; what is not on disk is gone. */
  async abandon(): Promise<void> {
    this.#ended = true;
    this.#committer.abandon();
    this.#trees.clear();
    this.#recent.clear();
    await this.store.close();
  }

  #take<T>(steps: readonly Step[], body: (steps: readonly Step[]) => T): T {
    this.#steps = steps;
    try {
      const value = body(steps);
      for (const step of steps) {
        // The first command of a new owner brings its root along.
        if (step.dirty && !step.tree.written.has("")) step.touchRoot();
        step.settle(this.#options.record);
        step.capture();
        this.#options.captured(step);
      }
      return value;
    } finally {
      this.#steps = [];
    }
  }

  #activate(treeId: string, owner: OwnerRef): Promise<Tree> {
    const underWay = this.#activating.get(treeId);
    if (underWay !== undefined) return underWay.then((tree) => this.#named(tree, owner));
    const activation = this.#readTree(treeId, owner).finally(() => this.#activating.delete(treeId));
    this.#activating.set(treeId, activation);
    return activation;
  }

  /** What somebody who only looks reads of a new owner is nobody's: whoever knows whose it is reads it again. */
  #named(tree: Tree, owner: OwnerRef): Tree | Promise<Tree> {
    if (owner.id === "" || tree.owner.id !== "") return tree;
    return this.#trees.get(tree.id) ?? this.#activate(tree.id, owner);
  }

  async #readTree(treeId: string, owner: OwnerRef): Promise<Tree> {
    if (this.#stale.delete(treeId)) await this.settled();
    const rows = await this.store.range(prefixed(keys.actor(treeId, "")));
    const tree: Tree = new Tree(treeId, owner, rows, (event) => {
      // While the tree is being built no step runs, and there is no tree to compare with.
      for (const step of this.#steps) if (step.tree === tree) step.observe(event);
    });
    // Who only looks need not say whose tree it is; one that does not exist yet is not kept under no name.
    if (rows.length > 0 || owner.id !== "") this.#trees.set(treeId, tree);
    return tree;
  }

  #touch(tree: Tree): void {
    if (!this.#trees.delete(tree.id)) return;
    this.#trees.set(tree.id, tree);
  }

  /** Memory is ahead of the disk: the next command reads the tree again. */
  #drop(tree: Tree): void {
    if (this.#trees.get(tree.id) === tree) this.#trees.delete(tree.id);
    this.#stale.add(tree.id);
    this.#dropped.add(tree);
  }

  #forgetIdle(): void {
    for (const id of this.#trees.keys()) {
      if (this.#trees.size <= this.#options.maxTrees) return;
      if (!this.#pins.has(id)) this.#trees.delete(id);
    }
  }
}

function parsed<T>(text: string | undefined): T | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as T);
}
