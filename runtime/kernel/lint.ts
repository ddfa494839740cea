import { initialTransition, type AnyStateMachine, type AnyStateNode } from "xstate";
import { messageOf } from "../errors.ts";

/**
 * What a machine must not do when its actors are to survive the end of the process: a row holds a state's name and
 * a context, and everything else that XState keeps in memory is gone after a restart, mostly without a word.
 *
 * Reads XState's own marks: a built-in action is a function with `type` and `resolve` and its options as properties,
 * a machine has `__xstatenode`, the logic of promises, callbacks and observables has `start`.
 */

export type LintRule =
  | "identity"
  | "custom-action"
  | "hidden-action"
  | "delay"
  | "inline-actor"
  | "volatile-actor"
  | "child-without-id"
  | "hidden-spawn"
  | "unhandled-child-error"
  | "unhandled-child-end"
  | "history"
  | "context";

export interface Finding {
  /** The machine's id. */
  machine: string;
  /** The state as a dotted path; `(root)` for what belongs to the machine as a whole. */
  state: string;
  rule: LintRule;
  /** What is wrong, and what to do. */
  message: string;
}

export interface LintSamples {
  /** What the machine is started with, to see its first context. */
  input?: unknown;
  /** Contexts that its actors had at some time. */
  contexts?: readonly unknown[];
}

type Report = (rule: LintRule, state: string, message: string) => void;

interface BuiltIn {
  type: string;
  resolve: unknown;
  id?: unknown;
  src?: unknown;
  delay?: unknown;
  sendId?: unknown;
  assignment?: unknown;
}

interface Use {
  state: string;
  /** The name in the chart; undefined for an action that stands there as a function. */
  name: string | undefined;
  action: unknown;
}

interface InvokeConfig {
  src: unknown;
  id?: string;
  onError?: unknown;
}

const ROOT = "(root)";
const DURABLE = new Set(["xstate.assign", "xstate.emit", "xstate.spawnChild", "xstate.stopChild"]);
const UNDELAYED = new Set(["xstate.raise", "xstate.sendTo"]);
const HIDING = "xstate.enqueueActions";

/**
 * Everything in a machine, and in the machines that it starts, that would not survive a restart.
 *
 * Samples are of this machine alone; without its `input` a machine that needs one gets a finding, because its
 * context cannot be seen.
 */
export function lintMachine(machine: AnyStateMachine, samples: LintSamples = {}): Finding[] {
  const findings: Finding[] = [];
  const seen = new Set<AnyStateMachine>();
  const queue = [machine];
  for (const next of queue) {
    if (seen.has(next)) continue;
    seen.add(next);
    const report: Report = (rule, state, message) => findings.push({ machine: next.id, state, rule, message });
    queue.push(...lintChart(next, report));
    if (next === machine) lintContexts(next, samples, report);
  }
  return findings;
}

/** The rules that can be seen without running anything; gives the machines that this one starts. */
function lintChart(machine: AnyStateMachine, report: Report): AnyStateMachine[] {
  const nodes = [...statesOf(machine.root)];
  const uses = [...nodes.flatMap(actionsOf), ...unusedActions(machine, nodes)];
  lintIdentity(machine, report);
  for (const node of nodes) lintState(node, report);
  for (const use of uses) lintAction(use, report);
  const spawns = uses.map(({ action }) => action).filter(isSpawnChild);
  const spawnsFirst = isSpawning(machine.config.context);
  if (spawns.length > 0 || spawnsFirst || uses.some(spawnsHidden)) lintChildren(machine, report);
  if (spawnsFirst) report("hidden-spawn", ROOT, hiddenSpawn("The first context"));
  const logics = logicsOf(machine, nodes, spawns);
  for (const [logic, what] of logics) if (isVolatile(logic)) report("volatile-actor", ROOT, volatile(what));
  return [...logics.keys()].filter(isMachine);
}

/** The logic of every actor that a machine may start, each with what to call it. */
function logicsOf(machine: AnyStateMachine, nodes: readonly AnyStateNode[], spawns: readonly BuiltIn[]) {
  const logics = new Map<unknown, string>();
  for (const [name, logic] of Object.entries(machine.implementations.actors)) logics.set(logic, `Actor "${name}"`);
  for (const node of nodes) {
    for (const { src } of invokesOf(node)) if (typeof src === "object") logics.set(src, `An actor of ${pathOf(node)}`);
  }
  for (const { src } of spawns) if (typeof src === "object") logics.set(src, "A spawned actor");
  return logics;
}

function lintIdentity({ config }: AnyStateMachine, report: Report): void {
  const missing = ["id", "version"].filter((name) => config[name as "id" | "version"] === undefined);
  if (missing.length === 0) return;
  report(
    "identity",
    ROOT,
    `The machine has no ${missing.join(" and no ")}: rows could not say which chart wrote them. Give it both`,
  );
}

function lintState(node: AnyStateNode, report: Report): void {
  const state = pathOf(node);
  if (node.type === "history") {
    report(
      "history",
      state,
      "What a history state recalls is not in the row. Keep in context what must be known again",
    );
  }
  if (node.config.after !== undefined) {
    const delays = Object.keys(node.config.after).join(", ");
    report(
      "delay",
      state,
      `after (${delays}) is lost at a restart. Let the engine keep a due record that sends an event when it is time`,
    );
  }
  for (const { src, id, onError } of invokesOf(node)) {
    if (typeof src !== "string") report("inline-actor", state, inlineActor("An invoked actor"));
    const name = id ?? (typeof src === "string" ? src : "an actor");
    if (onError !== undefined || handles(node.machine.root, "xstate.error.actor.*")) continue;
    report(
      "unhandled-child-error",
      state,
      `An error of ${name} ends this machine and everything below it. Give the invoke an onError`,
    );
  }
}

function lintAction({ state, name, action }: Use, report: Report): void {
  const what = name === undefined ? "An action without a name" : `Action "${name}"`;
  if (action === undefined) {
    report("custom-action", state, `${what} has no implementation. Give it one in setup()`);
  } else if (!isBuiltIn(action)) {
    report(
      "custom-action",
      state,
      `${what} runs before anything is stored and may run again. Tell a fact with emit, or change the context with assign`,
    );
  } else if (action.type === HIDING) {
    report(
      "hidden-action",
      state,
      `${what} decides in code what is done, where neither this check nor the chart can see it. List the actions, with guarded transitions`,
    );
  } else if (UNDELAYED.has(action.type)) {
    if (action.delay === undefined || isOfAfter(action)) return;
    report(
      "delay",
      state,
      `${what} is delayed, and delayed events are lost at a restart. Let the engine keep a due record that sends the event when it is time`,
    );
  } else if (!DURABLE.has(action.type)) {
    if (isOfAfter(action)) return;
    report("custom-action", state, `${what} (${action.type}) has an effect that no row holds. Tell a fact with emit`);
  } else if (action.type === "xstate.spawnChild") {
    lintSpawn(what, state, action, report);
  } else if (spawnsHidden({ action })) {
    report("hidden-spawn", state, hiddenSpawn(what));
  }
}

function lintSpawn(what: string, state: string, { id, src }: BuiltIn, report: Report): void {
  if (id === undefined) {
    report(
      "child-without-id",
      state,
      `${what} spawns a child without an id: the next one takes its place. Give it an id that the event brings`,
    );
  }
  if (typeof src !== "string") report("inline-actor", state, inlineActor(what));
}

function lintChildren({ root }: AnyStateMachine, report: Report): void {
  if (!handles(root, "xstate.error.actor.*")) {
    report(
      "unhandled-child-error",
      ROOT,
      'An error of one child ends this machine and all its children. Handle "xstate.error.actor.*" at the root, without a guard',
    );
  }
  if (!handles(root, "xstate.done.actor.*")) {
    report(
      "unhandled-child-end",
      ROOT,
      'Children that ended stay in memory for ever. Handle "xstate.done.actor.*" at the root with stopChild',
    );
  }
}

function lintContexts(machine: AnyStateMachine, { input, contexts = [] }: LintSamples, report: Report): void {
  const samples: [string, unknown][] = contexts.map((context, index) => [`sample ${index + 1}`, context]);
  const [first] = initialTransition(machine, input);
  if (first.status === "error") {
    report(
      "context",
      ROOT,
      `The first context cannot be seen (${messageOf(first.error)}). Give this check the input that the machine is started with`,
    );
  } else samples.unshift(["the first context", first.context]);
  for (const [name, context] of samples) {
    for (const problem of notJson(context, "context")) report("context", ROOT, `In ${name}, ${problem}`);
  }
}

/** Each place in a value that JSON would not give back as it was. */
function* notJson(value: unknown, path: string, above: readonly object[] = []): Generator<string> {
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "number" && Number.isFinite(value)) return;
  if (typeof value !== "object") {
    yield `${path} is ${typeof value === "number" ? value : nameOf(value)}, which a row cannot hold. Use null or a string`;
  } else if (above.includes(value)) {
    yield `${path} contains itself, which a row cannot hold. Keep an id instead`;
  } else if ("sessionId" in value && "send" in value) {
    yield `${path} is a reference to an actor, which becomes undefined at a restart. Keep its id instead`;
  } else if (!Array.isArray(value) && !isPlain(value)) {
    yield `${path} is a ${value.constructor?.name || "class instance"}, which a row cannot give back. Use plain objects, arrays, strings and numbers`;
  } else {
    for (const [key, inner] of Object.entries(value)) yield* notJson(inner, `${path}.${key}`, [...above, value]);
  }
}

function nameOf(value: unknown): string {
  return value === undefined ? "undefined" : `a ${typeof value}`;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function* statesOf(node: AnyStateNode): Generator<AnyStateNode> {
  yield node;
  for (const inner of Object.values(node.states)) yield* statesOf(inner);
}

function pathOf(node: AnyStateNode): string {
  return node.path.length === 0 ? ROOT : node.path.join(".");
}

function invokesOf(node: AnyStateNode): InvokeConfig[] {
  const { invoke } = node.config as { invoke?: InvokeConfig | InvokeConfig[] };
  return invoke === undefined ? [] : [invoke].flat();
}

/** All actions of a state, those of its transitions included. */
function actionsOf(node: AnyStateNode): Use[] {
  const transitions = [...[...node.transitions.values()].flat(), ...(node.always ?? [])];
  const initial = node.config.initial === undefined ? [] : node.initial.actions;
  const actions = [...node.entry, ...node.exit, ...initial, ...transitions.flatMap((transition) => transition.actions)];
  return actions.map((action) => ({ state: pathOf(node), ...resolved(node.machine, action) }));
}

function resolved(machine: AnyStateMachine, action: unknown): Omit<Use, "state"> {
  if (typeof action === "function") return { name: undefined, action };
  const name = typeof action === "string" ? action : (action as { type: string }).type;
  return { name, action: machine.implementations.actions[name] };
}

/** Named actions that no state mentions: somebody will use them one day. */
function unusedActions(machine: AnyStateMachine, nodes: readonly AnyStateNode[]): Use[] {
  const used = new Set(nodes.flatMap(actionsOf).map(({ name }) => name));
  return Object.entries(machine.implementations.actions)
    .filter(([name]) => !used.has(name))
    .map(([name, action]) => ({ state: ROOT, name, action }));
}

function isBuiltIn(action: unknown): action is BuiltIn {
  return typeof action === "function" && "resolve" in action && "type" in action;
}

function isSpawnChild(action: unknown): action is BuiltIn {
  return isBuiltIn(action) && action.type === "xstate.spawnChild";
}

/** XState writes `after` as a delayed raise at the entry and a cancel at the exit; `after` itself is reported. */
function isOfAfter({ id, sendId }: BuiltIn): boolean {
  const name = id ?? sendId;
  return typeof name === "string" && name.startsWith("xstate.after.");
}

/** The `spawn` of an assignment leaves no mark; its use can only be read in the text. */
function spawnsHidden({ action }: Pick<Use, "action">): boolean {
  if (!isBuiltIn(action) || action.type !== "xstate.assign") return false;
  const { assignment } = action;
  const parts = typeof assignment === "object" && assignment !== null ? Object.values(assignment) : [assignment];
  return parts.some(isSpawning);
}

function isSpawning(code: unknown): boolean {
  return typeof code === "function" && /\bspawn\b/.test(code.toString());
}

/** Whether a state takes such an event whatever the context says. */
function handles(node: AnyStateNode, descriptor: string): boolean {
  return node.transitions.get(descriptor)?.some(({ guard }) => guard === undefined) === true;
}

function isMachine(logic: unknown): logic is AnyStateMachine {
  return typeof logic === "object" && logic !== null && "__xstatenode" in logic;
}

/** Logic that works on its own, started anew at every restart, unless it says that it waits for the commit. */
function isVolatile(logic: unknown): boolean {
  if (typeof logic !== "object" || logic === null || isMachine(logic)) return false;
  return "start" in logic && (logic as { durable?: unknown }).durable !== true;
}

function inlineActor(what: string): string {
  return `${what} stands in the chart as code: its row could not be read back. Name it in setup({ actors }) and use the name`;
}

function hiddenSpawn(what: string): string {
  return `${what} seems to spawn an actor inside an assignment, which leaves no trace in the chart. Use spawnChild with an id`;
}

function volatile(what: string): string {
  return `${what} works outside the chart and starts anew at every restart. Tell a fact with emit and let its outcome come back as an event, or mark logic that waits for the commit with { durable: true }`;
}
