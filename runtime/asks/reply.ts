import { z } from "zod";
import { rules, whyNot } from "../../machines/eligibility.ts";
import { shownState } from "../../machines/projection.ts";
import { LABEL_PATTERN, type Evidence, type Json } from "../../machines/vocabulary.ts";
import type { Engine } from "../engine.ts";
import { HerdError, invalidRequest, withoutUndefined } from "../errors.ts";
import { noEvidence, readEvidence } from "../evidence/evidence.ts";
import type { AskRecord, CallerIdRecord, OwnerRef } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { ownerKeyOf, sees } from "../owners.ts";
import { json, parseRequest } from "../request.ts";
import { hashed, keys } from "../store/keys.ts";
import { nonBlank } from "../subagent/acceptance.ts";
import { findWorker } from "../subagent/target.ts";
import { placeOf, type Place } from "../subagent/visited.ts";
import { checkAnswer } from "./formats.ts";
import type { ReplyReceipt } from "./question.ts";

const ReplyFields = z.strictObject({
  askId: nonBlank.optional(),
  label: z.string().regex(LABEL_PATTERN, `must match ${LABEL_PATTERN.source}`).optional(),
  message: json,
  files: z.array(nonBlank).optional(),
  id: nonBlank.max(512, "must be at most 512 characters").optional(),
});

/**
 * What an owner may say of its reply, and nothing else.
 * @throws HerdError `invalid_request` naming the field; exactly one of `askId` and `label` is needed.
 */
export function replyFields(request: unknown): Pick<ReplyCommand, "askId" | "label" | "message" | "files" | "id"> {
  const fields = parseRequest("reply", ReplyFields, request);
  if ((fields.askId === undefined) === (fields.label === undefined)) {
    throw invalidRequest("reply", "invalid_field", "exactly one of askId and label is needed", "name the question", {
      field: "askId, label",
    });
  }
  return withoutUndefined(fields) as Pick<ReplyCommand, "askId" | "label" | "message" | "files" | "id">;
}

export interface ReplyCommand {
  /** The key of who replies: an owner, or a parent worker's run. */
  owner: string;
  /** The exact question; without it, whatever the labelled worker asks now. */
  askId?: string;
  label?: string;
  message: Json;
  files?: readonly string[];
  /** The caller's id of this reply: the same id again is the same reply. */
  id?: string;
  cwd: string;
  operation: string;
  /** The owner that replies, if one does: it sees what waits on every subject that shares a key with it. */
  subject?: OwnerRef;
  /** A person answers, over the inbox. */
  asPerson?: boolean;
  /** Where to look for a label; taken from the question when it is named. */
  treeId?: string;
  path?: string;
  workspace?: string;
}

/**
 * Answers one open question, once.
 *
 * What can happen twice: nothing. The same `id` succeeds quietly; every other second reply is `already_answered`.
 * @throws HerdError `target_not_found`, `not_asking`, `already_answered`, `closed`, `id_reused` or `invalid_request`.
 */
export async function reply(engine: Engine, given: ReplyCommand): Promise<ReplyReceipt> {
  const { files = [], id, cwd, operation } = given;
  // Otherwise nothing is awaited: commands run in the order of their calls.
  if (engine.kernel.recovers) await engine.kernel.ready();
  const place = given.askId === undefined ? labelledPlace(engine, given) : {};
  const command: ReplyCommand = { ...given, ...(place instanceof Promise ? await place : place) };
  const named = command.askId === undefined ? undefined : askOf(engine, command.askId, given);
  // What waits for another subject that shares a key is answered as that one would.
  const owner = named?.owner ?? given.owner;
  const request = named && engine.request(named.requestId);
  const treeId = request?.tree ?? command.treeId;
  // What is no text can only be the answer to a parked ask, which then is another owner's, or none at all.
  if (command.askId !== undefined && named === undefined && typeof command.message !== "string")
    throw notFound(operation, command.askId);
  // An answer of the wrong kind is told as such before anything else is looked at.
  const checked = checkedAnswer(command, named);
  const message = checked instanceof Promise ? await checked : checked;
  if (treeId === undefined) throw notFound(operation, command.askId ?? command.label ?? "");
  const asParent = request ? request.parentRunId === owner : (command.path ?? "") !== "";
  const limits = asParent ? engine.limits.in(treeId) : engine.limits.of(given.owner);
  const reading = { cwd, text: typeof message === "string" ? message : "", operation, limits };
  const hash = hashed(JSON.stringify([message, files]));
  const idKey = id === undefined ? undefined : keys.callerId(owner, `reply:${id}`);
  /** The reply that was accepted under this id. A label means what it meant then, not what the worker asks by now. */
  const before = (step: Step): ReplyReceipt | undefined => {
    const used = idKey === undefined ? undefined : step.read<CallerIdRecord>(idKey);
    if (used === undefined) return undefined;
    if (used.hash !== hash || !isTarget(engine, used, command)) throw idReused(operation, id as string, used);
    const ask = step.read<AskRecord>(keys.ask(used.askId ?? ""));
    if (ask === undefined || ask.owner !== owner) throw notFound(operation, used.askId ?? "");
    return receiptOf(engine, ask);
  };
  if (idKey !== undefined && files.length > 0) {
    // Its files may be gone by now.
    const receipt = await engine.kernel.run(treeId, before, { operation });
    if (receipt) return receipt;
  }
  const evidence = files.length === 0 ? noEvidence(reading) : await readEvidence(files, reading);
  return engine.kernel.run(
    treeId,
    (step) => {
      const accepted = before(step);
      if (accepted) return accepted;
      const askId = command.askId ?? openAskOf(engine, step, command);
      const ask = step.read<AskRecord>(keys.ask(askId));
      if (ask === undefined || ask.owner !== owner) throw notFound(operation, askId);
      // By its label a parked ask is answered as text, or not at all.
      if (command.askId === undefined && ask.parked && ask.parked.answerFormat !== "text")
        throw needsAskId(command, ask);
      return answerIn(engine, step, ask, {
        message,
        files: evidence,
        operation,
        ...(id !== undefined && { id }),
        ...(idKey !== undefined && { idRow: { key: idKey, hash } }),
      });
    },
    { operation, refusable: !asParent },
  );
}

/** An answer of the right form, on its way into a step. */
export interface CheckedAnswer {
  message: Json;
  files: Evidence[];
  operation: string;
  /** The caller's id of it, and the row that remembers it. */
  id?: string;
  idRow?: { key: string; hash: string };
}

/**
 * Accepts an answer to a question, as part of a step: the one place where a question is claimed.
 * @throws HerdError `already_answered`, `closed`, `expired`, `not_asking`; nothing was changed.
 */
export function answerIn(engine: Engine, step: Step, ask: AskRecord, answer: CheckedAnswer): ReplyReceipt {
  const { askId, requestId, runId } = ask;
  const { message, files, operation, id, idRow } = answer;
  const receipt = receiptOf(engine, ask);
  if (ask.answer) throw alreadyAnswered(operation, ask);
  if (ask.abandoned) throw abandoned(operation, ask);
  const worker = step.worker(runId);
  const rule = worker && whyNot(rules.reply, worker);
  if (worker === undefined || rule) {
    throw new HerdError({
      category: "worker_busy",
      reason: rule?.reason ?? "not_asking",
      message: `The reply was not taken: ${rule?.message ?? "the worker is gone"}`,
      nextAction: rule?.nextAction ?? "list the workers and act on the state they show now",
      operation,
      ids: { askId, requestId },
    });
  }
  engine.runs.answers(step, runId);
  step.send(runId, {
    type: "reply",
    askId,
    message,
    files,
    at: step.now,
    ...(id !== undefined && { replyId: id }),
    ...(idRow && { callerKey: idRow.key }),
  });
  if (idRow) step.put(idRow.key, { hash: idRow.hash, requestId, askId } satisfies CallerIdRecord);
  return receipt;
}

/** The answer as the worker gets it. @throws HerdError `invalid_field`, `answer_mismatch`, `asks_a_person`. */
function checkedAnswer(
  { message, operation, asPerson }: ReplyCommand,
  ask: AskRecord | undefined,
): Json | Promise<Json> {
  if (ask && (ask.parked?.to === "user") !== (asPerson === true)) throw wrongSide(operation, ask);
  if (ask?.parked) {
    return checkAnswer(ask.parked, message, { operation });
  }
  if (typeof message !== "string" || message.trim() === "") {
    throw invalidRequest(operation, "invalid_field", "message: must be non-blank text", "give the answer as text", {
      field: "message",
    });
  }
  return message;
}

/** Programs answer what their workers ask them, people what is asked of people. */
function wrongSide(operation: string, { askId, parked }: AskRecord): HerdError {
  const toUser = parked?.to === "user";
  return invalidRequest(
    operation,
    toUser ? "asks_a_person" : "asks_its_caller",
    toUser
      ? `The question ${JSON.stringify(askId)} is meant for a person`
      : `The question ${JSON.stringify(askId)} is addressed to the calling run and resolved only by it`,
    toUser ? "answer it with herd.inbox.answer" : "resume it with a visit, a door or owner.reply",
    { ids: { askId } },
  );
}

function needsAskId({ operation, label = "" }: ReplyCommand, { askId, parked }: AskRecord): HerdError {
  return invalidRequest(
    operation,
    "needs_ask_id",
    `"${label}" asks for ${parked?.answerFormat === "free" ? "JSON" : `a ${parked?.answerFormat}`}, which a reply by label cannot give`,
    "name the question by its askId, or resume it",
    { field: "label", ids: { askId, label } },
  );
}

/** What the reply to a question is known by. */
export function receiptOf(engine: Engine, { askId, requestId }: AskRecord): ReplyReceipt {
  return {
    requestId: `${askId}.reply`,
    askId,
    assignmentRequestId: requestId,
    sessionId: engine.request(requestId)?.sessionId ?? "",
  };
}

/** Where the labelled worker is: an owner's own, or a run that a visit started for it. */
function labelledPlace(
  engine: Engine,
  { treeId, path = "", workspace = "", label = "", operation }: ReplyCommand,
): Partial<Place> | Promise<Place> {
  return treeId === undefined ? {} : placeOf(engine, { treeId, path, workspace }, label, operation);
}

/** Whether a command means the question that a reply under its id answered. */
function isTarget(engine: Engine, { askId, requestId }: CallerIdRecord, command: ReplyCommand): boolean {
  if (command.askId !== undefined) return command.askId === askId;
  return command.label === engine.request(requestId)?.label;
}

function askOf(engine: Engine, askId: string, { owner, subject }: ReplyCommand): AskRecord | undefined {
  const ask = engine.kernel.read<AskRecord>(keys.ask(askId));
  if (ask === undefined || ask.owner === owner) return ask;
  const whose = ask.addressee ?? engine.request(ask.requestId)?.owner;
  const isTheirs = whose !== undefined && ownerKeyOf(whose) === ask.owner;
  return subject && isTheirs && sees(subject, whose) ? ask : undefined;
}

/** Label-only replies are for hands: they answer what the owner has seen, never a question still on its way. */
function openAskOf(
  engine: Engine,
  step: Step,
  { label = "", path = "", workspace = "", owner, operation }: ReplyCommand,
): string {
  const worker = findWorker(step.tree, { path, workspace }, label, operation);
  const askId = worker.context.ask?.askId;
  if (worker.kind === "resting" || askId === undefined)
    throw notAsking(operation, label, shownState(worker.state, worker.context));
  const ask = step.read<AskRecord>(keys.ask(askId));
  const whose = owner === step.tree.ownerKey ? step.tree.owner : undefined;
  if (ask && (!engine.deliveries.mayKnow(owner, ask.deliveryId, whose) || engine.backends.delivering(step, ask))) {
    throw new HerdError({
      category: "worker_busy",
      reason: "newer_question",
      message: `A newer question of "${label}" is on its way to you`,
      nextAction: "read that question, then reply to it",
      operation,
      ids: { label, askId },
    });
  }
  return askId;
}

function notAsking(operation: string, label: string, state: string): HerdError {
  return new HerdError({
    category: "worker_busy",
    reason: "not_asking",
    message: `The worker "${label}" is ${state} and not waiting for an owner reply`,
    nextAction: "list the workers and reply only to one that asks",
    operation,
    ids: { label },
  });
}

function notFound(operation: string, what: string): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: "target_not_found",
    message: `No question or worker of yours is known as ${JSON.stringify(what)}`,
    nextAction: "list your workers and their open questions",
    operation,
  });
}

function alreadyAnswered(operation: string, ask: AskRecord): HerdError {
  const at = new Date(ask.answer?.at ?? 0).toISOString();
  const by = ask.answer?.replyId;
  return new HerdError({
    category: "worker_busy",
    reason: "already_answered",
    message: `The question was already answered at ${at}${by === undefined ? "" : ` by reply ${JSON.stringify(by)}`}`,
    nextAction: "nothing; the worker goes on with the reply that won",
    operation,
    ids: { askId: ask.askId, requestId: ask.requestId, ...(by !== undefined && { replyId: by }) },
    details: { answeredAt: at, ...(by !== undefined && { replyId: by }) },
  });
}

function abandoned(operation: string, ask: AskRecord): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: ask.abandoned?.code === "expired" ? "expired" : "closed",
    message: `The question was given up: ${ask.abandoned?.message ?? "its worker was closed"}`,
    nextAction: "nothing; assign the task again if it is still wanted",
    operation,
    ids: { askId: ask.askId, requestId: ask.requestId },
  });
}

function idReused(operation: string, id: string, { askId = "", requestId }: CallerIdRecord): HerdError {
  return invalidRequest(
    operation,
    "id_reused",
    `The id ${JSON.stringify(id)} was used for another reply`,
    "use a new id for a new reply",
    { field: "id", ids: { id, askId, requestId } },
  );
}
