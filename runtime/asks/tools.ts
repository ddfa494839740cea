import { z } from "zod";
import type { Engine } from "../engine.ts";
import { HerdError, internalFailure, invalidRequest } from "../errors.ts";
import type { OwnerRef } from "../kernel/records.ts";
import { subjectOf } from "../owners.ts";
import { json, parseRequest } from "../request.ts";
import { nonBlank } from "../subagent/acceptance.ts";
import { parkedOn } from "./parked.ts";
import { outcomeJson, parkedJson } from "./seed-json.ts";
import { visit } from "./visit.ts";
import type { ParkedToolName, VisitRequest } from "./visit-shapes.ts";

const List = z.strictObject({});
const Resume = z.strictObject({ interaction_id: nonBlank, payload: json.optional() });
const Cancel = z.strictObject({ ids: z.array(nonBlank) });

/** Who calls a tool. */
export interface ToolCaller {
  /** A worker, that must not act on what waits for it, and the id of its call. */
  worker?: { visitor: string; id: string };
  /** Aborted when nobody is there any more to hear the answer: what the run comes to waits on the subject. */
  signal?: AbortSignal;
}

/**
 * One call of a parked tool: snake_case JSON in and out; public errors are answers, never thrown.
 * Source: "Asking the caller", "The generic tools".
 */
export async function parkedTool(
  engine: Engine,
  owner: OwnerRef,
  name: ParkedToolName,
  input: unknown,
  { worker, signal }: ToolCaller = {},
): Promise<unknown> {
  try {
    if (name === "list_parked") {
      parseRequest(name, List, input);
      return (await parkedOn(engine, owner)).map(({ entry }) => parkedJson(entry));
    }
    const request: VisitRequest = {
      subject: subjectOf(owner),
      ...requestOf(name, input),
      ...(worker && { id: worker.id }),
      ...(signal && { signal }),
    };
    return { ok: true, ...outcomeJson(await visit(engine, request, worker && { visitor: worker.visitor })) };
  } catch (error) {
    return { ok: false, error: (error instanceof HerdError ? error : internalFailure(name, error)).toJSON() };
  }
}

function requestOf(name: string, input: unknown): Pick<VisitRequest, "cancel" | "resume" | "take"> {
  if (name === "cancel_parked") return { cancel: parseRequest(name, Cancel, input).ids };
  if (name === "resume_parked") {
    const { interaction_id: id, payload } = parseRequest(name, Resume, input);
    // A model cannot tell a null answer from none: it takes.
    return payload === undefined || payload === null ? { take: id } : { resume: [{ id, payload }] };
  }
  throw invalidRequest(
    "parkedTool",
    "invalid_field",
    `There is no tool ${JSON.stringify(name)}`,
    "call list_parked, resume_parked or cancel_parked",
    {
      field: "name",
    },
  );
}
