import { z } from "zod";
import type { Json } from "../../machines/vocabulary.ts";
import { HerdError, invalidRequest } from "../errors.ts";
import type { OwnerRef } from "../kernel/records.ts";
import { ownerRef, type Subject } from "../owners.ts";
import { json, parseRequest, payload } from "../request.ts";
import { nonBlank } from "../subagent/acceptance.ts";
import type { Found } from "./found.ts";

const Start = z.strictObject({
  agent: nonBlank,
  task: nonBlank.optional(),
  input: json.optional(),
  files: z.array(nonBlank).optional(),
  cwd: nonBlank.optional(),
  label: z.string().optional(),
  timeoutMs: z.number().optional(),
  metadata: json.optional(),
});

const Fields = z.strictObject({
  subject: z.custom<Subject>((value) => typeof value === "object" && value !== null, "must be { scope, keys }"),
  cancel: z.array(nonBlank).default([]),
  resume: z.array(z.strictObject({ id: nonBlank, payload: payload.optional() })).default([]),
  take: nonBlank.optional(),
  start: Start.nullable().optional(),
  extras: z.record(z.string(), json).default({}),
  receivesOutcome: z.boolean().default(true),
  waits: z.boolean().default(true),
  id: nonBlank.max(512, "must be at most 512 characters").optional(),
  signal: z.custom<AbortSignal>((value) => value instanceof AbortSignal, "must be an AbortSignal").optional(),
});

/** What is to be started, as it was given. */
export type StartFields = z.infer<typeof Start>;

/** A visit as it was asked for, each part in its place. */
export interface VisitFields {
  owner: OwnerRef;
  /** Each once. */
  cancel: string[];
  resume: { id: string; payload: unknown }[];
  take: string[];
  start: StartFields | undefined;
  extras: Record<string, Json>;
  receives: boolean;
  waits: boolean;
  id: string | undefined;
  signal: AbortSignal | undefined;
}

const OPERATION = "visit";

/**
 * Reads a visit's request and refuses what no state of the subject could make right, in the order of the specification.
 * @throws HerdError `invalid_field`, `bad_owner`, or `visit_request` with its rule.
 */
export function visitFields(request: unknown): VisitFields {
  const {
    subject,
    start,
    receivesOutcome,
    resume: items,
    take: named,
    ...rest
  } = parseRequest(OPERATION, Fields, request);
  const owner = ownerRef(subject);
  const resume: VisitFields["resume"] = [];
  const take = named === undefined ? [] : [named];
  for (const [index, item] of items.entries()) {
    if (!("payload" in item)) take.push(item.id);
    else if (item.payload !== undefined) resume.push({ id: item.id, payload: item.payload });
    else throw undefinedPayload(index, item.id);
  }
  const fields = {
    ...rest,
    owner,
    cancel: [...new Set(rest.cancel)],
    resume,
    take,
    start: start ?? undefined,
    extras: rest.extras as Record<string, Json>,
    receives: receivesOutcome,
    waits: rest.waits,
    id: rest.id,
    signal: rest.signal,
  };
  checkShape(fields);
  return fields;
}

function checkShape({ cancel, resume, take, extras }: VisitFields): void {
  const acted = [...resume.map(({ id }) => id), ...take];
  if (acted.length > 0 && Object.keys(extras).length > 0) {
    throw refused("resume_extras", "extras", "Extras ride only a start, never a resume or a take", "leave extras out");
  }
  const both = acted.find((id) => cancel.includes(id));
  if (both !== undefined) throw overlap(both);
  if (resume.length > 0 && take.length > 0) {
    throw refused("multi_run", "resume", "A visit either resumes or takes, not both", "make two visits of it");
  }
  if (take.length > 1) throw refused("multi_run", "take", "A visit takes one outcome at most", "make two visits of it");
  const twice = acted.find((id, at) => acted.indexOf(id) !== at);
  if (twice === undefined) return;
  throw refused(
    "duplicate_id",
    "resume",
    `The entry ${JSON.stringify(twice)} is resumed twice`,
    "name each entry once",
    twice,
  );
}

/** A refusal of the visit as a whole: nothing of it was done. */
export function refused(rule: string, field: string, message: string, nextAction: string, id?: string): HerdError {
  return invalidRequest(OPERATION, "visit_request", message, nextAction, { rule, field, ...(id && { ids: { id } }) });
}

/** The entry, or one of its run, is both cancelled and resumed. */
export function overlap(id: string): HerdError {
  return refused(
    "cancel_resume_overlap",
    "resume",
    `The entry ${JSON.stringify(id)} is both cancelled and resumed`,
    "do one of them",
    id,
  );
}

/** It is not on the subject, not any more, or not what it was. */
export function entryGone(id: string, why = "Nothing parked on this subject has this id (any more)"): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: "entry_gone",
    message: `${why}: ${JSON.stringify(id)}`,
    nextAction: "list what is parked and act on what is there now",
    operation: OPERATION,
    ids: { id },
  });
}

/** What the entries say against the visit, in the order of the specification; answers are looked at apart. */
export const againstEntries = {
  /** Before the answers are looked at. */
  resumes(found: readonly Found[]): void {
    for (const { entry } of found) {
      if (entry.to !== "user") continue;
      throw refused(
        "user_ask_in_resume",
        "resume",
        `The entry ${JSON.stringify(entry.id)} is meant for a person`,
        "answer it with herd.inbox.answer",
        entry.id,
      );
    }
    for (const { entry, delivery } of found) {
      if (delivery) throw finishedPayload("resume", entry.id, `is ${entry.status}: it takes no answer`, "take it");
    }
    for (const { entry } of found) {
      if (entry.status === "running") throw entryGone(entry.id, "The entry is no longer asking");
    }
  },

  /** After the answers: all of one step of one run. */
  oneStep(found: readonly Found[]): void {
    const steps = new Set(found.map(({ entry }) => JSON.stringify([entry.requestId, entry.groupId, entry.askedBy])));
    if (steps.size <= 1) return;
    throw refused(
      "multi_run",
      "resume",
      "The entries to resume belong to several groups or runs",
      "resume each group in a visit of its own",
    );
  },

  takes(found: readonly Found[]): void {
    for (const { entry, delivery } of found) {
      if (delivery) continue;
      throw finishedPayload("take", entry.id, `is ${entry.status} and has no outcome to take`, "answer it, or wait");
    }
  },
};

function finishedPayload(field: string, id: string, what: string, nextAction: string): HerdError {
  return refused("finished_payload", field, `The entry ${JSON.stringify(id)} ${what}`, nextAction, id);
}

function undefinedPayload(index: number, id: string): HerdError {
  return invalidRequest(
    OPERATION,
    "invalid_field",
    `resume.${index}.payload: is undefined, which is no answer`,
    "give the answer as JSON, or leave payload out to take an outcome",
    { field: `resume.${index}.payload`, rule: "payload must be JSON", ids: { id } },
  );
}
