import { LABEL_PATTERN } from "../../machines/vocabulary.ts";
import { close } from "./close.ts";
import type { Controller } from "./acceptance.ts";
import { assign } from "./assign.ts";
import { saveFullOutput } from "./full-output.ts";
import { list } from "./list.ts";
import { parse, type Fields, type Variant } from "./request.ts";
import { seedRow } from "./row.ts";
import { reply } from "../asks/reply.ts";
import { paneIdOf } from "../backend.ts";
import type { Engine } from "../engine.ts";
import { HerdError, internalFailure, withoutUndefined } from "../errors.ts";
import type { RequestRecord } from "../kernel/records.ts";
import { steer } from "./steer.ts";

/** What a model is told of a tool, with its input as JSON schema. */
export interface ToolDefinition {
  name: string;
  description: string;
  inputSchema: object;
}

const text = (description: string) => ({ type: "string", description });
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
        agent: text("assign: start a fresh worker of this definition."),
        session: text("assign: go on with a saved session, by its exact path or full id."),
        label: {
          ...text(
            "Which worker: its exact label. For a new one optional; alone in assign: give a ready worker its next task.",
          ),
          pattern: LABEL_PATTERN.source,
        },
        cwd: text("assign: where a fresh worker works; yours unless set."),
        task: text("assign: everything the worker needs to know, with what it should hand back."),
        files,
        reusable: { type: "boolean", description: "assign: keep the worker for further tasks after its result." },
        fork: text("assign: begin with a copy of a saved session, by its exact path or full id."),
        timeoutMs: {
          type: "integer",
          minimum: 5_001,
          maximum: 300_000,
          description: "assign: the whole budget of the start, in milliseconds.",
        },
        message: text("steer: what changes in the current task. reply: the answer to the worker's question."),
      },
      required: ["action"],
      additionalProperties: false,
    },
  },
} satisfies Record<string, ToolDefinition>;

/**
 * The `subagent` tool: snake_case JSON in and out. Public errors are answers, never thrown.
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
      const answer = withoutUndefined({
        ok: true,
        workers: workers.map((row) => seedRow(row, labels)),
        agent_definitions: agentDefinitions,
        cleanup_errors: cleanupErrors,
        definition_findings: findings,
      });
      const { directory } = engine.kernel.store;
      return { ...answer, ...(await saveFullOutput(engine.options.passive ? undefined : directory, answer)) };
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
