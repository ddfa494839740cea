import { createActor, setup, type AnyActorRef, type ErrorActorEvent, type InspectionEvent } from "xstate";
import { describe, expect, test } from "vitest";

/**
 * What the kernel takes from XState beyond its documented promises, one test each: an upgrade that changes one of
 * these fails here, by name.
 */
const child = setup({
  types: {
    context: {} as { name: string },
    events: {} as { type: "go" } | { type: "break" } | { type: "end" },
    input: {} as { name: string },
  },
  guards: {
    explodes: () => {
      throw new Error("guard broke");
    },
  },
}).createMachine({
  context: ({ input }) => input,
  initial: "idle",
  states: {
    idle: { on: { go: "gone", break: { guard: "explodes", target: "gone" }, end: "ended" } },
    gone: {},
    ended: { type: "final" },
  },
});

const definition = setup({
  types: {
    events: {} as { type: "hire"; id: string } | { type: "tell" } | ErrorActorEvent<unknown, string>,
    emitted: {} as { type: "told"; to: string },
  },
  actors: { child },
});
const parent = definition.createMachine({
  on: {
    hire: {
      actions: definition.spawnChild("child", {
        id: ({ event }) => (event as { id: string }).id,
        input: { name: "x" },
      }),
    },
    tell: { actions: definition.emit({ type: "told", to: "all" }) },
    "xstate.done.actor.*": {
      actions: definition.stopChild(({ event }) => (event as unknown as { actorId: string }).actorId),
    },
    "xstate.error.actor.*": { actions: definition.stopChild(({ event }) => (event as { actorId: string }).actorId) },
  },
});

function observed(snapshot?: unknown) {
  const events: InspectionEvent[] = [];
  const root = createActor(parent, {
    id: "root",
    ...(snapshot ? { snapshot: snapshot as never } : {}),
    inspect: (event) => events.push(event),
  });
  root.subscribe({ error: () => undefined });
  root.start();
  return { root, events, of: (type: string) => events.filter((event) => event.type === type) };
}
const childOf = (root: AnyActorRef, id: string) => root.getSnapshot().children[id] as AnyActorRef;

describe("XState", () => {
  test("shows every actor of a system in its creation event, with its parent under _parent", () => {
    const { root, of } = observed();
    root.send({ type: "hire", id: "a" });
    const actors = of("@xstate.actor").map(
      ({ actorRef }) => actorRef as unknown as { id: string; _parent?: { id: string } },
    );
    expect(actors.map(({ id, _parent }) => `${_parent?.id ?? "-"} ${id}`)).toEqual(["- root", "root a"]);
  });

  test("shows an emitted event as an action with the event in its params", () => {
    const { root, of } = observed();
    root.send({ type: "tell" });
    const emitted = of("@xstate.action").map(
      (event) => (event as { action: { type: string; params: unknown } }).action,
    );
    expect(emitted).toMatchObject([{ type: "xstate.emit", params: { event: { type: "told", to: "all" } } }]);
  });

  test("runs a whole cascade inside send, so that no mailbox holds anything at commit", () => {
    const { root } = observed();
    root.send({ type: "hire", id: "a" });
    childOf(root, "a").send({ type: "end" });
    expect(root.getSnapshot().children).toEqual({});
  });

  test("shows a snapshot of every actor that an event touched", () => {
    const { root, of } = observed();
    root.send({ type: "hire", id: "a" });
    const before = of("@xstate.snapshot").length;
    childOf(root, "a").send({ type: "go" });
    expect(
      of("@xstate.snapshot")
        .slice(before)
        .map(({ actorRef }) => (actorRef as AnyActorRef).id),
    ).toEqual(["a"]);
  });

  test("brings actors back from a snapshot without children, assembled by id and src", () => {
    const snapshot = (value: unknown, context: unknown, children: object) => ({
      status: "active",
      value,
      context,
      historyValue: {},
      children,
      output: undefined,
      error: undefined,
    });
    const a = { snapshot: snapshot("gone", { name: "kept" }, {}), src: "child" };
    const { root, events } = observed(snapshot({}, undefined, { a }));
    const restored = childOf(root, "a").getSnapshot();
    expect(restored).toMatchObject({ status: "active", value: "gone", context: { name: "kept" } });
    expect(events.some(({ type }) => type === "@xstate.actor")).toBe(true);
  });

  test("tells a parent of a child whose guard threw, and keeps the others", () => {
    const { root, of } = observed();
    root.send({ type: "hire", id: "a" });
    root.send({ type: "hire", id: "b" });
    childOf(root, "a").send({ type: "break" });
    const errors = of("@xstate.event").filter((event) =>
      (event as { event: { type: string } }).event.type.startsWith("xstate.error.actor"),
    );
    expect(errors).toHaveLength(1);
    expect((errors[0] as unknown as { event: { error: Error } }).event.error.message).toContain("guard broke");
    expect(Object.keys(root.getSnapshot().children)).toEqual(["b"]);
  });

  test("keeps a context that no transition assigned the same object", () => {
    const { root } = observed();
    root.send({ type: "hire", id: "a" });
    const { context } = childOf(root, "a").getSnapshot();
    childOf(root, "a").send({ type: "go" });
    expect(childOf(root, "a").getSnapshot().context).toBe(context);
  });
});
