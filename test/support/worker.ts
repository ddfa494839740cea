import type { Children, WorkerContext, WorkerInput } from "../../machines/vocabulary.ts";

/** What tests say of a worker where they do not care. */

export const assignment = { requestId: "request-1", acceptedAt: 1, metadata: false, deadline: false };
export const noChildren: Children = { living: 0, active: 0, undelivered: 0, asking: 0 };

/** How a worker is started. */
export function inputOf(changes: Partial<WorkerInput> = {}): WorkerInput {
  return {
    runId: "run-1",
    label: "worker",
    agent: "implementer",
    backend: "scripted",
    sessionId: "session",
    ownerSessionId: "owner",
    workspace: "owner",
    cwd: "/",
    delegates: false,
    reusable: false,
    assignment,
    ...changes,
  };
}

/** What a worker knows with an assignment against which nothing speaks. */
export function contextOf(changes: Partial<WorkerContext> = {}): WorkerContext {
  return {
    ...inputOf(),
    assignment,
    ask: null,
    asks: 0,
    unacknowledged: 0,
    children: noChildren,
    diagnostic: null,
    resultError: null,
    lastActivityAt: 1,
    ...changes,
  };
}
