import type { Json, Usage } from "../../machines/vocabulary.ts";
import { paneIdOf } from "../backend.ts";
import type { OutcomeRecord, OwnerRef, RequestRecord } from "../kernel/records.ts";
import { delegationStatus, resultEnvelope, type Delegation, type Envelope } from "./envelope.ts";
import type { ResultFiles, SavedText } from "./result-files.ts";

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
  /**
   * The file with the whole text of a completed result, unless there is no disk or it could not be saved. It is written
   * before this, `details` or `envelope` is read for the first time.
   */
  readonly resultPath?: string | undefined;
  elapsedMs: number;
  usage?: Usage;
  error?: { code: string; message: string };
  /** The details of the completion. */
  readonly details: Record<string, Json>;
  /** What a model reads: a compact header, then the text within 2,000 lines and 50 KB, without control characters. */
  readonly envelope: string;
}

/** What a result is made of besides the records of its assignment. */
export interface ResultParts {
  attempt: number;
  delegation: Delegation;
  /** Where the whole texts of completed results are. */
  files: ResultFiles;
  /** The worker's session file, where there is a disk. */
  sessionFile: string | undefined;
}

/** The result as its owner gets it, from what was accepted, how it ended, and what else is under way. */
export function resultOf(request: RequestRecord, ended: OutcomeRecord, parts: ResultParts): Result {
  const { outcome, endedAt, deliveryId = "" } = ended;
  const { requestId, label, agent, owner, metadata } = request;
  // Making a file holds everybody up for as long as half of an assignment's work, and a program that reads the text
  // needs none: it is made for the first one who reads something that names it.
  let made: Shown | undefined;
  const shown = () => (made ??= shownOf(request, ended, parts));
  const result: Result = {
    requestId,
    label,
    agent,
    owner,
    ...(metadata !== undefined && { metadata }),
    deliveryId,
    attempt: parts.attempt,
    status: outcome.status,
    text: outcome.status === "completed" ? outcome.text : "",
    ...(outcome.status === "completed" && outcome.data !== undefined && { data: outcome.data }),
    elapsedMs: Math.max(0, endedAt - request.acceptedAt),
    ...("usage" in outcome && outcome.usage && { usage: outcome.usage }),
    ...(outcome.status !== "completed" && { error: outcome.error }),
    get details() {
      return shown().details;
    },
    get envelope() {
      return shown().envelope.text;
    },
  };
  if (outcome.status === "completed" && parts.files.available) {
    Object.defineProperty(result, "resultPath", { enumerable: true, get: () => shown().saved.path });
  }
  return result;
}

interface Shown {
  saved: SavedText;
  details: Record<string, Json>;
  envelope: Envelope;
}

function shownOf(
  request: RequestRecord,
  { outcome, endedAt, details: more }: OutcomeRecord,
  { delegation, files, sessionFile }: ResultParts,
): Shown {
  const saved = outcome.status === "completed" ? files.save(request.requestId, outcome.text) : {};
  const envelope = resultEnvelope(request, outcome, { saved, delegation });
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
    ...(sessionFile !== undefined && { piSessionFile: sessionFile }),
    status: outcome.status,
    truncated: envelope.truncated,
    ...(saved.path !== undefined && { resultPath: saved.path }),
    ...(saved.path !== undefined && envelope.truncated && { fullOutputPath: saved.path }),
    ...(saved.error !== undefined && { resultPersistenceError: saved.error }),
    ...("contextUsage" in outcome && outcome.contextUsage && { contextUsage: outcome.contextUsage }),
    ...("unreadSteers" in outcome && outcome.unreadSteers !== undefined && { unreadSteers: outcome.unreadSteers }),
    delegationStatus: delegationStatus(delegation),
    activeDirect: delegation.active,
    pendingDirectResults: delegation.pending,
    unresolvedDirect: delegation.active + delegation.pending,
    ...(outcome.status === "completed"
      ? { elapsedMs: Math.max(0, endedAt - request.acceptedAt) }
      : { error: outcome.error }),
    ...more,
  };
  return { saved, details, envelope };
}
