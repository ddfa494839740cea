import { describe, expect, test } from "vitest";
import { contextOf, noChildren } from "../test/support/worker.ts";
import { permits, rules, whyNot, type StatePath, type View } from "./eligibility.ts";
import type { ResultError, WorkerContext } from "./vocabulary.ts";
import { worker } from "./worker.ts";

const resultError = { code: "write_failure", requestId: "request-1" } as ResultError;
const open = { askId: "ask-1", answered: false };

/** A worker against which nothing speaks, whatever it is asked to do. */
const context = contextOf({ delegates: true, reusable: true });

function view(state: StatePath, changes: Partial<WorkerContext> = {}, calls?: readonly string[]): View {
  return { state, context: { ...context, ...changes }, ...(calls && { calls }) };
}

/** A worker as it is in a state. */
const typical: Record<StatePath, Partial<WorkerContext>> = {
  ready: { assignment: null },
  "working.inTurn": {},
  "working.betweenTurns": {},
  "blocked.onOwner": { ask: open },
  "blocked.onChildren": { children: { ...noChildren, living: 1, active: 1 } },
  "blocked.onBackend": { diagnostic: "this program does not know the agent" },
  "settling.launching": {},
  "settling.queued": {},
  "settling.undelivered": {},
  "settling.unpersisted": { resultError },
  "closing.children": { assignment: null },
  "closing.backend": { assignment: null },
  closed: { assignment: null },
};

describe("ask_owner", () => {
  test("knows the sole call and seven reasons, in a fixed order", () => {
    expect(rules.askOwner.map(({ reason }) => reason)).toEqual([
      "not_sole_tool_call",
      "no_active_assignment",
      "already_waiting",
      "assignment_settling",
      "transition_pending",
      "request_unacknowledged",
      "child_work_active",
      "state_not_eligible",
    ]);
  });

  const busy = { unacknowledged: 1, children: { ...noChildren, living: 1, active: 1 } };
  const both = ["ask_owner", "bash"];

  // Each view has every reason that comes later as well, as far as one state allows it.
  test.each<[string, View]>([
    ["not_sole_tool_call", view("ready", { ...busy, assignment: null, ask: open, resultError }, both)],
    ["not_sole_tool_call", view("working.inTurn", {}, both)],
    ["not_sole_tool_call", view("working.inTurn", {}, [])],
    ["no_active_assignment", view("closing.backend", { ...busy, assignment: null, ask: open, resultError })],
    ["no_active_assignment", view("ready")],
    ["already_waiting", view("settling.unpersisted", { ...busy, ask: open, resultError })],
    ["already_waiting", view("working.inTurn", { ask: { askId: "ask-1", answered: true } })],
    ["assignment_settling", view("settling.undelivered", busy)],
    ["assignment_settling", view("settling.launching", { ...busy, resultError })],
    ["transition_pending", view("settling.launching", busy)],
    ["transition_pending", view("closing.children", busy)],
    ["request_unacknowledged", view("blocked.onChildren", busy)],
    ["child_work_active", view("blocked.onChildren", { ...busy, unacknowledged: 0 })],
    ["state_not_eligible", view("blocked.onChildren")],
    ["state_not_eligible", view("blocked.onBackend")],
  ])("is refused by the first reason that holds: %s", (reason, view) => {
    expect(whyNot(rules.askOwner, view)?.reason).toBe(reason);
  });

  test("is accepted alone in its turn, and from programs, which have no turns", () => {
    expect(whyNot(rules.askOwner, view("working.inTurn", {}, ["ask_owner"]))).toBeUndefined();
    expect(whyNot(rules.askOwner, view("working.inTurn"))).toBeUndefined();
  });

  test.each([
    ["no children", {}, undefined],
    ["children that are done", { living: 2 }, undefined],
    ["children that all ask", { living: 2, asking: 2 }, undefined],
    ["one child that works beside one that asks", { living: 2, asking: 1, active: 1 }, "child_work_active"],
    ["one unread result beside one child that asks", { living: 1, asking: 1, undelivered: 1 }, "child_work_active"],
  ])("of a parent with %s", (_, counts, reason) => {
    const parent = view("working.inTurn", { children: { ...noChildren, ...counts } });
    expect(whyNot(rules.askOwner, parent)?.reason).toBe(reason);
  });
});

describe("an owner", () => {
  const commands = ["assign", "steer", "reply", "close"] as const;

  test.each<[StatePath, ...(string | undefined)[]]>([
    ["ready", undefined, "idle", "not_asking", undefined],
    ["working.inTurn", "not_ready", undefined, "not_asking", undefined],
    ["working.betweenTurns", "not_ready", undefined, "not_asking", undefined],
    ["blocked.onOwner", "not_ready", "already_waiting", undefined, undefined],
    ["blocked.onChildren", "not_ready", undefined, "not_asking", undefined],
    ["blocked.onBackend", "not_ready", "transition_pending", "not_asking", undefined],
    ["settling.launching", "not_ready", "transition_pending", "not_asking", "launching"],
    ["settling.queued", "not_ready", "transition_pending", "not_asking", undefined],
    ["settling.undelivered", "not_ready", "assignment_settling", "not_asking", undefined],
    ["settling.unpersisted", "not_ready", "assignment_settling", "not_asking", undefined],
    ["closing.children", "not_ready", "idle", "closed", "closing"],
    ["closing.backend", "not_ready", "idle", "closed", "closing"],
    ["closed", "not_ready", "idle", "closed", "closing"],
  ])("of a worker that is %s hears why not of assign, steer, reply and close", (state, ...reasons) => {
    const heard = commands.map((command) => whyNot(rules[command], view(state, typical[state]))?.reason);
    expect(heard).toEqual(reasons);
  });

  test("may only close a worker of which nothing proves what runs", () => {
    const doubtful = { ask: open, unproven: "its backend does not answer" };
    const heard = commands.map((command) => whyNot(rules[command], view("blocked.onOwner", doubtful))?.reason);
    expect(heard).toEqual(["not_ready", "already_waiting", "identity_unproven", undefined]);
    expect(whyNot(rules.steer, view("working.inTurn", { unproven: "?" }))?.reason).toBe("identity_unproven");
    expect(whyNot(rules.delegate, view("working.inTurn", { unproven: "?" }))?.reason).toBe("identity_unproven");
    expect(whyNot(rules.askOwner, view("working.inTurn", { unproven: "?" }))?.reason).toBe("state_not_eligible");
  });

  test("does not assign to a worker whose process is gone", () => {
    expect(whyNot(rules.assign, view("ready", { assignment: null, lost: true }))?.reason).toBe("not_ready");
  });

  test("may reply while the turn that asked goes on, once", () => {
    expect(whyNot(rules.reply, view("working.inTurn", { ask: open }))).toBeUndefined();
    expect(whyNot(rules.reply, view("working.inTurn", { ask: { ...open, answered: true } }))?.reason).toBe(
      "already_answered",
    );
  });

  test("may not steer a worker that asks, even while its turn goes on", () => {
    expect(whyNot(rules.steer, view("working.inTurn", { ask: open }))?.reason).toBe("already_waiting");
  });

  test("does not assign to a worker that still has children to see to", () => {
    const waiting = { assignment: null, children: { ...noChildren, undelivered: 1 } };
    expect(whyNot(rules.assign, view("ready", waiting))?.reason).toBe("not_ready");
  });
});

describe("a parent", () => {
  test.each<[StatePath, string | undefined]>([
    ["working.inTurn", undefined],
    ["working.betweenTurns", undefined],
    ["blocked.onChildren", undefined],
    ["blocked.onOwner", "already_waiting"],
    ["blocked.onBackend", "transition_pending"],
    ["ready", "transition_pending"],
    ["settling.launching", "transition_pending"],
    ["settling.undelivered", "transition_pending"],
    ["closing.backend", "transition_pending"],
  ])("that is %s may start workers or hears why not", (state, reason) => {
    expect(whyNot(rules.delegate, view(state, typical[state]))?.reason).toBe(reason);
  });

  test("that may not delegate hears that first", () => {
    expect(whyNot(rules.delegate, view("closing.backend", { delegates: false }))?.reason).toBe("controller");
  });
});

describe("the lists of rules", () => {
  const all = Object.entries(rules).flatMap(([command, list]) => list.map((rule) => ({ command, ...rule })));

  test("name only states that the chart has", () => {
    const known = new Set(Object.keys(typical));
    expect(all.flatMap((rule) => rule.in ?? []).filter((path) => !known.has(path))).toEqual([]);
    expect([...atomicPaths(worker.root)].toSorted()).toEqual([...known].toSorted());
  });

  test.each(all)("say what to do next: $command, $reason", ({ reason, message, nextAction }) => {
    expect(reason).toMatch(/^[a-z_]+$/);
    expect(message).not.toBe("");
    expect(nextAction).not.toBe("");
  });

  test("leave the state to the chart where a guard asks", () => {
    expect(permits(rules.steer, { context })).toBe(true);
    expect(permits(rules.steer, { context: { ...context, ask: open } })).toBe(false);
    expect(permits(rules.close, { context })).toBe(true);
  });
});

function* atomicPaths(node: typeof worker.root): Generator<string> {
  const inner = Object.values(node.states);
  if (inner.length === 0) yield node.path.join(".");
  for (const state of inner) yield* atomicPaths(state);
}
