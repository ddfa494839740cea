import { describe, expect, test } from "vitest";
import { contextOf, noChildren } from "../test/support/worker.ts";
import { activeRequest, countChildren, isResting, isSteerable, publicState, statePath } from "./projection.ts";
import type { StatePath } from "./eligibility.ts";
import type { ResultError, WorkerContext } from "./vocabulary.ts";

const ask = { askId: "ask-1", answered: false };

function child(state: StatePath, changes?: Partial<WorkerContext>): { state: StatePath; context: WorkerContext } {
  return { state, context: contextOf(changes) };
}

describe("a state's path", () => {
  test.each([
    ["ready", "ready"],
    [{ working: "inTurn" }, "working.inTurn"],
    [{ one: { two: "three" } }, "one.two.three"],
  ])("of %j is %s", (value, path) => {
    expect(statePath(value)).toBe(path);
  });
});

describe("the public state", () => {
  test.each([
    ["ready", "ready"],
    ["working.inTurn", "working"],
    ["working.betweenTurns", "working"],
    ["blocked.onOwner", "blocked"],
    ["blocked.onChildren", "blocked"],
    ["blocked.onBackend", "blocked"],
    ["settling.launching", "settling"],
    ["settling.queued", "settling"],
    ["settling.undelivered", "settling"],
    ["settling.unpersisted", "settling"],
    ["closing.children", "closing"],
    ["closing.backend", "closing"],
  ])("of %s is %s", (path, state) => {
    expect(publicState(path)).toBe(state);
  });
});

describe("a worker is steerable", () => {
  test.each<[StatePath, string, Partial<WorkerContext>, boolean]>([
    ["working.inTurn", "in its turn", {}, true],
    ["working.betweenTurns", "between two turns", {}, true],
    ["working.inTurn", "with a question that its turn just asked", { ask }, false],
    ["blocked.onOwner", "with an open question", { ask }, false],
    ["blocked.onChildren", "with working children", { children: { ...noChildren, living: 1, active: 1 } }, true],
    ["blocked.onBackend", "held", { diagnostic: "unknown agent" }, false],
    ["ready", "without an assignment", { assignment: null }, false],
    ["settling.launching", "not accepted yet", {}, false],
    ["settling.queued", "waiting for a place", {}, false],
    ["settling.undelivered", "with its result on its way", {}, false],
    ["settling.unpersisted", "with a result that was not stored", { resultError: {} as ResultError }, false],
    ["closing.backend", "going", { assignment: null }, false],
  ])("%s, %s", (state, _, changes, steerable) => {
    expect(isSteerable(state, contextOf(changes))).toBe(steerable);
  });
});

describe("an assignment is active", () => {
  test.each<[StatePath, Partial<WorkerContext>, string | undefined]>([
    ["settling.launching", {}, "request-1"],
    ["working.inTurn", {}, "request-1"],
    ["blocked.onOwner", { ask }, "request-1"],
    ["settling.undelivered", {}, undefined],
    ["settling.unpersisted", {}, undefined],
    ["ready", { assignment: null }, undefined],
    ["closing.backend", { assignment: null }, undefined],
  ])("in %s until its result is stored", (state, changes, requestId) => {
    expect(activeRequest(state, contextOf(changes))).toBe(requestId);
  });
});

describe("children are counted by what they owe their parent", () => {
  test.each([
    ["nobody", [], 0, {}],
    ["one that is launching", [child("settling.launching")], 0, { living: 1, active: 1 }],
    ["one that works", [child("working.inTurn")], 0, { living: 1, active: 1 }],
    ["one whose turn just asked", [child("working.inTurn", { ask })], 0, { living: 1, asking: 1 }],
    [
      "one whose turn asked and has its answer",
      [child("working.inTurn", { ask: { ...ask, answered: true } })],
      0,
      { living: 1, active: 1 },
    ],
    ["one that asks", [child("blocked.onOwner", { ask })], 0, { living: 1, asking: 1 }],
    ["one that waits for its own children", [child("blocked.onChildren")], 0, { living: 1, active: 1 }],
    ["one that is held", [child("blocked.onBackend")], 0, { living: 1, active: 1 }],
    ["one with an unread result", [child("settling.undelivered")], 0, { living: 1, undelivered: 1 }],
    ["one with a result that was not stored", [child("settling.unpersisted")], 0, { living: 1, undelivered: 1 }],
    ["one that is ready", [child("ready", { assignment: null })], 0, { living: 1 }],
    ["one that is closing", [child("closing.backend", { assignment: null })], 0, { living: 1 }],
    ["three that only wait with their results", [], 3, { undelivered: 3 }],
    [
      "some of each",
      [child("working.inTurn"), child("blocked.onOwner", { ask }), child("settling.undelivered")],
      2,
      { living: 3, active: 1, asking: 1, undelivered: 3 },
    ],
  ])("%s", (_, living, resting, counts) => {
    expect(countChildren(living, resting)).toEqual({ ...noChildren, ...counts });
  });

  test("without a trace in the next count", () => {
    countChildren([child("working.inTurn")], 1);
    expect(countChildren([], 0)).toEqual(noChildren);
  });
});

describe("a worker rests", () => {
  test.each<[boolean, string, StatePath, Partial<WorkerContext>]>([
    [true, "one-shot, its result on its way", "settling.undelivered", {}],
    [
      true,
      "even with results of its own children unread",
      "settling.undelivered",
      { children: { ...noChildren, undelivered: 1 } },
    ],
    [false, "reusable: it takes the next task", "settling.undelivered", { reusable: true }],
    [false, "with a child that still lives", "settling.undelivered", { children: { ...noChildren, living: 1 } }],
    [false, "with a result that was not stored", "settling.unpersisted", {}],
    [false, "at work", "working.inTurn", {}],
    [false, "going", "closing.backend", { assignment: null }],
  ])("%s: %s", (resting, _, state, changes) => {
    expect(isResting(state, contextOf(changes))).toBe(resting);
  });
});
