import { z } from "zod";
import { LABEL_PATTERN } from "../../machines/vocabulary.ts";
import { close } from "./close.ts";
import type { Controller } from "./acceptance.ts";
import { assign } from "./assign.ts";
import { list } from "./list.ts";
import type { WorkerRow } from "./shapes.ts";
import { reply } from "../asks/reply.ts";
import { paneIdOf } from "../backend.ts";
import type { Engine } from "../engine.ts";
import { HerdError, internalFailure, invalidRequest, withoutUndefined } from "../errors.ts";
import type { RequestRecord } from "../kernel/records.ts";
import { steer } from "./steer.ts";

/** What a model is told of a tool, with its input as JSON schema. */
export interface ToolDefinition {
  name: string;
  description: string;
  inputSchema: object;
}

const files = { type: "array", items: { type: "string" }, description: "Paths of supporting files." };

/** The model-facing tools, for programs that run a model themselves. */
export const tools = {
  askOwner: {
    name: "ask_owner",
    description:
      "Ask your direct owner for one decision that you need to continue this task. It must be the only tool call of " +
      "your turn; then stop and wait. Do not guess the answer.",
    inputSchema: {
      type: "object",
      properties: { question: { type: "string", description: "One decision, with its options." }, files },
      required: ["question"],
      additionalProperties: false,
    },
  },
  subagent: {
    name: "subagent",
    description:
      "Delegate work to other workers: list them, assign a task, reply to a question, close one. Results arrive on " +
      "their own; do not poll.",
    inputSchema: {
      type: "object",
      properties: {
        action: { type: "string", enum: ["list", "assign", "steer", "reply", "close"] },
        agent: { type: "string" },
        label: { type: "string", pattern: LABEL_PATTERN.source },
        cwd: { type: "string" },
        task: { type: "string" },
        files,
        reusable: { type: "boolean" },
        fork: { type: "string" },
        session: { type: "string" },
        timeoutMs: { type: "integer", minimum: 5_001, maximum: 300_000 },
        message: { type: "string" },
      },
      required: ["action"],
      additionalProperties: false,
    },
  },
} satisfies Record<string, ToolDefinition>;

/** The fields of every request, in the order they are reported. */
const FIELDS = [
  "action",
  "agent",
  "label",
  "cwd",
  "task",
  "files",
  "reusable",
  "fork",
  "session",
  "timeoutMs",
  "message",
];
const STRINGS = ["action", "agent", "label", "cwd", "task", "fork", "session", "message"];

/** Which fields each action and variant takes, and which it needs. Source: the `subagent` API. */
const VARIANTS = {
  list: { takes: [], needs: [] },
  fresh: {
    takes: ["agent", "label", "cwd", "task", "files", "reusable", "fork", "timeoutMs"],
    needs: ["agent", "task"],
  },
  historical: {
    takes: ["session", "label", "cwd", "task", "files", "reusable", "timeoutMs"],
    needs: ["session", "task"],
  },
  live: { takes: ["label", "task", "files"], needs: ["label", "task"] },
  steer: { takes: ["label", "message", "files"], needs: ["label", "message"] },
  reply: { takes: ["label", "message", "files"], needs: ["label", "message"] },
  close: { takes: ["label"], needs: ["label"] },
} as const;

type Variant = keyof typeof VARIANTS;
type Fields = Record<string, unknown>;

/**
 * The `subagent` tool: the seed's JSON in, the seed's JSON out. Public errors are answers, never thrown.
 * @param id the caller's id of this call, so that a reply made again is the same reply.
 */
export async function subagent(engine: Engine, by: Controller, request: unknown, id?: string): Promise<object> {
  try {
    const { variant, fields } = parse(request);
    return await carryOut(engine, by, variant, fields, id);
  } catch (error) {
    const failure = error instanceof HerdError ? error : internalFailure("subagent", error);
    return { ok: false, error: failure.toJSON() };
  }
}

async function carryOut(
  engine: Engine,
  by: Controller,
  variant: Variant,
  fields: Fields,
  id: string | undefined,
): Promise<object> {
  const label = fields["label"] as string;
  switch (variant) {
    case "list": {
      const { workers, agentDefinitions, cleanupErrors, findings } = await list(engine, by);
      const labels = new Set(workers.map((row) => row.label));
      return withoutUndefined({
        ok: true,
        workers: workers.map((row) => seedRow(row, labels)),
        agent_definitions: agentDefinitions,
        cleanup_errors: cleanupErrors,
        definition_findings: findings,
      });
    }
    case "fresh": {
      const { agent, task, cwd, timeoutMs, files, reusable, fork } = fields;
      const request = withoutUndefined({ agent, task, label, cwd, timeoutMs, files, reusable, fork });
      return accepted(engine, await assign(engine, by, request));
    }
    case "historical": {
      const { session, task, cwd, timeoutMs, files, reusable } = fields;
      const request = withoutUndefined({ session, task, label, cwd, timeoutMs, files, reusable });
      return accepted(engine, await assign(engine, by, request));
    }
    case "live": {
      const { task, files } = fields;
      return accepted(engine, await assign(engine, by, withoutUndefined({ label, task, files })));
    }
    case "reply": {
      const receipt = await reply(engine, {
        owner: by.parent?.runId ?? by.treeId,
        label,
        message: fields["message"] as string,
        files: (fields["files"] as string[] | undefined) ?? [],
        ...(id !== undefined && { id }),
        cwd: by.cwd,
        operation: "reply",
        treeId: by.treeId,
        path: by.path,
        workspace: by.workspace,
      });
      return {
        ok: true,
        action: "reply",
        label,
        request_id: receipt.requestId,
        ask_id: receipt.askId,
        assignment_request_id: receipt.assignmentRequestId,
        session_id: receipt.sessionId,
      };
    }
    case "close": {
      const { cleanupError } = await close(engine, { ...by, label, operation: "close" });
      return withoutUndefined({ ok: true, action: "close", label, cleanup_error: cleanupError });
    }
    case "steer": {
      const { message, files } = fields;
      const receipt = await steer(engine, by, withoutUndefined({ label, message, files }));
      return {
        ok: true,
        action: "steer",
        label,
        request_id: receipt.requestId,
        session_id: receipt.sessionId,
        assignment_request_id: receipt.assignmentRequestId,
      };
    }
  }
}

function accepted(engine: Engine, { label, backend, runId, tree, sessionId, requestId }: RequestRecord): object {
  const place = engine.kernel.loaded(tree)?.worker(runId)?.context.place;
  return {
    ok: true,
    action: "assign",
    label,
    pane_id: paneIdOf({ backend, runId }, place),
    session_id: sessionId,
    request_id: requestId,
  };
}

/** Checks in the fixed order of the specification; nothing is looked up before it ends. */
function parse(request: unknown): { variant: Variant; fields: Fields } {
  const object = z.record(z.string(), z.unknown()).safeParse(request);
  if (!object.success) throw bad("subagent", "request", "The request must be an object");
  const fields = object.data;
  const operation = typeof fields["action"] === "string" ? (fields["action"] as string) : "subagent";
  const unknown = Object.keys(fields).filter((field) => !FIELDS.includes(field));
  if (unknown.length > 0) throw bad(operation, unknown, `Unknown fields: ${unknown.join(", ")}`);
  const blank = STRINGS.filter((field) => {
    const value = fields[field];
    return value !== undefined && (typeof value !== "string" || value.trim() === "");
  });
  if (blank.length > 0) throw bad(operation, blank, `Must be non-blank strings: ${blank.join(", ")}`);
  const { label, timeoutMs } = fields;
  if (label !== undefined && !LABEL_PATTERN.test(label as string)) {
    throw bad(operation, "label", `The label must match ${LABEL_PATTERN.source}`);
  }
  if (
    timeoutMs !== undefined &&
    !(Number.isInteger(timeoutMs) && Number(timeoutMs) >= 5_001 && Number(timeoutMs) <= 300_000)
  ) {
    throw bad(operation, "timeoutMs", "timeoutMs must be an integer from 5001 to 300000");
  }
  const variant = variantOf(fields, operation);
  const { takes, needs } = VARIANTS[variant] as { takes: readonly string[]; needs: readonly string[] };
  const given = Object.keys(fields).filter((field) => field !== "action" && fields[field] !== undefined);
  const offending = given.filter((field) => !takes.includes(field));
  if (offending.length > 0) {
    const allowed = takes.length > 0 ? `allowed are ${takes.join(", ")}` : "no other field is allowed";
    throw bad(operation, offending, `${nameOf(variant)} does not take ${offending.join(", ")}; ${allowed}`);
  }
  const missing = needs.filter((field) => fields[field] === undefined);
  if (missing.length > 0) throw bad(operation, missing, `${nameOf(variant)} needs ${missing.join(", ")}`);
  checkShapes(fields, operation);
  return { variant, fields };
}

function variantOf(fields: Fields, operation: string): Variant {
  const { action } = fields;
  if (action === "list" || action === "steer" || action === "reply" || action === "close") return action;
  if (action !== "assign") {
    throw bad(
      operation,
      "action",
      action === undefined
        ? "The request needs an action: list, assign, steer, reply or close"
        : `The action ${JSON.stringify(action)} is not supported; actions are list, assign, steer, reply, close`,
    );
  }
  if (fields["agent"] !== undefined) return "fresh";
  if (fields["session"] !== undefined) return "historical";
  if (fields["label"] !== undefined) return "live";
  throw bad(operation, "agent", "assign requires exactly one of agent, session or label");
}

function checkShapes({ files, reusable }: Fields, operation: string): void {
  if (
    files !== undefined &&
    !(Array.isArray(files) && files.every((file) => typeof file === "string" && /\S/.test(file)))
  ) {
    throw bad(operation, "files", "files must be a list of non-blank paths");
  }
  if (reusable !== undefined && typeof reusable !== "boolean")
    throw bad(operation, "reusable", "reusable must be true or false");
}

function nameOf(variant: Variant): string {
  return variant === "fresh" || variant === "historical" || variant === "live"
    ? `The ${variant} form of assign`
    : variant;
}

function bad(operation: string, field: string | readonly string[], message: string): HerdError {
  const names = typeof field === "string" ? field : field.join(", ");
  return invalidRequest(operation, "invalid_field", message, `correct ${names}`, { field: names });
}

/** A worker row in the seed's spelling. Its parent is named only where that is listed too. */
function seedRow(row: WorkerRow, listed: ReadonlySet<string>): object {
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
