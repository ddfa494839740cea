import type { Json, Usage } from "../../machines/vocabulary.ts";
import { paneIdOf } from "../backend.ts";
import type { OutcomeRecord, OwnerRef, RequestRecord } from "../kernel/records.ts";

/** The one end of an assignment. */
export interface Result {
  requestId: string;
  label: string;
  agent: string;
  owner: OwnerRef;
  /** What the owner gave with the assignment. */
  metadata?: Json;
  deliveryId: string;
  /** How often this delivery may have been handed out, this time included. */
  attempt: number;
  /** `closed` is told to whoever waits and delivered to nobody. */
  status: "completed" | "failed" | "closed";
  /** Whole; empty for a result that is not completed. */
  text: string;
  /** What a function worker returned, when that was not a string. */
  data?: Json;
  resultPath?: string;
  elapsedMs: number;
  usage?: Usage;
  error?: { code: string; message: string };
  /** The seed's completion details. */
  details: Record<string, Json>;
  /** What a model reads: a compact header, then the text within 2,000 lines and 50 KB. */
  envelope: string;
}

/** Lines and bytes that a model sees of a result. Source: specification of the delivered envelope. */
const VISIBLE_LINES = 2_000;
const VISIBLE_BYTES = 50 * 1024;

/** What the same owner still waits for besides this result: direct workers at work, and results on their way. */
export interface Delegation {
  active: number;
  pending: number;
}

/** The result as its owner gets it, from what was accepted, how it ended, and what else is under way. */
export function resultOf(
  request: RequestRecord,
  { outcome, endedAt, deliveryId = "", details: more }: OutcomeRecord,
  attempt: number,
  { active, pending }: Delegation,
): Result {
  const elapsedMs = Math.max(0, endedAt - request.acceptedAt);
  const text = outcome.status === "completed" ? outcome.text : "";
  const visible = bounded(text);
  const details: Record<string, Json> = {
    requestId: request.requestId,
    workerLabel: request.label,
    agentDefinition: request.agent,
    runId: request.runId,
    ownerSessionId: request.owner.id,
    workspaceId: request.workspace,
    paneId: paneIdOf(request),
    cwd: request.cwd,
    piSessionId: request.sessionId,
    status: outcome.status,
    truncated: visible.truncated,
    ...("unreadSteers" in outcome && outcome.unreadSteers !== undefined && { unreadSteers: outcome.unreadSteers }),
    activeDirect: active,
    pendingDirectResults: pending,
    unresolvedDirect: active + pending,
    ...(outcome.status === "completed" ? { elapsedMs } : { error: outcome.error }),
    ...more,
  };
  return {
    requestId: request.requestId,
    label: request.label,
    agent: request.agent,
    owner: request.owner,
    ...(request.metadata !== undefined && { metadata: request.metadata }),
    deliveryId,
    attempt,
    status: outcome.status,
    text,
    ...(outcome.status === "completed" && outcome.data !== undefined && { data: outcome.data }),
    elapsedMs,
    ...("usage" in outcome && outcome.usage && { usage: outcome.usage }),
    ...(outcome.status !== "completed" && { error: outcome.error }),
    details,
    envelope: envelopeOf(request, outcome, visible, { active, pending }),
  };
}

function envelopeOf(
  request: RequestRecord,
  outcome: OutcomeRecord["outcome"],
  visible: { text: string; truncated: boolean },
  { active, pending }: Delegation,
): string {
  const unresolved =
    active + pending === 0
      ? ""
      : `\ndelegation: ${active} active direct, ${pending} pending direct results, ${active + pending} unresolved. ` +
        "Partial results may inform decisions; do not conclude while work is unresolved.";
  const header = `label: ${request.label} | agent: ${request.agent} | request: ${request.requestId} | status: ${outcome.status}${unresolved}`;
  if (outcome.status !== "completed") return `${header}\n\n${outcome.error.code}: ${outcome.error.message}`;
  const notice = visible.truncated ? "\n\n[truncated: the whole text is in the result]" : "";
  return `${header}\n\n${visible.text}${notice}`;
}

/** The head of a text within both bounds, never cut inside a code point. */
function bounded(text: string): { text: string; truncated: boolean } {
  let end = text.length;
  let newlines = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    if (++newlines === VISIBLE_LINES) {
      end = at;
      break;
    }
  }
  let head = text.slice(0, Math.min(end, VISIBLE_BYTES));
  if (Buffer.byteLength(head) > VISIBLE_BYTES) head = cutToBytes(head, VISIBLE_BYTES);
  // A slice may have cut a surrogate pair.
  if (/[\uD800-\uDBFF]$/.test(head)) head = head.slice(0, -1);
  return { text: head, truncated: head.length < text.length };
}

function cutToBytes(text: string, limit: number): string {
  const bytes = Buffer.from(text).subarray(0, limit);
  let end = bytes.length;
  while (end > 0 && ((bytes[end - 1] as number) & 0xc0) === 0x80) end--;
  const lead = bytes[end - 1] ?? 0;
  const width = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return bytes.subarray(0, end - 1 + width <= limit ? end - 1 + width : end - 1).toString();
}
