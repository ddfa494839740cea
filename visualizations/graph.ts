import type { AnyStateMachine, AnyStateNode } from "xstate";

/**
 * A chart as plain data: what the pictures are drawn from, and what the JSON beside them holds. Everything is in
 * the order of the machine's own text, so that the same machine gives the same data.
 */
export interface Chart {
  machine: string;
  version: string;
  /** The root first, parents before their children. */
  states: ChartState[];
  transitions: ChartTransition[];
}

export interface ChartState {
  /** The dotted path; empty for the root. */
  path: string;
  /** What it is called where that is not its path's last word. */
  name?: string;
  /** The path of the state around it; null for the root. */
  parent: string | null;
  kind: "atomic" | "compound" | "final";
  description: string | null;
  /** The path of the state inside that is entered first. */
  initial: string | null;
  entry: ChartAction[];
  exit: ChartAction[];
}

/** One branch of a transition. */
export interface ChartTransition {
  from: string;
  /** The path that is entered; null when the state stays as it is. */
  to: string | null;
  /** The event's type; null for what happens by itself once its guard holds. */
  event: string | null;
  guard: string | null;
  /** Another branch of the same event comes before: this one is taken only when that one is not. */
  otherwise: boolean;
  actions: ChartAction[];
}

export interface ChartAction {
  /** Its name in the chart; what it does when it has none. */
  name: string;
  does: "assign" | "emit" | "spawnChild" | "stopChild" | "other";
  /** The type of the fact that it tells. */
  fact: string | null;
}

/** Reads a machine; it is not run. */
export function readChart(machine: AnyStateMachine): Chart {
  const nodes = [...statesOf(machine.root)];
  return {
    machine: machine.id,
    version: machine.version ?? "",
    states: nodes.map(readState),
    transitions: nodes.flatMap(readTransitions),
  };
}

/** The direct inner states of a path. */
export function statesIn({ states }: Chart, path: string): ChartState[] {
  return states.filter(({ parent }) => parent === path);
}

/** A state's own name, or its path's last word. */
export function nameOf({ machine, states }: Chart, path: string): string {
  const { name } = states.find((state) => state.path === path) ?? {};
  return name ?? (path === "" ? machine : path.slice(path.lastIndexOf(".") + 1));
}

/** What an event is called in the pictures: XState's own two in plain words, all others as they are. */
export function eventName(event: string | null): string {
  if (event === null) return "at once";
  if (event.startsWith("xstate.done.actor.")) return "a child has ended";
  if (event.startsWith("xstate.error.actor.")) return "a child has failed";
  return event;
}

/** The condition in brackets, or nothing. */
export function conditionOf({ guard, otherwise }: ChartTransition): string {
  if (guard !== null) return `[${guard}]`;
  return otherwise ? "[otherwise]" : "";
}

/** What the world hears of it, in words: the facts, and children that come or go. */
export function effectOf(actions: readonly ChartAction[]): string {
  const facts = actions.flatMap(({ fact }) => fact ?? []);
  const children = actions.flatMap(({ does }) =>
    does === "spawnChild" ? "starts it" : does === "stopChild" ? "removes it" : [],
  );
  return [...(facts.length > 0 ? [`tells ${facts.join(" and ")}`] : []), ...children].join(", ");
}

function* statesOf(node: AnyStateNode): Generator<AnyStateNode> {
  yield node;
  for (const inner of Object.values(node.states)) yield* statesOf(inner);
}

function pathOf({ path }: AnyStateNode): string {
  return path.join(".");
}

function readState(node: AnyStateNode): ChartState {
  const { machine, parent, description, entry, exit, type } = node;
  const [initial] = node.config.initial === undefined ? [] : (node.initial.target ?? []);
  return {
    path: pathOf(node),
    parent: parent ? pathOf(parent) : null,
    kind: type === "final" ? "final" : type === "atomic" ? "atomic" : "compound",
    description: description ?? null,
    initial: initial ? pathOf(initial) : null,
    entry: entry.map((action) => readAction(machine, action)),
    exit: exit.map((action) => readAction(machine, action)),
  };
}

function readTransitions(node: AnyStateNode): ChartTransition[] {
  const byEvent = [...node.transitions.values(), [...(node.always ?? [])]];
  return byEvent.flatMap((branches) =>
    branches.map(({ target, eventType, guard, actions }, index) => ({
      from: pathOf(node),
      to: target?.[0] ? pathOf(target[0]) : null,
      event: eventType === "" ? null : eventType,
      guard: guard === undefined ? null : nameOfReference(guard),
      otherwise: index > 0,
      actions: actions.map((action) => readAction(node.machine, action)),
    })),
  );
}

const kinds: Record<string, ChartAction["does"]> = {
  "xstate.assign": "assign",
  "xstate.emit": "emit",
  "xstate.spawnChild": "spawnChild",
  "xstate.stopChild": "stopChild",
};

function readAction(machine: AnyStateMachine, action: unknown): ChartAction {
  const name = nameOfReference(action);
  // XState's own actions are functions with their kind in `type`, and what they tell in `event`.
  const { type = "", event } = (
    typeof action === "function" ? action : (machine.implementations.actions[name] ?? {})
  ) as { type?: string; event?: unknown };
  const does = kinds[type] ?? "other";
  return { name: typeof action === "function" ? does : name, does, fact: does === "emit" ? factOf(event) : null };
}

function nameOfReference(reference: unknown): string {
  if (typeof reference === "string") return reference;
  return (reference as { type?: string; name?: string }).type ?? "(unnamed)";
}

/** The type of a fact that is made from context and event: a fact's type never depends on them. */
function factOf(event: unknown): string | null {
  const fact: unknown = typeof event === "function" ? event({ context: anything, event: anything }, anything) : event;
  const { type } = (fact ?? {}) as { type?: unknown };
  return typeof type === "string" ? type : null;
}

/** Has every property and can be called. */
const anything: object = new Proxy(() => anything, {
  get: (_, key) => (key === Symbol.toPrimitive ? () => "" : anything),
  ownKeys: () => [],
  getOwnPropertyDescriptor: () => undefined,
});
