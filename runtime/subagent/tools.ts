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
