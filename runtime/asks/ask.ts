import { z } from "zod";
import { rules, whyNot, type Rule } from "../../machines/eligibility.ts";
import type { Evidence, ParkedAsk } from "../../machines/vocabulary.ts";
import { FUNCTIONS } from "../backend.ts";
import type { Engine } from "../engine.ts";
import { HerdError } from "../errors.ts";
import { noEvidence, readEvidence } from "../evidence/evidence.ts";
import type { Step } from "../kernel/step.ts";
import type { WorkerView } from "../kernel/tree.ts";
import { parseRequest } from "../request.ts";
import { askIdOf } from "../store/keys.ts";
import { chainOf } from "./chain.ts";
import { countsOn } from "./record.ts";

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
  const { ownerKey } = engine.kernel.loaded(treeId) ?? (await engine.kernel.tree(treeId));
  const reading = { cwd: engine.cwd, text: question, operation: "ask_owner", limits: engine.limits.of(ownerKey) };
  const evidence = files.length === 0 ? noEvidence(reading) : await readFiles(engine, call, files, reading);
  await readyToCount(engine, treeId);
  return engine.kernel.run(
    treeId,
    (step) =>
      openAsk(engine, step, {
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

/** What a worker asks its caller or a person. */
export interface ParkedAskCall {
  treeId: string;
  runId: string;
  question: string;
  fields: ParkedFields;
  journalKey: string;
}

/**
 * Parks one ask on the subject of the outermost run, or puts it before a person; stored before anybody is told.
 * @param call with fields that were checked.
 * @throws HerdError the reason why not, `limit` last; nothing was changed.
 */
export async function askParked(
  engine: Engine,
  { treeId, ...ask }: ParkedAskCall,
): Promise<{ askId: string; assignmentRequestId: string }> {
  if (ask.fields.to === "user") await engine.caps.user.ready();
  else await readyToCount(engine, treeId);
  return engine.kernel.run(treeId, (step) => openAsk(engine, step, { ...ask, calls: [], files: [] }), {
    operation: "ask",
  });
}

/** The cap is read before the step that looks at it, and only where it counts. */
async function readyToCount({ kernel, caps }: Engine, treeId: string): Promise<void> {
  const tree = kernel.loaded(treeId) ?? (await kernel.tree(treeId));
  if (tree.owner.scope !== undefined) await caps.caller.ready();
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

/** What is asked, once it is looked at. */
interface AskedInStep extends Pick<AskOwnerCall, "runId" | "calls" | "journalKey" | "requestId"> {
  question: string;
  files: Evidence[];
  /** Of a parked ask. */
  fields?: ParkedFields;
}

/** What a parked ask says, but for who asked, which its place says. Without a group it is one of its own. */
export type ParkedFields = Omit<ParkedAsk, "askedBy" | "groupId"> & { groupId?: string };

/** Asks inside a step, or throws the reason why not. */
export function openAsk(engine: Engine, step: Step, ask: AskedInStep): { askId: string; assignmentRequestId: string } {
  const { runId, question, files, calls, journalKey, fields } = ask;
  const operation = fields ? "ask" : "ask_owner";
  const worker = step.worker(runId);
  if (worker === undefined) throw refused(rules.askOwner[1] as Rule, { runId }, operation);
  const requestId = worker.context.assignment?.requestId ?? "";
  const askId = askIdOf(requestId, worker.context.asks + 1);
  const parked = fields && parkedAsk(step, worker, askId, fields);
  const view = askView(worker, calls, ask.requestId);
  const rule = whyNot(parked ? rules.parkedAsk : rules.askOwner, { ...view, group: parked?.groupId });
  if (rule) throw refused(rule, { runId, label: worker.context.label }, operation);
  checkRoom(engine, step, worker, parked, operation);
  if (worker.state === "blocked.onChildren") step.send(runId, { type: "turn.started", at: step.now });
  step.send(runId, {
    type: "ask",
    askId,
    calls: [...calls],
    question,
    files,
    at: step.now,
    ...(journalKey !== undefined && { journalKey }),
    ...(parked && { parked }),
  });
  return { askId, assignmentRequestId: requestId };
}

/** What a parked ask is asked with: several of one group are resumed together. */
function parkedAsk({ tree }: Step, worker: WorkerView, askId: string, fields: ParkedFields): ParkedAsk {
  const askedBy = chainOf(tree, worker.context.runId).map(({ context }) => context.agent);
  return { ...fields, groupId: fields.groupId ?? askId, askedBy };
}

/** The cap comes after every other reason. */
function checkRoom(
  engine: Engine,
  step: Step,
  { path }: WorkerView,
  parked: ParkedAsk | undefined,
  operation: string,
): void {
  if (parked?.to === "user") return engine.caps.user.checkRoom(step.now, operation);
  const owner = parked ? step.tree.ownerKey : engine.ownerKey(step.tree, path);
  if (countsOn(step, owner)) engine.caps.caller.checkRoom(step.now, operation);
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

function refused(rule: Rule, ids: Record<string, string>, operation = "ask_owner"): HerdError {
  return new HerdError({
    category: rule.reason === "not_sole_tool_call" ? "invalid_request" : "worker_busy",
    reason: rule.reason,
    message: `The worker cannot ask${operation === "ask" ? "" : " its owner"}: ${rule.message}`,
    nextAction: rule.nextAction,
    operation,
    rule: rule.reason,
    ids,
  });
}
