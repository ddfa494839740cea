import {
  assign,
  cancel,
  createMachine,
  emit,
  enqueueActions,
  fromCallback,
  fromPromise,
  fromTransition,
  log,
  raise,
  sendParent,
  sendTo,
  setup,
  spawnChild,
  stopChild,
  type AnyActorLogic,
  type AnyStateMachine,
} from "xstate";
import { describe, expect, test } from "vitest";
import { supervisor } from "../../machines/supervisor.ts";
import type { WorkerInput } from "../../machines/vocabulary.ts";
import { leaf, worker } from "../../machines/worker.ts";
import { lintMachine, type Finding, type LintSamples } from "./lint.ts";

const named = { id: "tiny", version: "1" };
const child = createMachine({ id: "child", version: "1" });
const custom = () => undefined;
const handlers = {
  "xstate.error.actor.*": { actions: stopChild("one") },
  "xstate.done.actor.*": { actions: stopChild("one") },
};

/** What is found, as `state: rule`. */
function rulesOf(machine: AnyStateMachine, samples?: LintSamples): string[] {
  return lintMachine(machine, samples).map(({ state, rule }) => `${state}: ${rule}`);
}

/** The one thing that is found. */
function only(machine: AnyStateMachine, samples?: LintSamples): Finding {
  const findings = lintMachine(machine, samples);
  expect(findings.map(({ rule }) => rule)).toHaveLength(1);
  return findings[0] as Finding;
}

/** A machine whose only action is this one, taken on an event in state `here`. */
function doing(action: unknown): AnyStateMachine {
  return createMachine({
    ...named,
    initial: "here",
    states: { here: { on: { go: { actions: action as never } } } },
  });
}

/** A machine that starts what is given as `actors.one`, with the handlers it needs. */
function starting(one: AnyActorLogic): AnyStateMachine {
  return setup({ actors: { one } }).createMachine({
    ...named,
    initial: "here",
    on: handlers,
    states: { here: { invoke: { src: "one", id: "one" } } },
  });
}

/** A machine that starts a child by this action. */
function spawning(action: unknown, on: object = handlers): AnyStateMachine {
  const definition = setup({ actors: { child }, actions: { start: action as never } });
  return definition.createMachine({ ...named, on: { ...on, go: { actions: "start" } } } as never) as never;
}

/** A machine that invokes a child with these further options. */
function invoking(options: object): AnyStateMachine {
  return setup({ actors: { child } }).createMachine({
    ...named,
    initial: "here",
    states: { here: { invoke: { src: "child", id: "one", ...options } } },
  });
}

function holding(context: object): AnyStateMachine {
  return createMachine({ ...named, context } as never);
}

describe("the machines of this package", () => {
  const input: WorkerInput = {
    runId: "run-1",
    label: "worker",
    agent: "implementer",
    backend: "function",
    sessionId: "session-1",
    ownerSessionId: "owner",
    workspace: "owner",
    cwd: "/",
    delegates: true,
    reusable: true,
    assignment: { requestId: "request-1", acceptedAt: 0, metadata: false, deadline: false },
  };

  test.each<[string, AnyStateMachine, unknown]>([
    ["supervisor", supervisor, { owner: { id: "owner" } }],
    ["worker", worker, input],
    ["leaf", leaf, input],
  ])("%s survives a restart", (_, machine, input) => {
    expect(lintMachine(machine, { input })).toEqual([]);
  });
});

describe("actions", () => {
  test.each([
    ["assign", assign({ count: 1 })],
    ["emit", emit({ type: "told" })],
    ["raise", raise({ type: "next" })],
    ["sendTo", sendTo("one", { type: "next" })],
    ["sendParent", sendParent({ type: "next" })],
    ["stopChild", stopChild("one")],
  ])("%s is durable", (_, action) => {
    expect(lintMachine(doing(action))).toEqual([]);
  });

  test.each([
    ["a function", () => undefined, "custom-action"],
    ["log", log("here"), "custom-action"],
    ["cancel", cancel("later"), "custom-action"],
    ["enqueueActions", enqueueActions(() => undefined), "hidden-action"],
    ["a delayed raise", raise({ type: "next" }, { delay: 10 }), "delay"],
    ["a raise with a named delay", raise({ type: "next" }, { delay: "soon" as never }), "delay"],
    ["a delayed sendTo", sendTo("one", { type: "next" }, { delay: 10 }), "delay"],
    ["a delayed sendParent", sendParent({ type: "next" }, { delay: 10 }), "delay"],
  ])("%s is refused where it stands", (_, action, rule) => {
    expect(rulesOf(doing(action))).toEqual([`here: ${rule}`]);
  });

  test("are looked at in every place of a chart", () => {
    const machine = createMachine({
      ...named,
      initial: "start",
      entry: custom,
      exit: custom,
      states: {
        start: { entry: custom, always: { guard: () => false, actions: custom, target: "group" } },
        group: { initial: { target: "inner", actions: custom }, states: { inner: { exit: custom } } },
      },
    } as never);
    expect(rulesOf(machine)).toEqual([
      "(root): custom-action",
      "(root): custom-action",
      "start: custom-action",
      "start: custom-action",
      "group: custom-action",
      "group.inner: custom-action",
    ]);
  });

  test("behind a name are looked at where the name is used, and even when it is not used", () => {
    const machine = setup({
      actions: { shout: () => undefined, wait: raise({ type: "next" }, { delay: 10 }), whisper: () => undefined },
    }).createMachine({
      ...named,
      initial: "here",
      states: { here: { entry: "shout", on: { go: { actions: { type: "wait" } } } } },
    });
    expect(rulesOf(machine)).toEqual(["here: custom-action", "here: delay", "(root): custom-action"]);
    expect(lintMachine(machine)[2]?.message).toContain('"whisper"');
  });

  test("without an implementation are refused by their name", () => {
    expect(only(doing("missing"))).toEqual({
      machine: "tiny",
      state: "here",
      rule: "custom-action",
      message: 'Action "missing" has no implementation. Give it one in setup()',
    });
  });

  test("that XState makes of after are reported once, as after", () => {
    const machine = createMachine({
      ...named,
      initial: "here",
      states: { here: { after: { 1000: "there" } }, there: {} },
    });
    expect(only(machine)).toMatchObject({ state: "here", rule: "delay" });
    expect(only(machine).message).toContain("after (1000)");
  });
});

describe("children", () => {
  test("with an id and handlers for their end and their errors are durable", () => {
    expect(lintMachine(spawning(spawnChild("child", { id: "one" })))).toEqual([]);
  });

  test("without an id are refused, behind a name too", () => {
    expect(only(spawning(spawnChild("child")))).toMatchObject({ state: "(root)", rule: "child-without-id" });
  });

  test("given as code and not by name are refused", () => {
    expect(rulesOf(spawning(spawnChild(child, { id: "one" })))).toEqual(["(root): inline-actor"]);
  });

  test("need a handler for their errors", () => {
    const { "xstate.done.actor.*": done } = handlers;
    const machine = spawning(spawnChild("child", { id: "one" }), { "xstate.done.actor.*": done });
    expect(rulesOf(machine)).toEqual(["(root): unhandled-child-error"]);
  });

  test("need a handler for their end", () => {
    const { "xstate.error.actor.*": error } = handlers;
    const machine = spawning(spawnChild("child", { id: "one" }), { "xstate.error.actor.*": error });
    expect(rulesOf(machine)).toEqual(["(root): unhandled-child-end"]);
  });

  test("are not safe behind a handler that has a guard", () => {
    const guarded = { actions: stopChild("one"), guard: () => false };
    const machine = spawning(spawnChild("child", { id: "one" }), { ...handlers, "xstate.error.actor.*": guarded });
    expect(rulesOf(machine)).toEqual(["(root): unhandled-child-error"]);
  });

  test("spawned inside an assignment are found by its text", () => {
    const whole = assign(({ spawn }) => ({ one: spawn(child, { id: "one" }).id }));
    const single = assign({ one: (args) => args.spawn(child, { id: "one" }).id });
    expect(rulesOf(spawning(whole))).toEqual(["(root): hidden-spawn"]);
    expect(rulesOf(spawning(single, {}))).toEqual([
      "(root): hidden-spawn",
      "(root): unhandled-child-error",
      "(root): unhandled-child-end",
    ]);
  });

  test("spawned by the first context are found, and so is the reference it keeps", () => {
    const machine = setup({ actors: { child } }).createMachine({
      ...named,
      on: handlers,
      context: ({ spawn }) => ({ one: spawn("child", { id: "one" }) }),
    });
    expect(rulesOf(machine)).toEqual(["(root): hidden-spawn", "(root): context"]);
  });

  test("that are machines are looked at as well, each once", () => {
    const bad = createMachine({ id: "bad", version: "1", entry: () => undefined });
    const machine = setup({ actors: { bad, again: bad } }).createMachine({ ...named, on: handlers });
    expect(lintMachine(machine)).toEqual([expect.objectContaining({ machine: "bad", rule: "custom-action" })]);
  });
});

describe("invoked actors", () => {
  test("that are machines or reducers are durable", () => {
    expect(lintMachine(starting(child))).toEqual([]);
    expect(lintMachine(starting(fromTransition((state) => state, {})))).toEqual([]);
  });

  test.each<[string, AnyActorLogic]>([
    ["a promise", fromPromise(async () => 1)],
    ["a callback", fromCallback(() => undefined)],
  ])("that are %s are refused unless they wait for the commit", (_, logic) => {
    expect(only(starting(logic))).toMatchObject({ state: "(root)", rule: "volatile-actor" });
    expect(lintMachine(starting(Object.assign(logic, { durable: true })))).toEqual([]);
  });

  test("given as code and not by name are refused", () => {
    const machine = createMachine({
      ...named,
      initial: "here",
      on: handlers,
      states: { here: { invoke: { src: fromPromise(async () => 1) } } },
    });
    expect(rulesOf(machine)).toEqual(["here: inline-actor", "(root): volatile-actor"]);
  });

  test("need somebody who takes their errors", () => {
    expect(rulesOf(invoking({}))).toEqual(["here: unhandled-child-error"]);
    expect(lintMachine(invoking({ onError: {} }))).toEqual([]);
  });
});

describe("a machine", () => {
  test("needs an id and a version, for its rows to say what wrote them", () => {
    expect(only(createMachine({})).message).toContain("no id and no version");
    expect(only(createMachine({ id: "tiny" }))).toMatchObject({ state: "(root)", rule: "identity" });
    expect(lintMachine(createMachine(named))).toEqual([]);
  });

  test("has no history states", () => {
    const machine = createMachine({
      ...named,
      initial: "group",
      states: { group: { initial: "one", states: { one: {}, before: { type: "history" } } } },
    });
    expect(only(machine)).toMatchObject({ state: "group.before", rule: "history" });
  });
});

describe("contexts", () => {
  class Point {
    readonly x = 0;
  }
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;

  test("of plain JSON are durable", () => {
    const context = { text: "", count: 0, flag: false, none: null, list: [1, { deep: [] }] };
    expect(lintMachine(holding(context))).toEqual([]);
  });

  test.each<[string, unknown, string]>([
    ["undefined", undefined, "context.it is undefined"],
    ["a Date", new Date(0), "context.it is a Date"],
    ["a Map", new Map(), "context.it is a Map"],
    ["a Set", new Set(), "context.it is a Set"],
    ["a function", () => undefined, "context.it is a function"],
    ["a bigint", 1n, "context.it is a bigint"],
    ["a number that JSON does not know", Number.NaN, "context.it is NaN"],
    ["an instance of a class", new Point(), "context.it is a Point"],
    ["a value inside a list", [{ when: new Date(0) }], "context.it.0.when is a Date"],
    ["a circle", circle, "context.it.self contains itself"],
  ])("with %s are refused, and the place is named", (_, it, message) => {
    expect(only(holding({ it }))).toMatchObject({ state: "(root)", rule: "context" });
    expect(only(holding({ it })).message).toContain(message);
  });

  test("given as samples are looked at like the first one", () => {
    const { message } = only(holding({}), { contexts: [{ fine: 1 }, { since: new Date(0) }] });
    expect(message).toContain("In sample 2, context.since is a Date");
  });

  test("that need an input are not passed over when there is none", () => {
    const machine = createMachine({
      ...named,
      context: ({ input }: { input: { name: string } }) => ({ name: input.name }),
    } as never);
    expect(only(machine).message).toContain("Give this check the input");
    expect(lintMachine(machine, { input: { name: "one" } })).toEqual([]);
  });
});
