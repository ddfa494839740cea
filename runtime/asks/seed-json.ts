import { withoutUndefined } from "../errors.ts";
import type { ParkedEntry } from "./entry.ts";
import type { Suspended, VisitOutcome } from "./visit-shapes.ts";

/** The parked face as models, jq programs, HTTP and `--json` read it. Source: "Asking the caller"; what is unset is absent. */

/** A parked entry with the names of the public contract. Nulls inside payload and result stay. */
export function parkedJson(entry: ParkedEntry): Record<string, unknown> {
  const { options, schema, requestId, label, metadata } = entry;
  return withoutUndefined({
    id: entry.id,
    status: entry.status,
    to: entry.to,
    asked_by: entry.askedBy,
    question: entry.question,
    answer_format: entry.answerFormat,
    format_payload: options || schema ? withoutUndefined({ options, schema }) : undefined,
    payload: entry.payload,
    group_id: entry.groupId,
    created_at: entry.createdAt,
    expiry_at: entry.expiresAt,
    on_expiry: entry.onExpiry,
    result: entry.result,
    error: entry.error,
    request_id: requestId,
    label,
    metadata,
  });
}

/** What a visit came to. */
export function outcomeJson({ requestId, asks, suspended, ...outcome }: VisitOutcome): Record<string, unknown> {
  return withoutUndefined({
    ...outcome,
    request_id: requestId,
    asks: asks?.map(parkedJson),
    suspended: suspended && suspendedJson(suspended),
  });
}

/** What a run waits for, as a value that is told apart from a result. */
export function sentinelJson(suspended: Suspended): Record<string, unknown> {
  return { "pi-herd:suspended_interaction": suspendedJson(suspended) };
}

function suspendedJson(suspended: Suspended): Record<string, unknown> {
  const { interactionId, interactionIds, callerInteractionIds, resumeOwner, expiresAt } = suspended;
  return {
    interaction_id: interactionId,
    expiry_at: expiresAt ?? null,
    resume_owner: resumeOwner ?? null,
    interaction_ids: interactionIds,
    caller_interaction_ids: callerInteractionIds,
  };
}
