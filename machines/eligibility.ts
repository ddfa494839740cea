import type { WorkerContext } from "./vocabulary.ts";

/**
 * The reasons why not, in their fixed order; the first that holds is the one that is told.
 *
 * A rule looks at the state (`in`) or at what guards can see (`when`). The charts place transitions only in
 * states that no `in` names, and their guards are the `when`s: a test walks every reachable state and shows
 * that a worker accepts an event exactly when no rule here speaks against it.
 */

/** A worker's state as a dotted path, for example `blocked.onOwner`. */
export type StatePath = string;

/** What a rule may look at. `calls` are the tool calls of the model turn that asks, `group` is that of a parked ask. */
export interface View {
  state: StatePath;
  context: WorkerContext;
  calls?: readonly string[];
  group?: string | undefined;
}

export interface Rule {
  reason: string;
  /** One sentence in the worker's terms, without the action's name. */
  message: string;
  nextAction: string;
  in?: readonly StatePath[];
  when?: (view: Omit<View, "state">) => boolean;
}

const CLOSING = ["closing.children", "closing.backend", "closed"];
const FINISHED = ["settling.undelivered", "settling.unpersisted"];
const STARTING = ["settling.launching", "settling.queued"];

const refresh = "list the workers and act on the state they show now";
const finish = "wait for its result, or close it";

function isUnproven({ context }: Omit<View, "state">): boolean {
  return context.unproven !== undefined;
}

const unproven: Rule = {
  reason: "identity_unproven",
  message: "it cannot be proved that what runs is this worker",
  nextAction: "make its backend reachable, then list the workers",
  when: isUnproven,
};

/** Eligibility of `ask_owner`. Source: the `ask_owner` API, "Turn rule" and "Eligibility". */
export const askOwnerRules: readonly Rule[] = [
  {
    reason: "not_sole_tool_call",
    message: "ask_owner must be the sole and final tool call of the turn",
    nextAction: "finish the other calls, then ask in a turn of its own",
    when: ({ calls }) => calls !== undefined && calls.length !== 1,
  },
  {
    reason: "no_active_assignment",
    message: "there is no active assignment",
    nextAction: "ask only while working on a task",
    in: ["ready"],
    when: ({ context }) => context.assignment === null,
  },
  {
    reason: "already_waiting",
    message: "a question to the owner is already waiting for its reply",
    nextAction: "stop and wait for the reply",
    in: ["blocked.onOwner"],
    when: ({ context }) => context.ask !== null,
  },
  {
    reason: "assignment_settling",
    message: "the assignment is settling: its result is already given",
    nextAction: "nothing; the result is on its way to the owner",
    in: FINISHED,
    when: ({ context }) => context.resultError !== null,
  },
  {
    reason: "transition_pending",
    message: "a state transition is pending",
    nextAction: "try again once the worker is working",
    in: [...STARTING, ...CLOSING],
  },
  {
    reason: "request_unacknowledged",
    message: "an owner request is not acknowledged yet",
    nextAction: "take in what the owner sent, then ask",
    when: ({ context }) => context.unacknowledged > 0,
  },
  {
    reason: "child_work_active",
    message: "direct child work is active or its result is unread",
    nextAction: "wait for the children's results, then ask",
    when: ({ context }) => context.children.active + context.children.undelivered > 0,
  },
  {
    reason: "state_not_eligible",
    message: "the worker's state does not allow a question",
    nextAction: refresh,
    in: ["blocked.onChildren", "blocked.onBackend"],
    when: isUnproven,
  },
];

/**
 * Eligibility of a parked ask: the same, but that it need not be alone in its turn, and that it may join the open ones of
 * its own group. Source: "Asking the caller"; specification of parked asks, "Several asks in one run".
 */
export const parkedAskRules: readonly Rule[] = askOwnerRules.slice(1).map((rule) =>
  rule.reason === "already_waiting"
    ? {
        reason: rule.reason,
        message: "another question is already waiting for its answer",
        nextAction: "wait for that answer, or ask both under one groupId",
        when: ({ context: { ask }, group }) => ask !== null && (ask.answered || ask.group !== group),
      }
    : rule,
);

/** A live reusable worker takes a task only when it is `ready`. Source: `subagent` API, "live reusable worker". */
export const assignRules: readonly Rule[] = [
  {
    reason: "not_ready",
    message: "the worker is not ready",
    nextAction: refresh,
    in: [
      "working.inTurn",
      "working.betweenTurns",
      "blocked.onOwner",
      "blocked.onChildren",
      "blocked.onBackend",
      ...FINISHED,
      ...STARTING,
      ...CLOSING,
    ],
    when: ({ context: { children, lost, unproven } }) =>
      children.active + children.asking + children.undelivered > 0 || lost === true || unproven !== undefined,
  },
];

/** `steer` changes the current assignment. Source: `subagent` API, `steer`; specification of steerability. */
export const steerRules: readonly Rule[] = [
  {
    reason: "already_waiting",
    message: "the worker is waiting for its owner's reply",
    nextAction: "reply to its question instead",
    in: ["blocked.onOwner"],
    when: ({ context }) => context.ask !== null,
  },
  {
    reason: "assignment_settling",
    message: "the assignment is settling: its result is already given",
    nextAction: finish,
    in: FINISHED,
    when: ({ context }) => context.resultError !== null,
  },
  {
    reason: "idle",
    message: "the worker has no active assignment to steer",
    nextAction: "assign it a task instead",
    in: ["ready"],
    when: ({ context }) => context.assignment === null,
  },
  {
    reason: "transition_pending",
    message: "a state transition is pending",
    nextAction: refresh,
    in: [...STARTING, ...CLOSING, "blocked.onBackend"],
  },
  unproven,
];

/** `reply` needs the one open question. Source: `ask_owner` API, "Reply". */
export const replyRules: readonly Rule[] = [
  {
    reason: "closed",
    message: "the worker is being closed and its question is abandoned",
    nextAction: refresh,
    in: CLOSING,
  },
  {
    reason: "not_asking",
    message: "the worker is not waiting for an owner reply",
    nextAction: refresh,
    in: ["ready", "blocked.onChildren", "blocked.onBackend", ...FINISHED, ...STARTING],
    when: ({ context }) => context.ask === null,
  },
  {
    reason: "already_answered",
    message: "its question was already answered",
    nextAction: "nothing; the worker goes on with the reply that won",
    when: ({ context }) => context.ask?.answered === true,
  },
  unproven,
];

/** `close` is refused while a launch or another close is under way. Source: rules of the engine, "Trees". */
export const closeRules: readonly Rule[] = [
  {
    reason: "launching",
    message: "the worker is being launched",
    nextAction: "wait until the launch has come to its end, then list the workers",
    in: ["settling.launching"],
  },
  {
    reason: "closing",
    message: "the worker is already closing",
    nextAction: "wait until it is gone",
    in: CLOSING,
  },
];

/** A parent starts children only while it lives and works. Source: rules of the engine, "Trees". */
export const delegateRules: readonly Rule[] = [
  {
    reason: "controller",
    message: "this worker may not start workers of its own",
    nextAction: "do the work in this worker, or ask its owner for another one",
    when: ({ context }) => !context.delegates,
  },
  {
    reason: "already_waiting",
    message: "a question to the owner is waiting for its reply",
    nextAction: "stop and wait for the reply",
    in: ["blocked.onOwner"],
    when: ({ context }) => context.ask !== null,
  },
  {
    reason: "transition_pending",
    message: "the parent is not at work: it is launching, settling, closing, held or without an assignment",
    nextAction: "try again once the parent is working",
    in: [...STARTING, ...FINISHED, ...CLOSING, "ready", "blocked.onBackend"],
  },
  unproven,
];

export const rules = {
  askOwner: askOwnerRules,
  parkedAsk: parkedAskRules,
  assign: assignRules,
  steer: steerRules,
  reply: replyRules,
  close: closeRules,
  delegate: delegateRules,
};

/** The first rule that speaks against it, or undefined when nothing does. */
export function whyNot(list: readonly Rule[], view: View): Rule | undefined {
  return list.find((rule) => rule.in?.includes(view.state) === true || rule.when?.(view) === true);
}

/** What a guard can judge of a list of rules: everything but the state, which the chart's shape judges. */
export function permits(list: readonly Rule[], view: Omit<View, "state">): boolean {
  return !list.some((rule) => rule.when?.(view) === true);
}
