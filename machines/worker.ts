import { assign, emit, setup, stopChild, type AnyActorLogic, type DoneActorEvent, type ErrorActorEvent } from "xstate";
import { permits, rules } from "./eligibility.ts";
import { launched } from "./launch.ts";
import {
  NO_CHILDREN,
  type AskEvent,
  type Children,
  type CloseReason,
  type Outcome,
  type ReplyEvent,
  type ResultError,
  type WorkerContext,
  type WorkerEvent,
  type WorkerFact,
  type WorkerInput,
} from "./vocabulary.ts";

/**
 * One worker. The chart is the rule book: where an event is taken is its shape, what else must hold is a named
 * guard over the rules in `eligibility.ts`.
 *
 * Built to be durable: intentions leave as emitted facts, never as effects; no clocks and no ids are made here
 * (events bring them); no references to other actors in context; every child is spawned under an id.
 */
const definition = setup({
  types: {
    context: {} as WorkerContext,
    events: {} as WorkerEvent | DoneActorEvent<unknown, string> | ErrorActorEvent<unknown, string>,
    emitted: {} as WorkerFact,
    input: {} as WorkerInput,
  },
  // Provided below: the workers of a parent are leaves, a leaf starts none.
  actors: {} as { worker: AnyActorLogic },
  guards: {
    mayAskOwner: ({ context }, { calls }: AskEvent) => permits(rules.askOwner, { context, calls }),
    mayAssign: ({ context }) => permits(rules.assign, { context }),
    maySteer: ({ context }) => permits(rules.steer, { context }),
    mayReply: ({ context }, { askId }: ReplyEvent) => context.ask?.askId === askId && permits(rules.reply, { context }),
    mayDelegate: ({ context }) => permits(rules.delegate, { context }),
    hasOpenAsk: ({ context }) => context.ask !== null,
    hasUnansweredAsk: ({ context }) => context.ask?.answered === false,
    isAnswered: ({ context }) => context.ask?.answered === true,
    hasNoOpenAsk: ({ context }) => context.ask === null,
    hasUnresolvedChildren: ({ context: { children } }) => children.active + children.undelivered + children.asking > 0,
    mustAwaitChildren: ({ context: { ask, children } }) =>
      ask === null && children.active + children.undelivered + children.asking > 0,
    hasNoLivingChildren: ({ context }) => context.children.living === 0,
    isBlank: (_, { outcome }: { outcome: Outcome }) => outcome.status === "completed" && outcome.text.trim() === "",
    isReusable: ({ context }) => context.reusable,
  },
  actions: {
    noteActivity: assign((_, { at }: { at: number }) => ({ lastActivityAt: at })),
    takeAssignment: assign((_, { assignment }: { assignment: NonNullable<WorkerContext["assignment"]> }) => ({
      assignment,
      asks: 0,
      lastActivityAt: assignment.acceptedAt,
    })),
    openAsk: assign(({ context }, { askId, at }: AskEvent) => ({
      ask: { askId, answered: false },
      asks: context.asks + 1,
      lastActivityAt: at,
    })),
    tellAsked: emit(({ context }, ask: AskEvent) => ({
      ...ask,
      type: "ask.opened" as const,
      requestId: requestOf(context),
    })),
    holdAnswer: assign(({ context }) => ({ ask: context.ask && { ...context.ask, answered: true } })),
    closeAsk: assign({ ask: null }),
    tellAnswered: emit(({ context }, reply: ReplyEvent) => ({
      ...reply,
      type: "ask.answered" as const,
      requestId: requestOf(context),
    })),
    tellAbandoned: emit(({ context }, { reason }: { reason: CloseReason }) => ({
      type: "ask.abandoned" as const,
      askId: context.ask?.askId ?? "",
      requestId: requestOf(context),
      reason,
    })),
    orderRun: emit({ type: "order.run" }),
    orderAnswer: emit(({ context }) => ({ type: "order.run" as const, answerOf: context.ask?.askId ?? "" })),
    orderSteer: emit((_, { steerId, message, files }: Extract<WorkerEvent, { type: "steer" }>) => ({
      type: "order.steer" as const,
      steerId,
      message,
      files,
    })),
    orderStop: emit({ type: "order.stop" }),
    countSteer: assign(({ context }) => ({ unacknowledged: context.unacknowledged + 1 })),
    countDelivered: assign(({ context }) => ({ unacknowledged: Math.max(0, context.unacknowledged - 1) })),
    tellResult: emit(({ context }, { outcome, at }: { outcome: Outcome; at: number }) => ({
      type: "result.stored" as const,
      requestId: requestOf(context),
      outcome,
      at,
    })),
    tellEmptyResult: emit(({ context }, { outcome: { usage }, at }: { outcome: Outcome; at: number }) => ({
      type: "result.stored" as const,
      requestId: requestOf(context),
      outcome: {
        status: "failed" as const,
        error: {
          code: "empty_result",
          message: "The worker's result was empty. A worker's result is what it returns.",
        },
        ...(usage && { usage }),
      },
      at,
    })),
    tellDropped: emit(({ context }, { why }: { why: "asking" | "closing" | "settled" }) => ({
      type: "result.dropped" as const,
      requestId: context.assignment?.requestId ?? null,
      why,
    })),
    tellAssignmentClosed: emit(({ context }, { reason, at }: { reason: CloseReason; at: number }) => ({
      type: "assignment.closed" as const,
      requestId: requestOf(context),
      reason,
      at,
    })),
    tellClosed: emit({ type: "worker.closed" }),
    recordResultError: assign((_, { error }: { error: ResultError }) => ({ resultError: error })),
    recordDiagnostic: assign((_, { diagnostic }: { diagnostic: string }) => ({ diagnostic })),
    clearDiagnostic: assign({ diagnostic: null }),
    clearAssignment: assign({ assignment: null, ask: null, unacknowledged: 0, diagnostic: null, resultError: null }),
    countChildren: assign((_, { children }: { children: Children }) => ({ children })),
    removeWorker: stopChild((_, { runId }: { runId: string }) => runId),
  },
});

const spawnWorker = definition.spawnChild("worker", { id: (args) => launched(args).runId, input: launched });

function requestOf(context: WorkerContext): string {
  if (context.assignment === null) throw new Error(`worker ${context.label} has no assignment`);
  return context.assignment.requestId;
}

/** A question in a turn of its own; it stays open until its reply. */
const ask = {
  guard: { type: "mayAskOwner", params: ({ event }: { event: AskEvent }) => event },
  actions: [
    { type: "openAsk", params: ({ event }: { event: AskEvent }) => event },
    { type: "tellAsked", params: ({ event }: { event: AskEvent }) => event },
  ],
} as const;

/** Closing gives up the assignment, told once. */
const close = {
  target: "#worker.closing",
  actions: [
    { type: "tellAssignmentClosed", params: ({ event }: { event: { reason: CloseReason; at: number } }) => event },
    "clearAssignment",
  ],
} as const;

/** Where a question may be open, closing gives it up first; one that was answered has its end. */
const closeAsking = [
  {
    guard: "hasUnansweredAsk",
    target: close.target,
    actions: [
      { type: "tellAbandoned", params: ({ event }: { event: { reason: CloseReason } }) => event },
      ...close.actions,
    ],
  },
  close,
] as const;

/** The end of the work, wherever it may come: held back by children, empty, or stored. */
const settle = [
  { guard: "hasUnresolvedChildren", target: "#worker.blocked.onChildren" },
  {
    guard: { type: "isBlank", params: ({ event }: { event: { outcome: Outcome } }) => event },
    target: "#worker.settling.undelivered",
    actions: { type: "tellEmptyResult", params: ({ event }: { event: { outcome: Outcome; at: number } }) => event },
  },
  {
    target: "#worker.settling.undelivered",
    actions: { type: "tellResult", params: ({ event }: { event: { outcome: Outcome; at: number } }) => event },
  },
] as const;

/** While a question is open nothing settles. */
const dropAsking = { guard: "hasOpenAsk", actions: { type: "tellDropped", params: { why: "asking" } } } as const;

const machine = definition.createMachine({
  id: "worker",
  version: "1",
  description: "One task at a time, at most one open question, exactly one result.",
  context: ({ input }) => ({
    ...input,
    ask: null,
    asks: 0,
    unacknowledged: 0,
    children: NO_CHILDREN,
    diagnostic: null,
    resultError: null,
    lastActivityAt: input.assignment.acceptedAt,
  }),
  initial: "settling",
  on: {
    "children.changed": { actions: { type: "countChildren", params: ({ event }) => event } },
    "worker.rested": { actions: { type: "removeWorker", params: ({ event }) => event } },
    "xstate.done.actor.*": { actions: { type: "removeWorker", params: ({ event }) => ({ runId: event.actorId }) } },
    // The engine undoes the whole command; the chart only keeps one broken child from taking its siblings along.
    "xstate.error.actor.*": { actions: { type: "removeWorker", params: ({ event }) => ({ runId: event.actorId }) } },
    activity: { actions: { type: "noteActivity", params: ({ event }) => event } },
    delivered: { actions: "countDelivered" },
  },
  states: {
    ready: {
      description: "Reusable, delivered, with nothing left to resolve: takes the next task.",
      on: {
        assign: {
          guard: "mayAssign",
          target: "working",
          actions: [{ type: "takeAssignment", params: ({ event }) => event }, "orderRun"],
        },
        settled: { actions: { type: "tellDropped", params: { why: "settled" } } },
        close: { target: "closing" },
      },
    },
    working: {
      description: "An assignment is active. An accepted question stays here until its turn ends.",
      initial: "betweenTurns",
      on: {
        "worker.launch": { guard: "mayDelegate", actions: spawnWorker },
        "tool.called": { actions: { type: "noteActivity", params: ({ event }) => event } },
        steer: {
          guard: "maySteer",
          actions: ["countSteer", { type: "orderSteer", params: ({ event }) => event }],
        },
        settled: [dropAsking, ...settle],
        "children.awaited": { guard: "mustAwaitChildren", target: "#worker.blocked.onChildren" },
        // The store takes this row but not the result: the evidence stays until the owner closes the worker.
        "result.unpersisted": {
          guard: "hasNoOpenAsk",
          target: "settling.unpersisted",
          actions: { type: "recordResultError", params: ({ event }) => event },
        },
        // An open question comes first: its reply starts the next turn, which is then held.
        hold: {
          guard: "hasNoOpenAsk",
          target: "blocked.onBackend",
          actions: { type: "recordDiagnostic", params: ({ event }) => event },
        },
        close: closeAsking,
      },
      states: {
        betweenTurns: {
          description: "Its next turn is ordered and has not started yet.",
          on: {
            "turn.started": { target: "inTurn", actions: { type: "noteActivity", params: ({ event }) => event } },
            // No turn is left to end.
            ask: { ...ask, target: "#worker.blocked.onOwner" },
          },
        },
        inTurn: {
          description: "A turn runs. What it asks waits for its end.",
          on: {
            ask,
            reply: {
              guard: { type: "mayReply", params: ({ event }) => event },
              actions: ["holdAnswer", { type: "tellAnswered", params: ({ event }) => event }],
            },
            "turn.ended": [
              { guard: "isAnswered", target: "betweenTurns", actions: ["orderAnswer", "closeAsk"] },
              { guard: "hasOpenAsk", target: "#worker.blocked.onOwner" },
              { target: "betweenTurns", actions: { type: "noteActivity", params: ({ event }) => event } },
            ],
          },
        },
      },
    },
    blocked: {
      description: "Waits for somebody else: its owner, its children, or a program that can run it.",
      initial: "onOwner",
      states: {
        onOwner: {
          description: "Parked with one question; the reply goes on with the same assignment.",
          on: {
            reply: {
              guard: { type: "mayReply", params: ({ event }) => event },
              target: "#worker.working",
              actions: [{ type: "tellAnswered", params: ({ event }) => event }, "orderAnswer", "closeAsk"],
            },
            settled: { actions: { type: "tellDropped", params: { why: "asking" } } },
          },
        },
        onChildren: {
          description: "Has nothing to do until a child asks or ends; can still be steered.",
          on: {
            "turn.started": {
              target: "#worker.working.inTurn",
              actions: { type: "noteActivity", params: ({ event }) => event },
            },
            "worker.launch": { guard: "mayDelegate", actions: spawnWorker },
            steer: {
              guard: "maySteer",
              target: "#worker.working",
              actions: ["countSteer", { type: "orderSteer", params: ({ event }) => event }],
            },
            settled: settle,
            "result.unpersisted": {
              target: "#worker.settling.unpersisted",
              actions: { type: "recordResultError", params: ({ event }) => event },
            },
          },
        },
        onBackend: {
          description: "No program here can run it; nothing is lost.",
          on: {
            "turn.started": {
              target: "#worker.working.inTurn",
              actions: ["clearDiagnostic", { type: "noteActivity", params: ({ event }) => event }],
            },
            hold: { actions: { type: "recordDiagnostic", params: ({ event }) => event } },
          },
        },
      },
      on: { close: closeAsking },
    },
    settling: {
      description: "Handing over: a launch that is not accepted yet, or a result that its owner does not have yet.",
      initial: "launching",
      states: {
        launching: {
          description: "Stored; its backend has not accepted it yet.",
          on: {
            "launch.accepted": {
              target: "#worker.working",
              actions: [{ type: "noteActivity", params: ({ event }) => event }, "orderRun"],
            },
            "launch.queued": { target: "queued", actions: "orderRun" },
            "launch.failed": { target: "#worker.closed", actions: "clearAssignment" },
            close,
          },
        },
        queued: {
          description: "Accepted in order; waits for a free place.",
          on: {
            "launch.accepted": {
              target: "#worker.working",
              actions: { type: "noteActivity", params: ({ event }) => event },
            },
            hold: {
              target: "#worker.blocked.onBackend",
              actions: { type: "recordDiagnostic", params: ({ event }) => event },
            },
            close,
          },
        },
        undelivered: {
          description: "Its result is stored and on its way to its owner.",
          on: {
            "result.acknowledged": [
              { guard: "isReusable", target: "#worker.ready", actions: "clearAssignment" },
              { target: "#worker.closing", actions: "clearAssignment" },
            ],
            settled: { actions: { type: "tellDropped", params: { why: "settled" } } },
            // Its result is stored and stays on its way; only the worker goes.
            close: { target: "#worker.closing", actions: "clearAssignment" },
          },
        },
        unpersisted: {
          description: "Its result could not be stored; its owner can only close it.",
          on: {
            settled: { actions: { type: "tellDropped", params: { why: "settled" } } },
            close,
          },
        },
      },
    },
    closing: {
      description: "Its children go first, then the proof that nothing executes it any more.",
      initial: "children",
      on: { settled: { actions: { type: "tellDropped", params: { why: "closing" } } } },
      states: {
        children: {
          description: "Waits until its children are gone.",
          always: { guard: "hasNoLivingChildren", target: "backend" },
        },
        backend: {
          description: "Told to stop; waits for the proof that it did.",
          entry: "orderStop",
          on: { "backend.gone": "#worker.closed" },
        },
      },
    },
    closed: { type: "final", description: "Gone. Its session stays.", entry: "tellClosed" },
  },
});

/** A worker without workers of its own. */
export const leaf = machine;

/** A worker that may start leaves, when its definition allows it. */
export const worker = machine.provide({ actors: { worker: leaf } });
