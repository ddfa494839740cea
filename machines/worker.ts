import { definition } from "./worker-setup.ts";
import { launched } from "./launch.ts";
import { NO_CHILDREN, type AskEvent, type CloseReason, type Outcome, type ReplyEvent } from "./vocabulary.ts";

const spawnWorker = definition.spawnChild("worker", { id: (args) => launched(args).runId, input: launched });

/** A question in a turn of its own; it stays open until its reply. */
const ask = {
  guard: { type: "mayAsk", params: ({ event }: { event: AskEvent }) => event },
  actions: [
    { type: "openAsk", params: ({ event }: { event: AskEvent }) => event },
    { type: "tellAsked", params: ({ event }: { event: AskEvent }) => event },
  ],
} as const;

/** One of several open asks is answered: the others still hold the work back. */
const takeAnswer = {
  guard: { type: "mayReply", params: ({ event }: { event: ReplyEvent }) => event },
  actions: [
    { type: "takeAnswer", params: ({ event }: { event: ReplyEvent }) => event },
    { type: "tellAnswered", params: ({ event }: { event: ReplyEvent }) => event },
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
  { guard: "hasUnresolvedChildren", target: "#worker.blocked.onChildren", actions: "noteTurnEnd" },
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

/** Its process ended unasked: it is started again from its session. */
const startAgain = { target: "#worker.working.betweenTurns", actions: ["noteRestart", "orderResume"] } as const;

/** Started again once, it is given up when that does not reach a turn's end. */
const exited = [
  {
    guard: "wasRestarted",
    target: "#worker.settling.undelivered",
    actions: ["noteLoss", { type: "tellLost", params: ({ event }: { event: { at: number; why?: string } }) => event }],
  },
  startAgain,
] as const;

/** The same where it waits for its backend. */
const exitedHeld = [
  { ...exited[0], actions: ["clearDiagnostic", ...exited[0].actions] },
  { ...startAgain, actions: ["clearDiagnostic", ...startAgain.actions] },
] as const;

/** While a question is open nothing settles. */
const dropAsking = { guard: "hasOpenAsk", actions: { type: "tellDropped", params: { why: "asking" } } } as const;

/**
 * One worker. The chart is the rule book: where an event is taken is its shape, what else must hold is a named
 * guard over the rules in `eligibility.ts`.
 *
 * Built to be durable: intentions leave as emitted facts, never as effects; no clocks and no ids are made here
 * (events bring them); no references to other actors in context; every child is spawned under an id.
 */
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
    located: { actions: { type: "notePlace", params: ({ event }) => event } },
    "identity.unproven": { actions: { type: "noteUnproven", params: ({ event }) => event } },
    "identity.proven": { actions: "noteProven" },
  },
  states: {
    ready: {
      description: "Reusable, delivered, with nothing left to resolve: takes the next task.",
      on: {
        assign: {
          guard: "mayAssign",
          target: "working",
          actions: [{ type: "takeAssignment", params: ({ event }) => event }, "orderNext"],
        },
        "process.exited": { actions: "noteLoss" },
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
        // A question comes first: it ends the turn, and its reply starts the process again.
        "process.exited": [
          { guard: "isAnswered", target: ".betweenTurns", actions: ["noteRestart", "orderAnswer", "closeAsk"] },
          { guard: "hasOpenAsk", target: "#worker.blocked.onOwner", actions: "noteRestart" },
          ...exited,
        ],
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
            reply: [
              {
                guard: { type: "mayReplyLast", params: ({ event }) => event },
                actions: ["holdAnswer", { type: "tellAnswered", params: ({ event }) => event }],
              },
              takeAnswer,
            ],
            "turn.ended": [
              { guard: "isAnswered", target: "betweenTurns", actions: ["noteTurnEnd", "orderAnswer", "closeAsk"] },
              { guard: "hasOpenAsk", target: "#worker.blocked.onOwner", actions: "noteTurnEnd" },
              {
                target: "betweenTurns",
                actions: ["noteTurnEnd", { type: "noteActivity", params: ({ event }) => event }],
              },
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
          description:
            "Parked with its question, or a group of them; the last answer goes on with the same assignment.",
          on: {
            // Another one of the same group.
            ask,
            reply: [
              {
                guard: { type: "mayReplyLast", params: ({ event }) => event },
                target: "#worker.working",
                actions: [{ type: "tellAnswered", params: ({ event }) => event }, "orderAnswer", "closeAsk"],
              },
              takeAnswer,
            ],
            settled: { actions: { type: "tellDropped", params: { why: "asking" } } },
            "process.exited": { actions: "noteRestart" },
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
            "process.exited": startAgain,
            "result.unpersisted": {
              target: "#worker.settling.unpersisted",
              actions: { type: "recordResultError", params: ({ event }) => event },
            },
          },
        },
        onBackend: {
          description: "No program here can run it, or its backend waits for a person; nothing is lost.",
          on: {
            "turn.started": {
              target: "#worker.working.inTurn",
              actions: ["clearDiagnostic", { type: "noteActivity", params: ({ event }) => event }],
            },
            hold: { actions: { type: "recordDiagnostic", params: ({ event }) => event } },
            // What it waited for went with its process.
            "process.exited": exitedHeld,
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
              actions: [
                { type: "noteAcceptance", params: ({ event }) => event },
                { type: "notePlace", params: ({ event }) => event },
                "orderRun",
              ],
            },
            "launch.queued": { target: "queued", actions: "orderRun" },
            // Nothing was accepted, so nothing is told; what was started is stopped.
            "launch.failed": { target: "#worker.closing", actions: "clearAssignment" },
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
            "process.exited": { guard: "isReusable", actions: "noteLoss" },
            // Its result is stored and stays on its way; only the worker goes.
            close: { target: "#worker.closing", actions: "clearAssignment" },
          },
        },
        unpersisted: {
          description: "Its result could not be stored; its owner can only close it.",
          on: {
            settled: { actions: { type: "tellDropped", params: { why: "settled" } } },
            "process.exited": { actions: "noteLoss" },
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
