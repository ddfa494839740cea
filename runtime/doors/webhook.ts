import type { Json } from "../../machines/vocabulary.ts";
import type { VisitOutcome } from "../asks/visit-shapes.ts";
import { HerdError, internalFailure, invalidRequest, withoutUndefined } from "../errors.ts";
import { MAX_BODY_BYTES, readBody } from "./body.ts";
import { verify } from "./signature.ts";

/** What a delivery came to, as it is remembered. */
export interface Fired {
  action: VisitOutcome["action"];
  cancelled: string[];
  requestId: string | undefined;
}

/** What a delivery needs of its door. */
export interface DeliveryDesk {
  secret(): Promise<string>;
  /** UTC milliseconds. */
  now(): number;
  /** What the same delivery came to before. */
  before(id: string): Promise<Fired | undefined>;
  /** Visits; `again` when the same delivery was faster. */
  fire(id: string, input: Json): Promise<{ outcome: VisitOutcome } | { again: Fired }>;
  /** A delivery that was signed was refused. */
  failed(error: HerdError): Promise<void>;
}

/**
 * Answers one delivery of a webhook: 202 with what was done, 200 for a repetition, else why it was refused.
 * Never throws: whoever delivers has the status to go by, and tries again after 409 and 5xx.
 */
export async function answerDelivery(request: Request, desk: DeliveryDesk): Promise<Response> {
  let signed = false;
  try {
    if (request.method !== "POST") return refusal(405, notPosted(request.method), { allow: "POST" });
    const body = await readBody(request, MAX_BODY_BYTES);
    const { id } = verify(request.headers, body, await desk.secret(), desk.now());
    signed = true;
    const known = await desk.before(id);
    if (known) return repeated(known);
    const fired = await desk.fire(id, inputOf(body));
    if ("again" in fired) return repeated(fired.again);
    const { action, cancelled, requestId, kind, result } = fired.outcome;
    const done = { ok: true, action, cancelled, request_id: requestId, ...(kind === "result" && { result }) };
    return Response.json(withoutUndefined(done), { status: 202 });
  } catch (thrown) {
    const error = thrown instanceof HerdError ? thrown : internalFailure("door", thrown);
    if (signed) await desk.failed(error).catch(() => undefined);
    return refusal(statusOf(error), error);
  }
}

/** The answer to a delivery while nothing is taken. */
export function refuseDelivery(error: HerdError): Response {
  return refusal(statusOf(error), error);
}

function repeated({ action, cancelled, requestId }: Fired): Response {
  const done = { ok: true, repeated: true, action, cancelled, request_id: requestId };
  return Response.json(withoutUndefined(done), { status: 200 });
}

function refusal(status: number, error: HerdError, headers: Record<string, string> = {}): Response {
  return Response.json({ ok: false, error: error.toJSON() }, { status, headers });
}

function inputOf(body: Uint8Array): Json {
  if (body.byteLength === 0) return null;
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as Json;
  } catch (cause) {
    throw invalidRequest("door", "invalid_field", "body: must be JSON in UTF-8", "send JSON", { field: "body", cause });
  }
}

const STATUSES: Record<string, number> = {
  bad_signature: 401,
  too_large: 413,
  entry_gone: 409,
  already_answered: 409,
  limit: 503,
  overloaded: 503,
  fenced: 503,
  herd_closed: 503,
  passive: 503,
  run_failed: 502,
};

/** Source: rules of the engine, "Errors". */
function statusOf({ reason, category }: HerdError): number {
  const byCategory = { invalid_request: 400, target_not_found: 404, worker_busy: 409 } as Record<string, number>;
  return STATUSES[reason] ?? byCategory[category] ?? 500;
}

function notPosted(method: string): HerdError {
  return invalidRequest("door", "invalid_field", `method: must be POST, not ${method}`, "send a POST request", {
    field: "method",
  });
}
