import { createActor, transition, type Actor, type AnyActorRef, type AnyStateMachine } from "xstate";
import { adjacencyMapToArray, getAdjacencyMap, getShortestPaths } from "xstate/graph";
import type { Children, ParkedAsk, WorkerEvent, WorkerFact, WorkerInput } from "../../machines/vocabulary.ts";
import { worker } from "../../machines/worker.ts";
import { inputOf, noChildren } from "../support/worker.ts";

/** The worker's chart as a graph of all the states that it can reach, as far as its guards can tell them apart. */

export type Snapshot = ReturnType<typeof worker.getInitialSnapshot>;
export type ModelEvent = Parameters<typeof transition<typeof worker>>[2];

/** An event that a state takes, with what is told. */
export interface Edge {
  from: Snapshot;
  event: ModelEvent;
  to: Snapshot;
  facts: WorkerFact[];
}

export interface Graph {
  states: Snapshot[];
  edges: Edge[];
  /** One walk from the start through each edge. */
  walks: ModelEvent[][];
}

const child = "run-2";
export const at = 2;

function children(counts: Partial<Children>): WorkerEvent {
  return { type: "children.changed", children: { ...noChildren, ...counts } };
}

const parked: Omit<ParkedAsk, "groupId"> = {
  to: "caller",
  askedBy: ["scout"],
  answerFormat: "text",
  onExpiry: "kill",
};

function parkedAsk(askId: string, groupId: string): WorkerEvent {
  return { type: "ask", askId, calls: [], question: "A or B?", files: [], at, parked: { ...parked, groupId } };
}

function settled(text: string): WorkerEvent {
  return { type: "settled", outcome: { status: "completed", text }, at };
}

/** One event of every kind, and one for every answer that a guard may give. */
export const events: ModelEvent[] = [
  { type: "launch.accepted", at },
  { type: "launch.queued" },
  { type: "launch.failed" },
  { type: "assign", assignment: { requestId: "request-2", acceptedAt: at, metadata: false, deadline: false } },
  { type: "located", place: { paneId: "pane-1" } },
  { type: "identity.unproven", diagnostic: "its backend does not answer" },
  { type: "identity.proven" },
  { type: "process.exited", at },
  { type: "turn.started", at },
  { type: "tool.called", at },
  { type: "turn.ended", at },
  { type: "activity", at },
  { type: "delivered" },
  { type: "ask", askId: "ask-1", calls: ["ask_owner"], question: "A or B?", files: [], at },
  { type: "ask", askId: "ask-1", calls: ["bash", "ask_owner"], question: "A or B?", files: [], at },
  parkedAsk("ask-2", "group-1"),
  parkedAsk("ask-3", "group-1"),
  parkedAsk("ask-3", "group-2"),
  { type: "reply", askId: "ask-1", message: "A", files: [], at },
  { type: "reply", askId: "ask-2", message: "A", files: [], at },
  { type: "reply", askId: "ask-3", message: "A", files: [], at },
  { type: "steer", steerId: "steer-1", message: "C as well", files: [], at },
  settled("done"),
  settled(" \n"),
  { type: "settled", outcome: { status: "failed", error: { code: "worker_error", message: "broken" } }, at },
  {
    type: "result.unpersisted",
    error: {
      code: "write_failure",
      message: "disk full",
      requestId: "request-1",
      originalStatus: "completed",
      attempts: 8,
      failedAt: "2030-01-01T00:00:00.000Z",
      retrySafe: false,
      cleanupSafe: true,
      nextAction: "close it",
    },
  },
  { type: "result.acknowledged" },
  { type: "children.awaited" },
  children({}),
  children({ living: 1 }),
  children({ living: 1, active: 1 }),
  children({ living: 1, asking: 1 }),
  children({ living: 2, active: 1, asking: 1 }),
  children({ living: 1, undelivered: 1 }),
  children({ undelivered: 1 }),
  { type: "hold", diagnostic: "this program does not know the agent" },
  { type: "close", reason: { code: "closed", message: "closed by its owner" }, at },
  { type: "backend.gone" },
  { type: "worker.launch", input: inputOf({ runId: child }) },
  { type: "worker.rested", runId: child },
  { type: `xstate.done.actor.${child}`, actorId: child, output: undefined },
  { type: `xstate.error.actor.${child}`, actorId: child, error: "broken" },
];

const about = (...types: ModelEvent["type"][]) => events.filter(({ type }) => types.includes(type));
const except = (less: readonly ModelEvent[]) => events.filter((event) => !less.includes(event));

/** Only functions ask so. */
const parkedAsks = events.filter((event) => event.type === "ask" && event.parked);
const processes = about("located", "identity.unproven", "identity.proven", "process.exited");
const families = about("children.changed", "children.awaited", "worker.launch", "worker.rested");

/**
 * Every kind of worker that the engine starts, as far as its chart is concerned. What becomes of processes is looked at
 * apart from what becomes of families, where that makes too many states of both.
 */
export const kinds: Record<string, { input: WorkerInput; events: ModelEvent[] }> = {
  "a reusable parent": { input: inputOf({ delegates: true, reusable: true }), events: except(processes) },
  "a one-shot parent": { input: inputOf({ delegates: true }), events: except(processes) },
  "a reusable leaf": { input: inputOf({ reusable: true }), events: except(processes) },
  "a one-shot leaf": { input: inputOf(), events: except(processes) },
  "a reusable worker in a process": {
    input: inputOf({ reusable: true }),
    events: except([...families, ...parkedAsks]),
  },
  "a one-shot worker in a process": { input: inputOf(), events: except([...families, ...parkedAsks]) },
  "a parent in a process": {
    input: inputOf({ delegates: true }),
    events: [
      ...except([...processes, ...families, ...parkedAsks]),
      ...about("process.exited"),
      children({}),
      children({ living: 1, active: 1 }),
      children({ undelivered: 1 }),
    ],
  },
};

/** What guards look at and nothing else, so that there are finitely many states. */
export function abstract({ value, context, status }: Snapshot): string {
  const { assignment, ask, unacknowledged, children, diagnostic, resultError, unproven, restarted, lost } = context;
  const flags = [unacknowledged > 0, diagnostic !== null, resultError !== null, unproven, restarted, lost];
  return JSON.stringify([value, status, assignment?.requestId, ask, children, ...flags]);
}

/** All reachable states of a kind of worker, all accepted events between them, and one walk through each. */
export function explore({ input, events }: { input: WorkerInput; events: ModelEvent[] }): Graph {
  const options = {
    input,
    events,
    serializeState: abstract,
    filterEvents: (snapshot: Snapshot, event: ModelEvent) => snapshot.can(event),
    // Exploration goes straight through final states otherwise.
    stopWhen: ({ status }: Snapshot) => status !== "active",
    limit: 20_000,
  };
  // The types of the graph functions do not know machines that tell facts.
  const chart: AnyStateMachine = worker;
  const map = getAdjacencyMap(chart, options);
  const shortest = new Map(
    getShortestPaths(chart, options).map(({ state, steps }) => [
      abstract(state),
      steps.slice(1).map(({ event }) => event),
    ]),
  );
  const edges = adjacencyMapToArray(map).map(({ state, event, nextState }) => {
    const facts = transition(worker, state, event)[1].flatMap(factsOf);
    return { from: state, event, to: nextState, facts };
  });
  return {
    states: Object.values(map).map(({ state }) => state),
    edges,
    walks: edges.map(({ from, event }) => [...(shortest.get(abstract(from)) ?? []), event]),
  };
}

function factsOf({ type, params }: { type: string; params?: unknown }): WorkerFact[] {
  return type === "xstate.emit" ? [(params as { event: WorkerFact }).event] : [];
}

interface Row {
  value: unknown;
  context: unknown;
  children: Record<string, Row>;
}

/** An actor as its rows hold it: state and context, and the same of its living children. */
function rowOf(actor: AnyActorRef): Row {
  const { value, context, children } = actor.getSnapshot();
  const living = Object.entries(children as Record<string, AnyActorRef>).filter(
    ([, it]) => it.getSnapshot().status === "active",
  );
  return { value, context, children: Object.fromEntries(living.map(([id, it]) => [id, rowOf(it)])) };
}

/** A new actor from an old one's rows, as after the end of the process. */
export function restart(actor: Actor<typeof worker>): Actor<typeof worker> {
  const row = JSON.parse(JSON.stringify(rowOf(actor))) as Row;
  return createActor(worker, { input: {} as WorkerInput, snapshot: snapshotOf(row) as never }).start();
}

function snapshotOf({ value, context, children }: Row): object {
  const restored = Object.entries(children).map(([id, row]) => [id, { snapshot: snapshotOf(row), src: "worker" }]);
  const rest = { status: "active", historyValue: {}, output: undefined, error: undefined };
  return { ...rest, value, context, children: Object.fromEntries(restored) };
}

/** The state, the children and the facts after each event. */
export function travel(
  input: WorkerInput,
  walk: readonly ModelEvent[],
  before: (actor: Actor<typeof worker>) => Actor<typeof worker>,
) {
  let actor = createActor(worker, { input }).start();
  return walk.map((event) => {
    actor = before(actor);
    const facts: WorkerFact[] = [];
    const told = actor.on("*", (fact) => facts.push(fact));
    actor.send(event);
    told.unsubscribe();
    return { ...rowOf(actor), status: actor.getSnapshot().status, facts };
  });
}
