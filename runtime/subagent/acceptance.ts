import { z } from "zod";
import type { Engine } from "../engine.ts";
import { HerdError, invalidRequest } from "../errors.ts";
import type { MessageBytes } from "../evidence/limits.ts";
import type { CallerIdRecord, OwnerRef, RequestRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { ownerKeyOf } from "../owners.ts";
import { json } from "../request.ts";
import { hashed, keys } from "../store/keys.ts";

/** What accepting a task has in common, whoever does it and whichever worker gets it. */
export const nonBlank = z.string().regex(/\S/, "must contain non-whitespace text");

const METADATA_LIMIT = 16 * 1024;

/** The fields of every form of assign. */
export const Common = {
  task: nonBlank,
  id: nonBlank.max(512, "must be at most 512 characters").optional(),
  metadata: json.optional(),
  deadlineMs: z.number().positive("must be a positive number of milliseconds").optional(),
  signal: z.custom<AbortSignal>((value) => value instanceof AbortSignal, "must be an AbortSignal").optional(),
  files: z.array(nonBlank).optional(),
};

/** Who assigns: an owner at its tree's root, or a parent worker at its own path. */
export interface Controller {
  treeId: string;
  owner: OwnerRef;
  workspace: string;
  cwd: string;
  path: string;
  /** Of an owner that names its own. */
  limits?: Partial<MessageBytes>;
  /** For a parent worker: the agents it may start, and the journal entry that belongs into the same batch. */
  parent?: {
    runId: string;
    sessionId: string;
    allowed: readonly string[];
    /** Of a function: the id that this call always has, and the journal entry that belongs into the batch. */
    call?: { requestId: string; journal(step: Step, request: RequestRecord): void };
  };
}

/** How large its messages may be: an owner's own limits, for a parent worker those of its tree's owner. */
export function limitsOf({ limits }: Engine, { treeId, owner, parent }: Controller): MessageBytes {
  return parent === undefined ? limits.of(ownerKeyOf(owner)) : limits.in(treeId);
}

/** @throws HerdError `invalid_request` for metadata beyond 16 KB of JSON. */
export function checkMetadata(metadata: unknown): void {
  if (metadata === undefined || Buffer.byteLength(JSON.stringify(metadata)) <= METADATA_LIMIT) return;
  throw invalidRequest(
    "assign",
    "invalid_field",
    `metadata: must be at most ${METADATA_LIMIT} bytes of JSON`,
    "shorten metadata",
    { field: "metadata" },
  );
}

/** Where a caller's own id is remembered, and what tells a repetition from another request. */
export function callerIdOf(by: Controller, id: string | undefined, request: readonly unknown[]) {
  if (id === undefined) return { idKey: undefined, hash: "" };
  return { idKey: keys.callerId(by.parent?.runId ?? by.treeId, id), hash: hashed(JSON.stringify(request)) };
}

/**
 * The assignment that an id stands for already; with `launching` it is on its way under that run.
 * @throws HerdError `id_reused` when the id stands for another request; what its launch failed with.
 */
export function repeated(
  engine: Engine,
  used: CallerIdRecord,
  hash: string,
  id: string,
): RequestRecord | { launching: string } {
  if (used.hash === hash) {
    const { failure, launching } = used;
    const waits = launching !== undefined && (failure === undefined || engine.backends.launches.rollsBack(launching));
    if (waits) return { launching };
    if (failure) throw HerdError.from(failure);
    const request = engine.request(used.requestId);
    if (request) return request;
  }
  throw invalidRequest(
    "assign",
    "id_reused",
    `The id ${JSON.stringify(id)} was used for another assignment (another agent, task or files)`,
    "use a new id for a new assignment",
    { field: "id", ids: { requestId: used.requestId } },
  );
}
