import { createActor, type InspectionEvent } from "xstate";
import { toDirectedGraph } from "xstate/graph";
import { describe, expect, test } from "vitest";
import { rules, whyNot, type Rule } from "../../machines/eligibility.ts";
import { openAsks, statePath } from "../../machines/projection.ts";
import type { WorkerContext, WorkerFact } from "../../machines/vocabulary.ts";
import { worker } from "../../machines/worker.ts";
import {
  abstract,
  events,
  explore,
  kinds,
  restart,
  travel,
  type Edge,
  type ModelEvent,
  type Snapshot,
} from "./worker.model.ts";

/** The commands of owners and workers, each with the rules that speak against it. */
const commands: Record<string, readonly Rule[]> = {
  assign: rules.assign,
  steer: rules.steer,
  reply: rules.reply,
  close: rules.close,
  "worker.launch": rules.delegate,
};

const commandEvents = events.filter(({ type }) => type === "ask" || type in commands);
const graphs = Object.entries(kinds).map(([kind, given]) => ({ kind, input: given.input, ...explore(given) }));
const everyState = graphs.flatMap(({ states }) => states);
const everyWay = graphs.map(({ edges }) => edges);
const everyEdge = everyWay.flat();

const pathOf = ({ value }: Snapshot) => statePath(value);
const nameOf = (edge: Edge) => `${pathOf(edge.from)}: ${edge.event.type}`;
const tells = (edge: Edge, type: WorkerFact["type"]) => edge.facts.some((fact) => fact.type === type);

/** Where the rule does not hold, in a few words each. */
function broken<Item>(items: readonly Item[], name: (item: Item) => string, holds: (item: Item) => boolean): string[] {
  return [...new Set(items.filter((item) => !holds(item)).map(name))];
}

function brokenIn(holds: (context: WorkerContext, path: string) => boolean): string[] {
  return broken(everyState, pathOf, (snapshot) => holds(snapshot.context, pathOf(snapshot)));
}

describe("the chart of the worker", () => {
  test("is explored in all its states", () => {
    const paths = new Set(everyState.map(pathOf));
    const all = [...atomicPaths(worker.root)];
    expect(all.filter((path) => !paths.has(path))).toEqual([]);
    expect(paths.size).toBe(all.length);
  });

  test("has no branch of a transition that no walk takes", () => {
    const taken = new Set<unknown>();
    const inspect = (event: InspectionEvent) => {
      if (event.type === "@xstate.microstep") for (const branch of event._transitions) taken.add(branch);
    };
    for (const { input, walks } of graphs) {
      for (const walk of walks) {
        const actor = createActor(worker, { input, inspect }).start();
        for (const event of walk) actor.send(event);
      }
    }
    const branches = [...branchesOf(toDirectedGraph(worker))];
    expect(branches.length).toBeGreaterThan(50);
    expect(branches.filter(({ branch }) => !taken.has(branch)).map(({ name }) => name)).toEqual([]);
  });

  test("takes a command exactly when no rule speaks against it, in every state", () => {
    const cases = everyState.flatMap((snapshot) =>
      commandEvents.filter((event) => isMeant(snapshot, event)).map((event) => ({ snapshot, event })),
    );
    const disagreeing = broken(
      cases,
      ({ snapshot, event }) => `${pathOf(snapshot)}: ${event.type} (${against(snapshot, event)?.reason ?? "no rule"})`,
      ({ snapshot, event }) => snapshot.can(event) === (against(snapshot, event) === undefined),
    );
    expect(cases.length).toBeGreaterThan(1000);
    expect(disagreeing).toEqual([]);
  });

  test("takes no reply to another question than an open one", () => {
    const cases = everyState.flatMap((snapshot) =>
      commandEvents.filter((event) => !isMeant(snapshot, event)).map((event) => ({ snapshot, event })),
    );
    expect(cases.length).toBeGreaterThan(0);
    expect(cases.filter(({ snapshot, event }) => snapshot.can(event)).map(({ snapshot }) => pathOf(snapshot))).toEqual(
      [],
    );
  });

  test("has several questions open at once only in one group", () => {
    const joins = everyEdge.filter(({ from, event }) => event.type === "ask" && openAsks(from.context.ask).length > 0);
    expect(joins.length).toBeGreaterThan(0);
    const sameGroup = ({ from, event }: Edge) =>
      event.type === "ask" && event.parked?.groupId === from.context.ask?.group;
    expect(broken(joins, nameOf, sameGroup)).toEqual([]);
  });

  test("goes on when the last of a group is answered, and not before", () => {
    const answers = everyEdge.filter((edge) => tells(edge, "ask.answered"));
    const isLast = ({ from }: Edge) => openAsks(from.context.ask).length === 1;
    expect(new Set(answers.map(isLast)).size).toBe(2);
    expect(broken(answers, nameOf, (edge) => (openAsks(edge.to.context.ask).length === 0) === isLast(edge))).toEqual(
      [],
    );
    const waiting = answers.filter(({ from }) => pathOf(from) === "blocked.onOwner");
    expect(broken(waiting, nameOf, (edge) => tells(edge, "order.run") === isLast(edge))).toEqual([]);
  });
});

describe("in every state that a worker can reach", () => {
  test("an open question belongs to an active assignment", () => {
    expect(brokenIn(({ ask, assignment }) => ask === null || assignment !== null)).toEqual([]);
  });

  test("it is blocked on its owner exactly when a question is open and its turn has ended", () => {
    expect(
      brokenIn(({ ask }, path) => (path === "blocked.onOwner") === (ask !== null && path !== "working.inTurn")),
    ).toEqual([]);
  });

  test("a question that waits for its owner is not answered yet", () => {
    expect(brokenIn(({ ask }, path) => path !== "blocked.onOwner" || ask?.answered === false)).toEqual([]);
  });

  test("a worker that is ready, closing or closed has no assignment left, and every other has one", () => {
    const without = /^(ready|closing\..*|closed)$/;
    expect(brokenIn(({ assignment }, path) => (assignment === null) === without.test(path))).toEqual([]);
  });

  test("a diagnostic is kept only while its backend holds it, a result error only while the result is not stored", () => {
    expect(brokenIn(({ diagnostic }, path) => (diagnostic !== null) === (path === "blocked.onBackend"))).toEqual([]);
    expect(brokenIn(({ resultError }, path) => (resultError !== null) === (path === "settling.unpersisted"))).toEqual(
      [],
    );
  });

  test("nothing is taken once it is closed", () => {
    const closed = everyState.filter((snapshot) => pathOf(snapshot) === "closed");
    expect(closed.length).toBeGreaterThan(0);
    // XState gives a chart no event any more once its status is done.
    expect(closed.filter(({ status }) => status !== "done")).toEqual([]);
    for (const snapshot of closed) expect(commandEvents.filter((event) => snapshot.can(event))).toEqual([]);
  });
});

describe("on every way that a worker can go", () => {
  test("a question to the direct owner is opened only when none is open", () => {
    const asking = everyEdge.filter(
      (edge) => edge.event.type === "ask" && !edge.event.parked && tells(edge, "ask.opened"),
    );
    expect(asking.length).toBeGreaterThan(0);
    expect(broken(asking, nameOf, ({ from, to }) => from.context.ask === null && to.context.ask !== null)).toEqual([]);
  });

  test("a question ends once: answered or given up", () => {
    const ending = everyEdge.filter((edge) => tells(edge, "ask.answered") || tells(edge, "asks.abandoned"));
    expect(broken(ending, nameOf, ({ from }) => from.context.ask?.answered === false)).toEqual([]);
    const lost = everyEdge.filter(({ from, to }) => from.context.ask?.answered === false && to.context.ask === null);
    expect(broken(lost, nameOf, (edge) => ending.includes(edge))).toEqual([]);
  });

  test("an answer that was held starts the next turn, unless the worker is closed", () => {
    const ended = everyEdge.filter(({ from, to }) => from.context.ask?.answered === true && to.context.ask === null);
    expect(ended.length).toBeGreaterThan(0);
    expect(broken(ended, nameOf, (edge) => tells(edge, "order.run") || tells(edge, "assignment.closed"))).toEqual([]);
  });

  test("no result is told while a question is open, or while children are not resolved, unless its process is lost", () => {
    const results = everyEdge.filter((edge) => tells(edge, "result.stored"));
    expect(results.length).toBeGreaterThan(0);
    expect(broken(results, nameOf, ({ from }) => from.context.ask === null)).toEqual([]);
    expect(
      broken(results, nameOf, ({ from: { context }, to }) => {
        const { active, asking, undelivered } = context.children;
        return active + asking + undelivered === 0 || to.context.lost === true;
      }),
    ).toEqual([]);
  });

  test("a process that ends is started again once before a turn of it ends, and then given up", () => {
    const ends = everyEdge.filter(
      ({ event, from }) => event.type === "process.exited" && /^working|onChildren/.test(pathOf(from)),
    );
    const [again, first] = [true, undefined].map((restarted) =>
      ends.filter(({ from }) => from.context.ask === null && from.context.restarted === restarted),
    ) as [Edge[], Edge[]];
    expect(Math.min(again.length, first.length)).toBeGreaterThan(0);
    expect(broken(first, nameOf, (edge) => tells(edge, "order.resume") && !tells(edge, "result.stored"))).toEqual([]);
    expect(broken(again, nameOf, (edge) => resultOf(edge) !== undefined && edge.to.context.lost === true)).toEqual([]);
  });

  test("a process that ends takes no question along", () => {
    const ends = everyEdge.filter(({ event, from }) => event.type === "process.exited" && from.context.ask !== null);
    expect(ends.length).toBeGreaterThan(0);
    const kept = ({ from, to }: Edge) => to.context.ask !== null || from.context.ask?.answered === true;
    expect(broken(ends, nameOf, kept)).toEqual([]);
  });

  test("an assignment has one result", () => {
    expect(endedAgain(everyWay, resultOf)).toEqual([]);
  });

  test("an assignment ends once, with a result or closed", () => {
    expect(endedAgain(everyWay, endOf)).toEqual([]);
  });

  test("an outcome that changes nothing is told as dropped, unless children hold it back", () => {
    const dropping = everyEdge.filter(({ event, from, to }) => event.type === "settled" && pathOf(from) === pathOf(to));
    const held = dropping.filter(({ from }) => pathOf(from) === "blocked.onChildren");
    expect(held.length).toBeGreaterThan(0);
    expect(broken(dropping, nameOf, (edge) => tells(edge, "result.dropped") !== held.includes(edge))).toEqual([]);
  });
});

describe("a worker that is restarted before every event", () => {
  test.each(graphs)("goes the same ways as one that is not: $kind", ({ input, walks }) => {
    expect(walks.length).toBeGreaterThan(500);
    for (const walk of walks) {
      const steady = travel(input, walk, (actor) => actor);
      const restarted = travel(input, walk, restart);
      expect(restarted).toEqual(steady);
    }
  });
});

/** A reply says which question it answers: to one that is not open no rule has anything to say. */
function isMeant({ context }: Snapshot, event: ModelEvent): boolean {
  const open = openAsks(context.ask);
  return event.type !== "reply" || open.length === 0 || open.includes(event.askId);
}

function against({ value, context }: Snapshot, event: ModelEvent): Rule | undefined {
  const view = { state: statePath(value), context };
  if (event.type !== "ask") return whyNot(commands[event.type] ?? [], view);
  if (event.parked) return whyNot(rules.parkedAsk, { ...view, group: event.parked.groupId });
  return whyNot(rules.askOwner, { ...view, calls: event.calls });
}

function resultOf({ facts }: Edge): string | undefined {
  return facts.find((fact) => fact.type === "result.stored")?.requestId;
}

function endOf(edge: Edge): string | undefined {
  return resultOf(edge) ?? edge.facts.find((fact) => fact.type === "assignment.closed")?.requestId;
}

/** The events that end an assignment which another event ended before them. */
function endedAgain(ways: readonly Edge[][], endedBy: (edge: Edge) => string | undefined): string[] {
  const again = ways.flatMap((edges) =>
    [...Map.groupBy(edges, endedBy)].flatMap(([requestId, ends]) => {
      if (requestId === undefined) return [];
      // Nobody assigns under the same id again.
      const others = edges.filter(({ event }) => event.type !== "assign" || event.assignment.requestId !== requestId);
      return reachableFrom(ends, others).filter((later) => endedBy(later) === requestId);
    }),
  );
  return [...new Set(again.map(nameOf))];
}

/** What can come after any of these. */
function reachableFrom(first: readonly Edge[], edges: readonly Edge[]): Edge[] {
  const next = Map.groupBy(edges, ({ from }) => abstract(from));
  const seen = new Set(first.map(({ to }) => abstract(to)));
  for (const state of seen) for (const { to } of next.get(state) ?? []) seen.add(abstract(to));
  return [...seen].flatMap((state) => next.get(state) ?? []);
}

function* atomicPaths(node: typeof worker.root): Generator<string> {
  const inner = Object.values(node.states);
  if (inner.length === 0) yield node.path.join(".");
  for (const state of inner) yield* atomicPaths(state);
}

type Directed = ReturnType<typeof toDirectedGraph>;

/** Every branch of every transition; the graph itself leaves those out that need no event. */
function* branchesOf({ stateNode, edges, children }: Directed): Generator<{ name: string; branch: unknown }> {
  const always = stateNode.always ?? [];
  for (const branch of new Set([...edges.map((edge) => edge.transition), ...always])) {
    const guard = typeof branch.guard === "object" ? branch.guard.type : branch.guard;
    yield { name: `${stateNode.path.join(".")}: ${branch.eventType} [${String(guard)}]`, branch };
  }
  for (const inner of children) yield* branchesOf(inner);
}
