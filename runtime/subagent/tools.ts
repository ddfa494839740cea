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
import type { AskRecord, RequestRecord } from "../kernel/records.ts";
import { keys } from "../store/keys.ts";
import type { ToolCall } from "./shapes.ts";
import { steer } from "./steer.ts";

/** The `subagent` tool: snake_case JSON in and out. Public errors are answers, never thrown. */
export async function subagent(engine: Engine, by: Controller, request: unknown, call: ToolCall = {}): Promise<object> {
  try {
    const { variant, fields } = parse(request);
    return await carryOut(engine, by, variant, fields, call);
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
  { replyId, assignId: id, steerId, askId, signal }: ToolCall,
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
      const request = withoutUndefined({ agent, task, label, cwd, timeoutMs, files, reusable, fork, id, signal });
      return accepted(engine, await assign(engine, by, request));
    }
    case "historical": {
      const { session, task, cwd, timeoutMs, files, reusable } = fields;
      const request = withoutUndefined({ session, task, label, cwd, timeoutMs, files, reusable, id, signal });
      return accepted(engine, await assign(engine, by, request));
    }
    case "live": {
      const { task, files } = fields;
      return accepted(engine, await assign(engine, by, withoutUndefined({ label, task, files, id, signal })));
    }
    case "reply": {
      const receipt = await reply(engine, {
        owner: by.parent?.runId ?? by.treeId,
        ...(isOf(engine, askId, label) ? { askId } : { label }),
        message: fields["message"] as string,
        files: (fields["files"] as string[] | undefined) ?? [],
        ...(replyId !== undefined && { id: replyId }),
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
      const steering = () => steer(engine, by, withoutUndefined({ label, message, files }));
      const receipt = await (steerId === undefined
        ? steering()
        : engine.steers.once(`${by.treeId}/${steerId}`, steering));
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

/** Whether a question is one that the labelled worker asked; otherwise it says nothing about this label. */
function isOf(engine: Engine, askId: string | undefined, label: string): askId is string {
  const ask = askId === undefined ? undefined : engine.kernel.read<AskRecord>(keys.ask(askId));
  return ask !== undefined && engine.request(ask.requestId)?.label === label;
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
