import type { Question, ReplyReceipt } from "../asks/question.ts";
import { receiptOf, reply, replyFields } from "../asks/reply.ts";
import type { Assignment, AssignmentStatus, OwnerEvent } from "../deliveries/assignment.ts";
import { acknowledgeIn } from "../deliveries/record.ts";
import type { Result } from "../deliveries/result.ts";
import { HerdError } from "../errors.ts";
import type { AskRecord, DeliveryRecord, OutcomeRecord, RequestRecord } from "../kernel/records.ts";
import { closeIn, dropUnread } from "../subagent/close.ts";
import { descendants } from "../subagent/target.ts";
import { keys, prefixed } from "../store/keys.ts";
import type { Execution } from "./execution.ts";
import type { AssignEntry, StepEntry } from "./journal.ts";

type QuestionHandler = (question: Question) => unknown;

/** The children of one run, as its function sees them: their questions, and their results once each. */
export class Children {
  readonly #execution: Execution;
  readonly #handlers = new Map<string, QuestionHandler>();
  /** Questions that a handler of this execution has in hand, or failed on. */
  readonly #handled = new Map<string, { error?: unknown }>();

  /** How often each child was asked for news, and for its result, in this execution. */
  readonly #looks = new Map<string, number>();

  #any = false;

  constructor(execution: Execution) {
    this.#execution = execution;
  }

  /** The handle of a child that was started under a journal key. */
  handle(key: string, entry: AssignEntry, onQuestion: QuestionHandler | undefined): Assignment {
    this.#any = true;
    if (onQuestion) this.#handlers.set(entry.requestId, onQuestion);
    queueMicrotask(() => this.dispatch());
    return new ChildHandle(this.#execution, this, key, entry);
  }

  /** Hands open questions to their handlers, each once. */
  dispatch(): void {
    if (this.#execution.revoked) return;
    for (const [requestId, handler] of this.#handlers) {
      const question = this.openQuestion(requestId);
      if (question === undefined || this.#handled.has(question.askId)) continue;
      this.#handled.set(question.askId, {});
      void this.#execution.during("handlers", async () => {
        try {
          await this.#execution.proceed();
          await handler(question);
        } catch (error) {
          this.#handled.set(question.askId, { error });
        }
      });
    }
  }

  /** The committed open question of a child. */
  openQuestion(requestId: string): Question | undefined {
    const { engine, treeId } = this.#execution;
    const request = engine.request(requestId);
    const child = request && engine.kernel.loaded(treeId)?.worker(request.runId);
    // What it asks of somebody else is not its parent's to answer.
    const askId = child?.context.ask?.group === undefined ? child?.context.ask?.askId : undefined;
    const ask = askId === undefined ? undefined : engine.kernel.committed<AskRecord>(keys.ask(askId));
    if (request === undefined || ask === undefined || ask.answer || ask.abandoned) return undefined;
    return this.#questionOf(ask, request);
  }

  /**
   * The question that a look at a child gave in an earlier execution, whatever has become of it since: a re-run goes the
   * same way.
   * @returns the key of this look, and the question if it gave one.
   */
  look(key: string, what: "next" | "waiting"): { key: string; question?: Question } {
    const { engine, journal } = this.#execution;
    const name = `${key}~${what}`;
    const number = (this.#looks.get(name) ?? 0) + 1;
    this.#looks.set(name, number);
    const lookKey = `${name}#${number}`;
    const given = journal.get(lookKey) as StepEntry | undefined;
    const ask = given && engine.kernel.committed<AskRecord>(keys.ask(given.value as string));
    const request = ask && engine.request(ask.requestId);
    return { key: lookKey, ...(request && { question: this.#questionOf(ask, request) }) };
  }

  /** Keeps what a look at a child gave. */
  async looked(lookKey: string, { askId }: Question): Promise<void> {
    const { request, journal } = this.#execution;
    const entry: StepEntry = { kind: "step", value: askId };
    await this.#execution.record("step", (step) => step.put(keys.journal(request.requestId, lookKey), entry));
    journal.set(lookKey, entry);
  }

  /** The reply that this run gave before, in these words: only it may answer its children, so it is the same one. */
  answeredBefore(askId: string, message: unknown): ReplyReceipt | undefined {
    const { engine, runId } = this.#execution;
    const ask = engine.kernel.committed<AskRecord>(keys.ask(askId));
    return ask?.owner === runId && ask.answer?.message === message ? receiptOf(engine, ask) : undefined;
  }

  #questionOf(ask: AskRecord, request: RequestRecord): Question {
    const { engine } = this.#execution;
    return { ...engine.question(ask, request, 1), reply: (message, options) => this.#reply(ask, message, options) };
  }

  /** What keeps a question from being answered here, if anything does. */
  unanswerable(question: Question): { error?: unknown } | undefined {
    if (!this.#handlers.has(question.requestId)) return {};
    const handled = this.#handled.get(question.askId);
    return handled && "error" in handled ? handled : undefined;
  }

  /** Takes a child's end into the journal and acknowledges it, in one batch. */
  async consume(key: string, entry: AssignEntry, outcome: OutcomeRecord): Promise<void> {
    const { request, runId } = this.#execution;
    await this.#execution.gate();
    await this.#execution.command("result", (step) => {
      const parent = step.worker(runId);
      if (parent?.state === "blocked.onChildren") {
        step.send(runId, { type: "turn.started", at: step.now });
        this.#execution.functions.order(step, parent);
      }
      step.put(keys.journal(request.requestId, key), { ...entry, outcome } satisfies AssignEntry);
      const delivery = step.read<DeliveryRecord>(keys.delivery(runId, outcome.deliveryId ?? ""));
      if (delivery) acknowledgeIn(this.#execution.engine, step, delivery);
    });
    entry.outcome = outcome;
  }

  /**
   * Goes to `blocked` when the run has nothing to do but to wait for its children.
   * @returns `asleep` when somebody below works and will wake it; `watching` when nobody does, so that it must stay in
   * memory and be started at the next opening; undefined when it does not wait for children.
   */
  async awaited(): Promise<"asleep" | "watching" | undefined> {
    const { engine, treeId, runId } = this.#execution;
    return engine.kernel.run(
      treeId,
      (step) => {
        const worker = step.worker(runId);
        if (worker === undefined) return undefined;
        const awake = worker.context.children.active > 0 ? ("asleep" as const) : ("watching" as const);
        if (worker.state === "blocked.onChildren") return awake;
        if (!step.can(runId, { type: "children.awaited" })) return undefined;
        step.send(runId, { type: "children.awaited" });
        if (awake === "asleep") step.del(keys.order(runId, "run"));
        return awake;
      },
      { operation: "wait" },
    );
  }

  /** The function is over: finished children that it did not read are read for it. */
  async readAll(): Promise<void> {
    const { engine, treeId, runId } = this.#execution;
    const tree = await engine.kernel.tree(treeId);
    if (!this.#any && tree.restingBelow(tree.paths.get(runId) ?? "") === 0) return;
    // Also those of children that it closed before it read them.
    const unread = await engine.kernel.range(prefixed(keys.delivery(runId, "")));
    await engine.kernel.run(
      treeId,
      (step) => {
        dropUnread(engine, step, step.tree.paths.get(runId) ?? runId);
        for (const [, text] of unread) {
          const delivery = JSON.parse(text) as DeliveryRecord;
          if (delivery.kind === "result") acknowledgeIn(engine, step, delivery);
        }
      },
      { operation: "settle" },
    );
  }

  /** The function threw: nobody is left to answer or read its children. */
  async closeAll(): Promise<void> {
    const { engine, treeId, runId } = this.#execution;
    const tree = await engine.kernel.tree(treeId);
    const path = tree.paths.get(runId) ?? runId;
    if (descendants(tree, path).length === 0 && tree.restingBelow(path) === 0) return;
    const reason = { code: "parent_closed" as const, message: "Its parent worker failed." };
    await engine.kernel.run(
      treeId,
      (step) => {
        for (const child of descendants(step.tree, path)) closeIn(engine, step, child, reason);
        dropUnread(engine, step, path);
      },
      { operation: "close" },
    );
  }

  async #reply(ask: AskRecord, message: Parameters<Question["reply"]>[0], options: Parameters<Question["reply"]>[1]) {
    const { engine, runId, request } = this.#execution;
    await this.#execution.gate();
    const before = options?.id === undefined && this.answeredBefore(ask.askId, message);
    if (before) return before;
    return this.#execution.during("running", () =>
      reply(engine, {
        ...replyFields({ ...options, askId: ask.askId, message }),
        owner: runId,
        cwd: request.cwd,
        operation: "reply",
      }),
    );
  }
}

/** A child as its parent's function holds it. Reading the result consumes it, once, in the parent's journal. */
class ChildHandle implements Assignment {
  readonly requestId: string;
  readonly label: string;
  readonly sessionId: string;
  readonly #execution: Execution;
  readonly #children: Children;
  readonly #key: string;
  readonly #entry: AssignEntry;
  readonly #request: RequestRecord;
  readonly #seen = new Set<string>();
  #reading: Promise<void> | undefined;

  constructor(execution: Execution, children: Children, key: string, entry: AssignEntry) {
    const request = execution.engine.request(entry.requestId);
    if (request === undefined) throw new Error(`the child ${entry.requestId} has no record`);
    this.requestId = entry.requestId;
    this.label = request.label;
    this.sessionId = request.sessionId;
    this.#request = request;
    this.#execution = execution;
    this.#children = children;
    this.#key = key;
    this.#entry = entry;
  }

  async status(): Promise<AssignmentStatus> {
    return this.#execution.engine.status(this.#request);
  }

  async next(options: { signal?: AbortSignal } = {}): Promise<OwnerEvent> {
    const look = this.#children.look(this.#key, "next");
    const event =
      look.question === undefined
        ? await this.#await(options.signal, () => {
            const question = this.#children.openQuestion(this.requestId);
            return question && !this.#seen.has(question.askId) ? { type: "question", question } : undefined;
          })
        : { type: "question" as const, question: look.question };
    if (event.type === "result") return event;
    this.#seen.add(event.question.askId);
    if (look.question === undefined) await this.#children.looked(look.key, event.question);
    return event;
  }

  async result(options: { signal?: AbortSignal } = {}): Promise<Result> {
    const look = this.#children.look(this.#key, "waiting");
    if (look.question) throw questionWaiting(look.question, undefined);
    let why: { error?: unknown } | undefined;
    const event = await this.#await(options.signal, () => {
      const question = this.#children.openQuestion(this.requestId);
      why = question && this.#children.unanswerable(question);
      return question && why && { type: "question", question };
    });
    if (event.type === "result") return event.result;
    await this.#children.looked(look.key, event.question);
    throw questionWaiting(event.question, why?.error);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<OwnerEvent> {
    for (;;) {
      const event = await this.next();
      yield event;
      if (event.type === "result") return;
    }
  }

  async #await(signal: AbortSignal | undefined, look: () => OwnerEvent | undefined): Promise<OwnerEvent> {
    const { engine } = this.#execution;
    for (;;) {
      await this.#execution.live();
      signal?.throwIfAborted();
      if (this.#entry.outcome) return { type: "result", result: engine.result(this.#request, this.#entry.outcome, 1) };
      const outcome = engine.kernel.committed<OutcomeRecord>(keys.outcome(this.requestId));
      if (outcome) {
        await this.#execution.proceed();
        await (this.#reading ??= this.#children.consume(this.#key, this.#entry, outcome));
        continue;
      }
      const found = look();
      if (found) return found;
      await this.#news(signal);
    }
  }

  async #news(signal: AbortSignal | undefined): Promise<void> {
    const wake = () => this.#execution.wake();
    signal?.addEventListener("abort", wake);
    try {
      await this.#execution.news("children");
    } finally {
      signal?.removeEventListener("abort", wake);
    }
  }
}

function questionWaiting(question: Question, cause: unknown): HerdError {
  const error = new HerdError({
    category: "worker_busy",
    reason: "question_waiting",
    message: `The child "${question.label}" waits with a question: ${JSON.stringify(question.question)}`,
    nextAction: "reply to it (error.question.reply), then read the result again; or assign it with onQuestion",
    operation: "result",
    ids: { askId: question.askId, requestId: question.requestId, label: question.label },
    cause,
  });
  return Object.assign(error, { question });
}
