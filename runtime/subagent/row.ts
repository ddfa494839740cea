import { withoutUndefined } from "../errors.ts";
import type { WorkerRow } from "./shapes.ts";

/** A worker row in the tool's spelling. Its parent is named only where that is listed too. */
export function seedRow(row: WorkerRow, listed: ReadonlySet<string>): object {
  if (row.unreadable) return { state: row.state, managed: true, diagnostic: row.diagnostic };
  return withoutUndefined({
    label: row.label,
    kind: "pi-herd",
    state: row.state,
    steerable: row.steerable,
    managed: true,
    workspace_id: row.workspaceId,
    pane_id: row.paneId,
    tab_id: row.tabId,
    tab_label: row.tabLabel,
    cwd: row.cwd,
    pi_session_id: row.piSessionId,
    pi_session_path: row.piSessionPath,
    model: row.model,
    thinking: row.thinking,
    owner_session_id: row.ownerSessionId,
    agent_definition: row.agentDefinition || undefined,
    active_request_id: row.activeRequestId,
    last_activity_at: row.lastActivityAt,
    stale: row.stale,
    inactive_ms: row.inactiveMs,
    parent_label: row.parentLabel !== undefined && listed.has(row.parentLabel) ? row.parentLabel : undefined,
    orphan: row.orphan,
    cleanup_error: row.cleanupError,
    result_error: row.resultError,
    recovery_only: row.recoveryOnly,
    diagnostic: row.diagnostic,
    queued: row.queued,
    question: row.question && { ask_id: row.question.askId, question: row.question.question },
    tokens: {},
  });
}
