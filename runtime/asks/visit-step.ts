import type { Json } from "../../machines/vocabulary.ts";
import { acknowledgeIn } from "../deliveries/record.ts";
import type { Engine } from "../engine.ts";
import type { LaunchRecord, OutcomeRecord, ParkedRecord, RequestRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { keys } from "../store/keys.ts";
import { beginLaunch, type Begun } from "../subagent/launch.ts";
import { chainOf, closeChain } from "./chain.ts";
import type { Found } from "./found.ts";
import { answerIn } from "./reply.ts";
import type { PlannedStart } from "./start.ts";
import { beingDelivered } from "./take.ts";
import { entryGone, overlap, refused, type VisitFields } from "./visit-request.ts";
import type { VisitOutcome } from "./visit-shapes.ts";

const OPERATION = "visit";

/** What a visit found and prepared before it does anything. */
export interface Prepared {
  fields: VisitFields;
  cancel: Found[];
  resume: { found: Found; answer: Json }[];
  take: Found | undefined;
  start: PlannedStart | undefined;
}

/** What a visit did, as soon as it is on disk. */
export interface Done {
  action: VisitOutcome["action"];
  cancelled: string[];
  /** The assignment that was resumed, taken or started. */
  requestId?: string;
  /** The questions that were answered. */
  answered?: string[];
  /** The one whose outcome the visit waits for: the outermost that waits for it. */
  top?: string;
  /** A worker in a process that was started: it has to accept before there is an assignment. */
  launch?: { tree: string; runId: string };
}

/** What came of it, for whoever goes on with it. */
export interface Made {
  done: Done;
  /** The run whose outcome is waited for. */
  top: RequestRecord | undefined;
  taken: OutcomeRecord | undefined;
  launched: Begun | undefined;
}

/**
 * Does everything of a visit, in one synchronous section over the trees that it touches. What was found is looked at again
 * first: another visit may have been faster.
 * @param visitor the worker that visits, if one does.
 * @throws HerdError `entry_gone`, `being_delivered`, `visit_request`; nothing was changed.
 */
export function makeVisit(
  engine: Engine,
  prepared: Prepared,
  steps: readonly Step[],
  visitor: string | undefined,
): Made {
  const { cancel, resume, take, start } = prepared;
  const stepOf = (treeId: string): Step => steps.find(({ tree }) => tree.id === treeId) as Step;
  lookAgain(engine, prepared, stepOf);
  checkWaits(engine, prepared, stepOf, visitor);
  const done: Done = { action: "none", cancelled: cancel.map(({ entry }) => entry.id) };
  let top: RequestRecord | undefined;
  let launched: Begun | undefined;
  let taken: OutcomeRecord | undefined;
  const resumedTop = resume[0] && topOf(engine, stepOf(resume[0].found.request.tree), resume[0].found);
  if (resume.length > 0) done.answered = resume.map(({ found }) => found.entry.id);
  for (const found of cancel) cancelIn(engine, stepOf, found);
  for (const { found, answer } of resume) {
    const step = stepOf(found.request.tree);
    // Cancelled along with another one of its run.
    if (step.worker(found.ask?.runId ?? "")?.context.ask == null) throw overlap(found.entry.id);
    answerIn(engine, step, found.ask as NonNullable<Found["ask"]>, {
      message: answer,
      files: [],
      operation: OPERATION,
    });
    Object.assign(done, { action: "resumed", requestId: found.request.requestId });
    top = resumedTop;
  }
  if (take?.delivery) {
    const step = stepOf(take.delivery.tree);
    acknowledgeIn(engine, step, take.delivery);
    Object.assign(done, { action: "taken", requestId: take.request.requestId });
    taken = step.read<OutcomeRecord>(keys.outcome(take.request.requestId));
  }
  if (start) {
    const step = stepOf(start.by.treeId);
    launched = beginLaunch(engine, step, start.by, start.plan);
    top = startedIn(step, launched);
    Object.assign(done, { action: "started", requestId: top.requestId });
    if ("answer" in launched) done.launch = { tree: top.tree, runId: top.runId };
  }
  if (top) done.top = top.requestId;
  return { done, top, taken, launched };
}

/** The request of a run that was started in this step; that of a process is stored when it accepts. */
function startedIn(step: Step, begun: Begun): RequestRecord {
  if (!("answer" in begun)) return begun;
  const [worker] = step.tree.childrenOf("");
  const launch = worker && step.read<LaunchRecord>(keys.launch(worker.context.runId));
  if (launch?.pending === undefined) throw new Error("a worker was launched and has no launch");
  return launch.pending.request;
}

/** Another visit may have been faster. */
function lookAgain(engine: Engine, { cancel, resume, take }: Prepared, stepOf: (treeId: string) => Step): void {
  const isThere = ({ request, ask, delivery }: Found): boolean => {
    const step = stepOf(delivery?.tree ?? request.tree);
    if (delivery) return step.read(keys.delivery(delivery.owner, delivery.deliveryId)) !== undefined;
    const now = step.read<NonNullable<Found["ask"]>>(keys.ask(ask?.askId ?? ""));
    const listed = now && step.read<ParkedRecord>(keys.parked(now.owner, now.requestId))?.askIds;
    return now !== undefined && !now.abandoned && listed?.includes(now.askId) === true;
  };
  for (const found of cancel) if (!isThere(found)) throw entryGone(found.entry.id);
  for (const { found } of resume) {
    if (!isThere(found)) throw entryGone(found.entry.id);
    const { ask, request } = found;
    const now = stepOf(request.tree).read<NonNullable<Found["ask"]>>(keys.ask(ask?.askId ?? ""));
    if (now?.answer) throw entryGone(found.entry.id, "The entry is no longer asking");
  }
  if (take === undefined) return;
  if (!isThere(take)) throw entryGone(take.entry.id);
  if (take.delivery && engine.deliveries.isLeased(take.delivery)) throw beingDelivered(OPERATION, take.entry.id);
}

/** Nobody acts on a run that waits for it: it would wait for itself. */
function checkWaits(
  engine: Engine,
  { cancel, resume }: Prepared,
  stepOf: (treeId: string) => Step,
  visitor: string | undefined,
): void {
  if (visitor === undefined) return;
  const own = [...engine.kernel.trees()].find((tree) => tree.worker(visitor));
  const waiting = engine.visits.waitingFor(own ? chainOf(own, visitor) : []);
  for (const { ask, request, entry } of [...cancel, ...resume.map(({ found }) => found)]) {
    const chain = ask ? chainOf(stepOf(request.tree).tree, ask.runId) : [];
    if (!chain.some(({ context }) => waiting.has(context.runId))) continue;
    throw refused(
      "waits_for_this_run",
      "id",
      `The run of the entry ${JSON.stringify(entry.id)} waits for this run`,
      "leave it to whoever called this run",
      entry.id,
    );
  }
}

function topOf(engine: Engine, { tree }: Step, { ask }: Found): RequestRecord | undefined {
  const requestId = chainOf(tree, ask?.runId ?? "")[0]?.context.assignment?.requestId;
  return requestId === undefined ? undefined : engine.request(requestId);
}

/** A question takes its whole chain along; an outcome just goes. */
function cancelIn(engine: Engine, stepOf: (treeId: string) => Step, { ask, request, delivery }: Found): void {
  if (delivery) return acknowledgeIn(engine, stepOf(delivery.tree), delivery);
  const message = `A question of "${request.label}" was cancelled.`;
  if (ask) closeChain(engine, stepOf(request.tree), ask.runId, { code: "cancelled", message });
}
