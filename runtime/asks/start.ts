import type { Json } from "../../machines/vocabulary.ts";
import { FUNCTIONS } from "../backend.ts";
import type { Engine } from "../engine.ts";
import { invalidRequest } from "../errors.ts";
import { newId } from "../ids.ts";
import type { OwnerRef } from "../kernel/records.ts";
import type { Controller } from "../subagent/acceptance.ts";
import { planFresh } from "../subagent/assign.ts";
import type { Plan } from "../subagent/launch.ts";
import { checkInput } from "./formats.ts";
import type { StartFields } from "./visit-request.ts";

/** A run that a visit is about to start: it has a tree, and a workspace for its labels, of its own. */
export interface PlannedStart {
  by: Controller;
  plan: Plan;
}

/** What input an agent takes that is no function of this program. */
const TASK_FIELDS = new Set(["task", "files", "cwd", "label"]);

/**
 * Looks at everything that a start needs, and changes nothing.
 * @throws HerdError what an assign is refused for, `undeclared_extras`, `invalid_field` for input that does not fit.
 */
export async function planStart(
  engine: Engine,
  { owner, cwd: here }: { owner: OwnerRef; cwd: string },
  start: StartFields,
  extras: Record<string, Json>,
): Promise<PlannedStart> {
  const { agent: name, input, task, files, cwd, label, timeoutMs, metadata } = start;
  const agent = (await engine.roster.current(here)).known(name);
  checkExtras(name, agent.extras, extras);
  const isFunction = engine.backends.backendFor(agent) === FUNCTIONS;
  const given = { task, files, cwd, label, timeoutMs, metadata };
  const own = isFunction ? { task: task ?? taskIn(input) } : fieldsIn(name, input);
  if (task === undefined && (own as { task?: unknown }).task === undefined) throw noTask(name);
  if (isFunction && input !== undefined) {
    const schema = engine.agents.find(name)?.input;
    if (schema) await checkInput(schema, input, { operation: "visit", field: "start.input" });
  }
  const treeId = newId();
  const by: Controller = { treeId, owner, workspace: treeId, cwd: here, path: "" };
  const request = defined({ ...own, ...defined(given) });
  const plan = await planFresh(engine, by, { agent: name, ...request });
  return {
    by,
    plan: {
      ...plan,
      ...(isFunction && input !== undefined && { input: input as Json }),
      ...(Object.keys(extras).length > 0 && { extras }),
    },
  };
}

/** A target reads only the extras that it declares. Source: "Asking the caller", "Extras". */
export function checkExtras(agent: string, declared: readonly string[], extras: Record<string, Json>): void {
  const undeclared = Object.keys(extras).filter((key) => !declared.includes(key));
  if (undeclared.length === 0) return;
  throw invalidRequest(
    "visit",
    "undeclared_extras",
    `Agent "${agent}" does not declare the extras ${undeclared.join(", ")} (declared: ${declared.join(", ") || "none"})`,
    "leave them out, or name them in the extras of its definition",
    { field: "extras", details: { undeclared, declared } },
  );
}

function noTask(agent: string) {
  return invalidRequest(
    "visit",
    "invalid_field",
    `start.task: must be given, or an input, for agent "${agent}" to have something to do`,
    "give a task or an input",
    { field: "start.task" },
  );
}

/** The task of a function that is given input alone. */
function taskIn(input: unknown): string | undefined {
  if (input === undefined) return undefined;
  const { task } = (input ?? {}) as { task?: unknown };
  return typeof task === "string" && task.trim() !== "" ? task : JSON.stringify(input);
}

/** Anything else than a function is given a task, and nothing that it would not read. */
function fieldsIn(agent: string, input: unknown): object {
  if (input === undefined) return {};
  const isObject = typeof input === "object" && input !== null && !Array.isArray(input);
  const unknown = isObject ? Object.keys(input).filter((key) => !TASK_FIELDS.has(key)) : ["input"];
  if (unknown.length === 0) return input as object;
  throw invalidRequest(
    "visit",
    "invalid_field",
    `Agent "${agent}" is no function of this program and takes { task, files, cwd, label } alone, not ${unknown.join(", ")}`,
    "give it a task",
    { field: "start.input", rule: "task, files, cwd, label" },
  );
}

function defined(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
