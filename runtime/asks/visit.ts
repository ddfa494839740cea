import type { Json } from "../../machines/vocabulary.ts";
import { acknowledgeIn } from "../deliveries/record.ts";
import type { Engine } from "../engine.ts";
import { HerdError, invalidRequest } from "../errors.ts";
import type { CallerIdRecord, DeliveryRecord, OutcomeRecord, OwnerRef, RequestRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { addressOf, ownerKeyOf } from "../owners.ts";
import { passFailpoint } from "../store/failpoint.ts";
import { hashed, keys } from "../store/keys.ts";
import { launchUnderWay, type Begun } from "../subagent/launch.ts";
import { checkAnswer } from "./formats.ts";
import type { Found, Next, Watch } from "./found.ts";
import { findEntries } from "./parked.ts";
import { planStart } from "./start.ts";
import { suspendedOn } from "./suspended.ts";
import type { VisitOutcome } from "./visit-shapes.ts";
import { againstEntries, entryGone, visitFields, type VisitFields } from "./visit-request.ts";
import { makeVisit, type Done, type Made, type Prepared } from "./visit-step.ts";

const OPERATION = "visit";

/** How a visit is made besides what its request says. */
export interface VisitOptions {
  /** The worker that visits. */
  visitor?: string;
  /** Where a started run works and its files are looked up; the herd's working directory unless set. */
  cwd?: string;
  /** Waits for nothing once the visit is on disk: a fire of a webhook, a schedule or a submission. */
  detached?: boolean;
  /**
   * Rows that go into the same batch: what the door that visits remembers of it.
   * @returns the one that goes again when what is started does not come to be.
   */
  alongside?(step: Step, done: Done): string | undefined;
}

/** What a visit's id stands for. */
interface VisitRecord extends CallerIdRecord {
  done: Done;
}

/**
 * Visits a subject: cancels first, then at most one of resume, take and start, all in one batch or nothing of it.
 *
 * What can happen twice: nothing; of two visits that resume or take the same entry one wins. With `id` the same visit made
 * again finds what it did and waits for the same outcome.
 * @returns what the run came to: its result, or what it asks; see `VisitOutcome`.
 * @throws HerdError `visit_request` with its `rule`, `entry_gone`, `answer_mismatch`, `undeclared_extras`, what an assign is
 * refused for, before anything changed; `run_failed` when the run ended with a failure, which is consumed by then.
 */
export async function visit(engine: Engine, request: unknown, options: VisitOptions = {}): Promise<VisitOutcome> {
  // A worker that visits is no reason for the process to stay: it goes on when the herd is opened again.
  const letGo = options.visitor === undefined ? engine.hold() : () => undefined;
  try {
    return await make(engine, request, options);
  } finally {
    letGo();
  }
}

async function make(engine: Engine, request: unknown, options: VisitOptions): Promise<VisitOutcome> {
  const { done, watch, fields } = await begin(engine, request, options);
  if (watch === undefined) return outcomeOf(done, "none");
  if ("taken" in watch) {
    const { visitor } = options;
    if (visitor !== undefined) await engine.runs.noted(visitor, fields.take);
    return taken(done, watch.taken, engine.request(watch.taken.requestId));
  }
  try {
    const next = await engine.whileOpen(orAborted(watch.next, fields.signal));
    await engine.kernel.ready();
    const outcome = await comeTo(engine, done, next, fields.receives);
    const { visitor } = options;
    if (visitor !== undefined && done.action === "resumed") await engine.runs.noted(visitor, idsOf(fields));
    return outcome;
  } finally {
    watch.end();
  }
}

/** A visit that is on disk: what it did, and what it waits for. */
interface Begin {
  done: Done;
  fields: VisitFields;
  watch: Watch | { taken: OutcomeRecord } | undefined;
}

async function begin(engine: Engine, request: unknown, options: VisitOptions): Promise<Begin> {
  const fields = visitFields(request);
  fields.signal?.throwIfAborted();
  const owner = ownerKeyOf(fields.owner);
  const idKey = fields.id === undefined ? undefined : keys.callerId(owner, `visit:${fields.id}`);
  const hash = idKey === undefined ? "" : hashOf(fields);
  await engine.kernel.ready();
  const before = idKey && (await knownVisit(engine, idKey, hash, fields));
  const found = before && (await again(engine, fields, before, options));
  if (found) return found;
  let prepared: Prepared;
  try {
    prepared = await prepare(engine, fields, options.cwd);
  } catch (error) {
    // The same visit was made meanwhile, and what this one misses is what that one did.
    const since = before === undefined && idKey !== undefined && (await knownVisit(engine, idKey, hash, fields));
    if (since) return begin(engine, request, options);
    throw error;
  }
  fields.signal?.throwIfAborted();
  passFailpoint("door.before-visit");
  const trees = treesOf(prepared);
  if (trees.length === 0 && options.alongside === undefined) {
    return { done: { action: "none", cancelled: [] }, fields, watch: undefined };
  }
  // What a door remembers goes along, though nothing else is done.
  if (trees.length === 0) trees.push({ id: owner, owner: fields.owner });
  let watch: Begin["watch"];
  let launched: Begun | undefined;
  let known: VisitRecord | undefined;
  const done = await engine.kernel.runAcross(
    trees,
    (steps) => {
      // Two of the same id at once: the second finds the first.
      known = idKey === undefined ? undefined : (steps[0] as Step).read<VisitRecord>(idKey);
      if (known) return known.done;
      const made = makeVisit(engine, prepared, steps, options.visitor);
      launched = made.launched;
      watch = watchOf(engine, made, fields, options);
      const first = steps[0] as Step;
      const row = options.alongside?.(first, made.done);
      if (idKey !== undefined) {
        const record: VisitRecord = { hash, requestId: made.done.requestId ?? "", done: made.done };
        first.put(idKey, record);
        first.put(keys.due(first.now + engine.options.retention.resultsMs, "forget", hashed(idKey)), { key: idKey });
      }
      if (made.done.launch) {
        const rows = [row, idKey].filter((key) => key !== undefined);
        engine.backends.launches.takesBack(stepFor(steps, made.done.launch), made.done.launch.runId, rows);
      }
      const waits = watch;
      if (waits && "end" in waits) first.ifUndone(() => waits.end());
      return made.done;
    },
    { operation: OPERATION, refusable: options.visitor === undefined },
  );
  // It may have been undone since, or its start rolled back: then this one is the first.
  if (known) return begin(engine, request, options);
  // A worker in a process has to accept first; what it is refused for is the visit's refusal.
  if (launched && "answer" in launched) {
    try {
      // Whoever gives up only stops waiting: the run is started all the same.
      await orAborted(launched.answer(undefined), fields.signal);
    } catch (error) {
      if (watch && "end" in watch) watch.end();
      throw error;
    }
  }
  return { done, fields, watch };
}

/** Everything that can be wrong is found before anything is done; the step looks again. */
async function prepare(engine: Engine, fields: VisitFields, cwd = engine.cwd): Promise<Prepared> {
  const { owner, cancel, resume, take, start, extras } = fields;
  const ids = [...cancel, ...resume.map(({ id }) => id), ...take];
  const entries = await findEntries(engine, owner, ids);
  const found = (id: string): Found => {
    const entry = entries.get(id);
    if (entry) return entry;
    throw entryGone(id);
  };
  const cancelled = cancel.map(found);
  const resumed = resume.map(({ id }) => found(id));
  const takes = take.map(found);
  againstEntries.resumes(resumed);
  const answers: Json[] = [];
  for (const [index, { ask, entry }] of resumed.entries()) {
    const payload = resume[index]?.payload;
    const question = ask?.parked ?? { answerFormat: "text" as const };
    const answer = await checkAnswer(question, payload, { operation: OPERATION });
    // The answer to a question of `ask_owner` is what a reply may be.
    if (ask?.parked === undefined && (answer as string).trim() === "") throw blankAnswer(entry.id);
    answers.push(answer);
  }
  againstEntries.oneStep(resumed);
  againstEntries.takes(takes);
  const planned = start && (await planStart(engine, { owner, cwd }, start, extras));
  return {
    fields,
    cancel: cancelled,
    resume: resumed.map((entry, index) => ({ found: entry, answer: answers[index] as Json })),
    take: takes[0],
    // A visit that resumes or takes never starts.
    start: resumed.length + takes.length > 0 ? undefined : planned,
  };
}

function treesOf({ cancel, resume, take, start }: Prepared): { id: string; owner?: OwnerRef }[] {
  const named = [...cancel, ...resume.map(({ found }) => found), ...(take ? [take] : [])];
  const ids = new Set(named.map(({ request, delivery }) => delivery?.tree ?? request.tree));
  return [...[...ids].map((id) => ({ id })), ...(start ? [{ id: start.by.treeId, owner: start.by.owner }] : [])];
}

function stepFor(steps: readonly Step[], { tree }: NonNullable<Done["launch"]>): Step {
  return steps.find((step) => step.tree.id === tree) as Step;
}

/** What is waited for: the outcome that was taken, or what the run comes to. */
function watchOf(
  engine: Engine,
  { taken, top }: Made,
  { receives, waits }: VisitFields,
  { detached, visitor }: VisitOptions,
): Begin["watch"] {
  if (taken) return { taken };
  return top === undefined || detached || !waits ? undefined : watchFor(engine, top, receives, visitor);
}

/** Waits for a run; its end is kept for this visit if that receives it. */
function watchFor(engine: Engine, top: RequestRecord, receives: boolean, visitor: string | undefined): Watch {
  const watch = engine.visits.watch(top, visitor);
  const release = receives ? engine.deliveries.reserve(top.requestId) : () => undefined;
  return {
    next: watch.next,
    end: () => {
      watch.end();
      release();
    },
  };
}

/** What the run came to, as the visit tells it. A failure is raised, and gone by then. */
async function comeTo(engine: Engine, done: Done, next: Next, receives: boolean): Promise<VisitOutcome> {
  if (!receives) return outcomeOf(done, "none");
  if (next.type === "ended") {
    const { requestId, deliveryId = "" } = next.ended;
    const request = engine.request(requestId);
    const delivery = request && engine.kernel.read<DeliveryRecord>(keys.delivery(addressOf(request), deliveryId));
    // On disk before it is told: whatever dies, the subject does not give it to another visit.
    if (delivery) await engine.whileOpen(consume(engine, delivery));
    return taken(done, next.ended, request);
  }
  const asks = next.asks.filter(({ entry }) => entry.to !== "user");
  return {
    ...outcomeOf(done, asks.length > 0 ? "asks" : "parked"),
    ...(asks.length > 0 && { asks: asks.map(({ entry }) => entry) }),
    suspended: suspendedOn(next.asks),
  };
}

function consume(engine: Engine, delivery: DeliveryRecord): Promise<void> {
  return engine.kernel.run(delivery.tree, (step) => acknowledgeIn(engine, step, delivery), { operation: OPERATION });
}

function taken(done: Done, { outcome, requestId }: OutcomeRecord, request?: RequestRecord): VisitOutcome {
  if (outcome.status !== "completed") throw runFailed(requestId, outcome.error, request?.label);
  return { ...outcomeOf(done, "result"), result: outcome.data ?? outcome.text };
}

function outcomeOf({ action, cancelled, requestId }: Done, kind: VisitOutcome["kind"]): VisitOutcome {
  return { action, kind, cancelled, ...(requestId !== undefined && { requestId }) };
}

function blankAnswer(id: string): HerdError {
  return invalidRequest(OPERATION, "answer_mismatch", "The answer must be non-blank text", "give the answer as text", {
    ids: { id },
  });
}

/** The visit under an id that was made before. @throws HerdError `id_reused` for another one. */
async function knownVisit(
  engine: Engine,
  idKey: string,
  hash: string,
  { id = "" }: VisitFields,
): Promise<VisitRecord | undefined> {
  if (engine.kernel.read(idKey) === undefined) return undefined;
  // What is on its way to the disk may come to nothing.
  await engine.kernel.settled();
  const known = engine.kernel.committed<VisitRecord>(idKey);
  if (known === undefined) return undefined;
  if (known.hash === hash) return known;
  throw new HerdError({
    category: "invalid_request",
    reason: "id_reused",
    message: `The id ${JSON.stringify(id)} was used for another visit`,
    nextAction: "use a new id for a new visit",
    operation: OPERATION,
    field: "id",
    ids: { id },
  });
}

/**
 * Made before: waits for what the run came to, or tells it if that is known.
 * @returns undefined when nothing came of it: the process that it started did not accept.
 */
async function again(
  engine: Engine,
  fields: VisitFields,
  { done }: VisitRecord,
  { detached, visitor }: VisitOptions,
): Promise<Begin | undefined> {
  const { action, requestId = "", top = "", launch } = done;
  if (launch && engine.request(top) === undefined) {
    const look = (step: Step) => launchUnderWay(engine, step, launch.runId);
    const begun = await engine.kernel.run(launch.tree, look, { operation: OPERATION });
    if (begun && "answer" in begun) await orAborted(begun.answer(undefined), fields.signal);
    else if (engine.request(top) === undefined) return undefined;
  }
  if (action === "taken") {
    const outcome = engine.kernel.read<OutcomeRecord>(keys.outcome(requestId));
    return { done, fields, watch: outcome && { taken: outcome } };
  }
  const request = top === "" || detached || !fields.waits ? undefined : engine.request(top);
  if (request === undefined) return { done, fields, watch: undefined };
  const watch = watchFor(engine, request, fields.receives, visitor);
  engine.visits.look(request.tree);
  engine.kernel.inBackground(engine.kernel.tree(request.tree).then(() => engine.visits.look(request.tree)));
  return { done, fields, watch };
}

function idsOf({ resume }: VisitFields): string[] {
  return resume.map(({ id }) => id);
}

/** What tells the same visit from another one. */
function hashOf({ cancel, resume, take, start, extras }: VisitFields): string {
  return hashed(JSON.stringify([cancel, resume, take, start ?? null, extras]));
}

/** Waits, until a signal says not to. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const tell = () => reject(signal.reason);
  signal.addEventListener("abort", tell);
  // Aborted while the visit was on its way to the disk, it fires no more.
  if (signal.aborted) tell();
  return Promise.race([work, aborted]).finally(() => signal.removeEventListener("abort", tell));
}

/** The run's own failure, told to whoever receives it. */
function runFailed(requestId: string, error: { code: string; message: string }, label = requestId): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "run_failed",
    message: `The run "${label}" failed: ${error.code}: ${error.message}`,
    nextAction: "look at its error; start it again if it is still wanted",
    operation: OPERATION,
    ids: { requestId },
    details: { error },
  });
}
