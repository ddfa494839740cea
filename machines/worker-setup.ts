import { assign, emit, setup, stopChild, type AnyActorLogic, type DoneActorEvent, type ErrorActorEvent } from "xstate";
import { permits, rules } from "./eligibility.ts";
import { openAsks } from "./projection.ts";
import type {
  AskEvent,
  Children,
  CloseReason,
  Outcome,
  Place,
  ReplyEvent,
  ResultError,
  WorkerContext,
  WorkerEvent,
  WorkerFact,
  WorkerInput,
} from "./vocabulary.ts";

/**
 * The named guards and actions of the worker's chart. Guards ask the rules in `eligibility.ts`; actions note what an
 * event brought, or tell a fact.
 */
export const definition = setup({
  types: {
    context: {} as WorkerContext,
    events: {} as WorkerEvent | DoneActorEvent<unknown, string> | ErrorActorEvent<unknown, string>,
    emitted: {} as WorkerFact,
    input: {} as WorkerInput,
  },
  // Provided below: the workers of a parent are leaves, a leaf starts none.
  actors: {} as { worker: AnyActorLogic },
  guards: {
    mayAsk: ({ context }, { calls, parked }: AskEvent) =>
      parked
        ? permits(rules.parkedAsk, { context, group: parked.groupId })
        : permits(rules.askOwner, { context, calls }),
    mayAssign: ({ context }) => permits(rules.assign, { context }),
    maySteer: ({ context }) => permits(rules.steer, { context }),
    mayReply: ({ context }, { askId }: ReplyEvent) =>
      openAsks(context.ask).includes(askId) && permits(rules.reply, { context }),
    mayReplyLast: ({ context }, { askId }: ReplyEvent) =>
      openAsks(context.ask).join() === askId && permits(rules.reply, { context }),
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
    wasRestarted: ({ context }) => context.restarted === true,
  },
  actions: {
    noteActivity: assign((_, { at }: { at: number }) => ({ lastActivityAt: at })),
    notePlace: assign(({ context }, { place }: { place?: Place | undefined }) =>
      place === undefined ? {} : { place: { ...context.place, ...place } },
    ),
    noteAcceptance: assign(({ context }, { at }: { at: number }) => ({
      assignment: context.assignment && { ...context.assignment, acceptedAt: at },
      lastActivityAt: at,
    })),
    noteUnproven: assign((_, { diagnostic, speaksFor }: { diagnostic: string; speaksFor?: string | undefined }) => ({
      unproven: diagnostic,
      speaksFor,
    })),
    noteProven: assign({ unproven: undefined, speaksFor: undefined }),
    noteRestart: assign({ restarted: true as const, unproven: undefined, speaksFor: undefined }),
    noteTurnEnd: assign({ restarted: undefined }),
    noteLoss: assign({ lost: true as const, unproven: undefined, speaksFor: undefined }),
    takeAssignment: assign((_, { assignment }: { assignment: NonNullable<WorkerContext["assignment"]> }) => ({
      assignment,
      asks: 0,
      lastActivityAt: assignment.acceptedAt,
    })),
    openAsk: assign(({ context }, { askId, at, parked }: AskEvent) => ({
      ask: parked ? joined(context.ask, askId, parked.groupId) : { askId, answered: false },
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
    takeAnswer: assign(({ context }, { askId }: ReplyEvent) => ({ ask: context.ask && without(context.ask, askId) })),
    tellAnswered: emit(({ context }, reply: ReplyEvent) => ({
      ...reply,
      type: "ask.answered" as const,
      requestId: requestOf(context),
    })),
    tellAbandoned: emit(({ context }, { reason }: { reason: CloseReason }) => ({
      type: "asks.abandoned" as const,
      askIds: openAsks(context.ask),
      requestId: requestOf(context),
      reason,
    })),
    orderRun: emit({ type: "order.run" }),
    orderNext: emit({ type: "order.run", next: true }),
    orderResume: emit({ type: "order.resume" }),
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
    tellEmptyResult: emit(
      ({ context }, { outcome: { usage, contextUsage }, at }: { outcome: Outcome; at: number }) => ({
        type: "result.stored" as const,
        requestId: requestOf(context),
        outcome: {
          status: "failed" as const,
          error: {
            code: "empty_result",
            message: "The worker's result was empty. A worker's result is what it returns.",
          },
          ...(usage && { usage }),
          ...(contextUsage && { contextUsage }),
        },
        at,
      }),
    ),
    tellLost: emit(({ context }, { at, why }: { at: number; why?: string | undefined }) => ({
      type: "result.stored" as const,
      requestId: requestOf(context),
      outcome: {
        status: "failed" as const,
        error: {
          code: "worker_lost",
          message:
            why === undefined
              ? "Its process ended, was started again from its session, and ended again before a turn was over."
              : `Its process ended and could not be started again from its session: ${why}`,
        },
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
    clearAssignment: assign({
      assignment: null,
      ask: null,
      unacknowledged: 0,
      diagnostic: null,
      resultError: null,
      restarted: undefined,
    }),
    countChildren: assign((_, { children }: { children: Children }) => ({ children })),
    removeWorker: stopChild((_, { runId }: { runId: string }) => runId),
  },
});

type Asked = NonNullable<WorkerContext["ask"]>;

/** One more open ask of a group. */
function joined(ask: Asked | null, askId: string, group: string): Asked {
  const open = [...new Set([...openAsks(ask), askId])];
  return { askId: open[0] as string, answered: false, group, open };
}

/** One open ask less; others of its group stay. */
function without(ask: Asked, askId: string): Asked {
  const open = openAsks(ask).filter((id) => id !== askId);
  return { ...ask, askId: open[0] ?? askId, open };
}

function requestOf(context: WorkerContext): string {
  if (context.assignment === null) throw new Error(`worker ${context.label} has no assignment`);
  return context.assignment.requestId;
}
