import { z } from "zod";
import { rules, whyNot, type Rule } from "../../machines/eligibility.ts";
import type { Evidence } from "../../machines/vocabulary.ts";
import { FUNCTIONS } from "../backend.ts";
import type { Engine } from "../engine.ts";
import { HerdError } from "../errors.ts";
import { noEvidence, readEvidence } from "../evidence/evidence.ts";
import type { Step } from "../kernel/step.ts";
import { parseRequest } from "../request.ts";
import { askIdOf } from "../store/keys.ts";

/** What `ask_owner` takes. Source: the `ask_owner` API, "Request". */
export const AskOwnerInput = z.strictObject({
  question: z.string().regex(/\S/, "must contain non-whitespace text"),
  files: z.array(z.string().regex(/\S/, "must not be blank")).optional(),
});

export interface AskOwnerCall {
  treeId: string | undefined;
  runId: string;
  request: unknown;
  /** Names of all tool calls of this model turn. */
  calls: readonly string[];
  journalKey?: string;
  /** The assignment that asks, where that is known: another one has not asked anything. */
  requestId?: string;
}

/**
 * `ask_owner`: one question to the direct owner, stored before anybody is told.
 *
 * Refuses in the fixed order: the question's text, the sole tool call, the eligibility reasons, the files.
 * @throws HerdError; nothing was changed.
 */
export async function askOwner(
  engine: Engine,
  call: AskOwnerCall,
): Promise<{ askId: string; assignmentRequestId: string }> {
  const { question, files = [] } = parseRequest("ask_owner", AskOwnerInput, call.request);
  const { treeId, runId, calls, journalKey, requestId } = call;
  if (treeId === undefined) throw refused(rules.askOwner[1] as Rule, { runId });
  const reading = { cwd: engine.cwd, text: question, operation: "ask_owner" };
  const evidence = files.length === 0 ? noEvidence(reading) : await readFiles(engine, call, files, reading);
  return engine.kernel.run(
    treeId,
    (step) =>
      openAsk(step, {
        runId,
        question,
        files: evidence,
        calls,
        ...(journalKey && { journalKey }),
        ...(requestId !== undefined && { requestId }),
      }),
    { operation: "ask_owner" },
  );
}

/** Eligibility comes before the files: a worker that may not ask hears why, whatever it attached. */
async function readFiles(
  engine: Engine,
  { treeId = "", runId, calls, requestId }: AskOwnerCall,
  files: readonly string[],
  reading: Parameters<typeof readEvidence>[1],
): Promise<Evidence[]> {
  const worker = (await engine.kernel.tree(treeId)).worker(runId);
  const rule = worker && whyNot(rules.askOwner, askView(worker, calls, requestId));
  if (rule) {
    await engine.kernel.settled();
    throw refused(rule, { runId });
  }
  return readEvidence(files, { ...reading, cwd: worker?.context.cwd ?? reading.cwd });
}

/** Asks inside a step, or throws the reason why not. */
export function openAsk(
  step: Step,
  ask: Pick<AskOwnerCall, "runId" | "calls" | "journalKey" | "requestId"> & { question: string; files: Evidence[] },
): { askId: string; assignmentRequestId: string } {
  const { runId, question, files, calls, journalKey } = ask;
  const worker = step.worker(runId);
  if (worker === undefined) throw refused(rules.askOwner[1] as Rule, { runId });
  const rule = whyNot(rules.askOwner, askView(worker, calls, ask.requestId));
  if (rule) throw refused(rule, { runId, label: worker.context.label });
  const requestId = worker.context.assignment?.requestId ?? "";
  const askId = askIdOf(requestId, worker.context.asks + 1);
  if (worker.state === "blocked.onChildren") step.send(runId, { type: "turn.started", at: step.now });
  step.send(runId, {
    type: "ask",
    askId,
    calls: [...calls],
    question,
    files,
    at: step.now,
    ...(journalKey !== undefined && { journalKey }),
  });
  return { askId, assignmentRequestId: requestId };
}

/**
 * A function worker that waits for its children still executes: a question of another branch starts its next turn. Who
 * asks for an assignment that ended has none.
 */
function askView(
  { state, context }: { state: string; context: Parameters<typeof whyNot>[1]["context"] },
  calls: readonly string[],
  requestId: string | undefined,
) {
  const executes = state === "blocked.onChildren" && context.backend === FUNCTIONS;
  const isOther = requestId !== undefined && context.assignment?.requestId !== requestId;
  return {
    state: executes ? "working.inTurn" : state,
    context: isOther ? { ...context, assignment: null } : context,
    calls,
  };
}

function refused(rule: Rule, ids: Record<string, string>): HerdError {
  return new HerdError({
    category: rule.reason === "not_sole_tool_call" ? "invalid_request" : "worker_busy",
    reason: rule.reason,
    message: `The worker cannot ask its owner: ${rule.message}`,
    nextAction: rule.nextAction,
    operation: "ask_owner",
    rule: rule.reason,
    ids,
  });
}
