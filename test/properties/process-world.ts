/** Workers in processes as a property plays them: the moves, and how everybody comes to an end after them. */
import * as fc from "fast-check";
import { HerdError, type AssignRequest } from "pi-herd";
import { createTestHerd, type ScriptedAgent, type ScriptedRun, type TestHerd } from "pi-herd/testing";
import { CATEGORIES } from "../../runtime/errors.ts";
import { does } from "../conformance/support.ts";

const agents = { leaf: does, lead: { ...does, subagents: ["leaf"] } };

const OWNERS = ["assign", "assignLive", "assignSession", "steer", "reply", "close"] as const;
const PROCESSES = [
  "accept",
  "failStart",
  "turn",
  "ask",
  "endTurn",
  "settle",
  "settleBlank",
  "take",
  "hear",
  "identify",
  "mistake",
  "die",
  "exit",
  "failStop",
  "work",
] as const;
const PARENTS = ["closeChild", "steerChild", "answerChild"] as const;
const CIRCUMSTANCES = ["hide", "show", "slowStarts", "quickStarts", "slowStops", "quickStops"] as const;
const PROGRAM = ["crash", "vanish", "blackout"] as const;
const TIMES = ["250ms", "1s", "31s", "6m"] as const;

/** One move: what, of which of the runs there are, how, and for how many turns of the event loop nothing follows. */
export type Move = readonly [what: string, which: number, how: number, turns: number];

const move = (names: readonly string[]) =>
  fc.tuple(
    fc.constantFrom(...names),
    fc.nat({ max: 5 }),
    fc.nat({ max: 15 }),
    // Mostly until nothing happens, at times in the middle of what the move before began.
    fc.oneof({ arbitrary: fc.constant(200), weight: 3 }, { arbitrary: fc.nat({ max: 4 }), weight: 1 }),
  );

export const moves: fc.Arbitrary<Move[]> = fc.array(
  fc.oneof(
    { arbitrary: move(["assign"]), weight: 6 },
    { arbitrary: move(["delegate"]), weight: 4 },
    { arbitrary: move(OWNERS), weight: 7 },
    { arbitrary: move(PROCESSES), weight: 18 },
    { arbitrary: move(PARENTS), weight: 3 },
    { arbitrary: move(CIRCUMSTANCES), weight: 2 },
    { arbitrary: move(PROGRAM), weight: 2 },
    { arbitrary: move(TIMES), weight: 2 },
  ),
  { maxLength: 45, size: "max" },
);

type Answer = { requestId: string } | { failure: HerdError };

/** A herd with one owner and everything that the moves have led to. */
export class World {
  readonly t: TestHerd;
  readonly #scripts: readonly ScriptedAgent[];
  /** What was thrown that nobody may throw. */
  readonly faults: unknown[] = [];
  /** Every request id that an assign was answered with. */
  readonly told = new Set<string>();
  /** The first answer to every caller id, and what was asked for. */
  readonly #byId = new Map<string, { request: AssignRequest<string>; answer?: Answer }>();
  readonly #sessions: string[] = [];
  #crashing = false;
  /** The labels that the owner wanted closed. */
  readonly closed = new Set<string>();

  constructor(t: TestHerd) {
    this.t = t;
    this.#scripts = [t.scripted("leaf"), t.scripted("lead")];
  }

  static async open(): Promise<World> {
    return new World(await createTestHerd({ agents }));
  }

  /** The runs whose process is there, parents and the newest first. */
  get #alive(): ScriptedRun[] {
    return this.#runs.filter((run) => this.#identity(run) !== "absent").toReversed();
  }

  get #runs(): ScriptedRun[] {
    return this.#scripts.flatMap(({ runs }) => runs);
  }

  #scriptOf(run: ScriptedRun): ScriptedAgent {
    return this.#scripts.find(({ runs }) => runs.includes(run)) as ScriptedAgent;
  }

  #identity(run: ScriptedRun) {
    return this.#scriptOf(run).identities.get(run.runId);
  }

  async play([what, which, how, turns]: Move): Promise<void> {
    const runs = this.#alive;
    const run = runs[which % Math.max(1, runs.length)];
    if ((TIMES as readonly string[]).includes(what)) await this.t.clock.advance(what);
    else if (what === "crash") await this.#crash();
    else if (what === "vanish") {
      // It ends while nobody is there to hear it.
      if (run) this.#scriptOf(run).identities.set(run.runId, "absent");
      await this.#crash();
    } else if (what === "blackout") {
      for (const { runs: all, identities } of this.#scripts)
        for (const { runId } of all) identities.set(runId, "absent");
      await this.#crash();
    } else if ((OWNERS as readonly string[]).includes(what)) this.#own(what, which, how);
    else if (what.startsWith("slow") || what.startsWith("quick")) {
      const flag = what.endsWith("Starts") ? "acceptsAtOnce" : "stopsAtOnce";
      for (const script of this.#scripts) script[flag] = what.startsWith("quick");
    } else if (run) this.#move(run, what, how);
    await this.rest(turns);
  }

  #own(what: string, which: number, how: number): void {
    const { owner } = this.t;
    const label = `w${which}`;
    if (what === "assign") {
      // The id stands for one request, so that it is repeated and not reused.
      const id = how < 8 ? `id${how}` : undefined;
      const agent = (id === undefined ? how : how >> 1) % 2 === 0 ? "leaf" : "lead";
      const named = how % 3 === 0 ? { label } : {};
      const limited = how % 5 === 2 ? { deadlineMs: 60_000, timeoutMs: 10_000 } : {};
      this.#assign({
        agent,
        task: "A",
        reusable: how % 4 === 1,
        ...named,
        ...limited,
        ...(id !== undefined && { id }),
      });
    } else if (what === "assignLive") this.#assign({ label: this.#labelOf(which), task: "B" });
    else if (what === "assignSession") {
      const session = this.#sessions[which % Math.max(1, this.#sessions.length)];
      if (session !== undefined) this.#assign({ session, task: "C", reusable: how % 2 === 0 });
    } else if (what === "steer") this.#expect(owner.steer({ label: this.#labelOf(which), message: "also this" }));
    else if (what === "close") this.#close(this.#labelOf(which));
    else {
      const question = owner.questions.at(-1 - which);
      if (question) this.#reply(question.askId);
    }
  }

  #labelOf(which: number): string {
    return this.#runs.toReversed()[which]?.label ?? "nobody";
  }

  #close(label: string): void {
    this.closed.add(label);
    this.#expect(this.t.owner.close({ label }));
  }

  #reply(askId: string): void {
    this.#expect(this.t.owner.reply({ askId, message: "this", id: `reply to ${askId}` }));
  }

  #assign(request: AssignRequest<string>): void {
    const { id } = request;
    const known = id === undefined ? undefined : (this.#byId.get(id) ?? { request });
    if (id !== undefined && known) this.#byId.set(id, known);
    const assigned = this.t.owner.assign(known?.request ?? request);
    this.#expect(
      assigned.then(({ requestId, sessionId }) => {
        this.told.add(requestId);
        this.#sessions.push(sessionId);
        if (known) this.#answer(known, { requestId });
      }),
      (failure) => known && this.#answer(known, { failure }),
    );
  }

  /** A launch has one answer, whoever asks; only what was refused before anything began can turn out otherwise later. */
  #answer(known: { answer?: Answer }, answer: Answer): void {
    if ("failure" in answer && answer.failure.rollbackOccurred !== true) return;
    known.answer ??= answer;
    const told = [shown(known.answer), shown(answer)];
    if (told[0] !== told[1]) this.faults.push(told);
  }

  #move(run: ScriptedRun, what: string, how: number): void {
    const script = this.#scriptOf(run);
    const session = run.orders.findLast((order) => order.kind === "start")?.sessionId ?? "";
    const pick = <Item>(items: readonly Item[]): Item | undefined => items.at(-1 - (how % Math.max(1, items.length)));
    const actions: Record<string, () => Promise<unknown> | undefined | void> = {
      accept: () => run.accept(how % 2 === 0 ? { sessionPath: `/sessions/${session}.jsonl` } : undefined),
      failStart: () => run.failStart({ stage: "agent_start", ...(how % 2 === 0 && { message: "it will not" }) }),
      turn: () => run.turn(),
      ask: () => run.ask("Which?"),
      endTurn: () => run.endTurn(),
      settle: () => run.settle("done"),
      settleBlank: () => run.settle(how % 2 === 0 ? " " : { code: "broken", message: "it broke" }),
      work: async () => [await run.turn(), await run.settle(`done ${how}`)],
      take: () => withId(pick(run.orders.filter(({ kind }) => kind === "deliver")), (id) => run.take(id)),
      hear: () => withId(pick(run.orders.filter(({ kind }) => kind === "steer")), (id) => run.hear(id)),
      identify: () => run.identify(session, { sessionPath: `/sessions/${session}.jsonl` }),
      mistake: () => run.identify("another-session"),
      die: () => run.die(),
      // Only what was told to stop is gone for that reason.
      exit: () => (isToldToStop(run) ? run.exit(how % 4 === 0 ? "its pane is still there" : undefined) : undefined),
      failStop: () => (isToldToStop(run) ? run.failStop("it does not listen") : undefined),
      delegate: () => run.subagent({ action: "assign", agent: "leaf", task: "part", reusable: how % 4 === 0 }),
      closeChild: () => run.subagent({ action: "close", label: this.#labelOf(how % 6) }),
      steerChild: () => run.subagent({ action: "steer", label: this.#labelOf(how % 6), message: "also this" }),
      answerChild: () => run.subagent({ action: "reply", label: this.#labelOf(how % 6), message: "this" }),
      hide: () => void (this.#identity(run) === "present" && script.identities.set(run.runId, "unprovable")),
      show: () => this.#show(),
    };
    const done = actions[what]?.();
    if (done) this.#expect(done);
  }

  #show(): void {
    for (const { identities } of this.#scripts) {
      for (const [runId, identity] of identities) if (identity === "unprovable") identities.set(runId, "present");
    }
  }

  async #crash(): Promise<void> {
    this.#crashing = true;
    await this.t.crash();
    this.#crashing = false;
  }

  /** Whatever becomes of it, a refusal is one of the public ones, and nothing fails inside. */
  #expect(work: Promise<unknown>, refused?: (failure: HerdError) => void): void {
    const { herd } = this.t;
    void work.then(
      (answer) => {
        const error = (answer as { error?: { category: string; reason: string } } | undefined)?.error;
        if (error !== undefined && !isPublic(error)) this.faults.push(error);
      },
      (error: unknown) => {
        if (error instanceof HerdError && isPublic(error)) refused?.(error);
        // Who called a program that has ended since, or is about to, hears nothing.
        else if (this.t.herd === herd && !this.#crashing) this.faults.push(error);
      },
    );
  }

  /** Turns of the event loop, or fewer when nothing happens any more; a function of the clock may never come to rest. */
  async rest(turns = 200): Promise<void> {
    let quiet = false;
    const noLonger = () => (quiet = true);
    void this.t.idle().then(noLonger, noLonger);
    for (let turn = 0; turn < turns && !quiet; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Everybody does what is to be done, until all that is left has to be closed. */
  async drain(): Promise<void> {
    for (const script of this.#scripts) Object.assign(script, { acceptsAtOnce: true, stopsAtOnce: true });
    this.#show();
    for (let round = 0; round < 12; round++) {
      for (const run of this.#alive) await this.#finish(run);
      for (const { askId } of this.t.owner.questions) {
        this.#reply(askId);
      }
      await this.rest();
      await this.t.clock.advance("31s");
      // Nobody has to push what a failure of an earlier command may have left for a restart.
      if (round === 8) await this.#crash();
    }
    await this.#repeat();
  }

  /** What is left goes too: an orphan before its parent, whose row is nobody's then. */
  async closeAll(): Promise<void> {
    for (let round = 0; round < 4; round++) {
      const { workers } = await this.t.owner.list();
      for (const { label } of workers.toSorted((a, b) => Number(b.orphan === true) - Number(a.orphan === true))) {
        this.#close(label);
        await this.rest();
      }
      await this.t.clock.advance("31s");
    }
  }

  async #finish(run: ScriptedRun): Promise<void> {
    const session = run.orders.findLast((order) => order.kind === "start")?.sessionId ?? "";
    if (isToldToStop(run)) return void (await run.exit());
    await run.identify(session);
    await run.accept();
    for (const { kind, orderId } of run.orders) {
      if (kind === "deliver") await run.take(orderId);
      if (kind === "steer") await run.hear(orderId);
    }
    for (const order of run.orders) {
      if (order.kind !== "deliver" || order.what !== "question") continue;
      this.#expect(run.subagent({ action: "reply", label: order.details["label"], message: "this" }));
      await this.rest();
    }
    await run.turn();
    await run.endTurn();
    await run.turn();
    await run.settle("done at last");
  }

  /** Whoever asks again under an id hears what was said under it. */
  async #repeat(): Promise<void> {
    for (const [id, { request, answer }] of this.#byId) {
      if (answer === undefined) continue;
      this.#assign({ ...request, id });
      await this.rest();
    }
  }
}

function isToldToStop(run: ScriptedRun): boolean {
  return run.orders.some(({ kind }) => kind === "stop");
}

function withId(order: { orderId: string } | undefined, act: (orderId: string) => Promise<unknown>) {
  return order && act(order.orderId);
}

function isPublic({ category, reason }: { category: string; reason: string }): boolean {
  const known = (CATEGORIES as readonly string[]).includes(category);
  return known && (category !== "internal_failure" || reason === "herd_closed" || reason === "not_gone");
}

function shown(answer: Answer): string {
  return "failure" in answer ? answer.failure.message : answer.requestId;
}
