import { z } from "zod";
import type { Json } from "../../machines/vocabulary.ts";
import { messageOf } from "../errors.ts";
import { parseRequest } from "../request.ts";
import { doorContract, shown, type Place } from "./errors.ts";
import type { Jq } from "./jq.ts";
import { copyJson, isPlain, NotJson } from "./json.ts";

/** The fields of a contract, in the order in which they are evaluated. */
export const CONTRACT_FIELDS = ["cancelExpr", "resumeExpr", "startExpr", "extrasExpr"] as const;

/** One of the four fields of a contract. */
export type ContractField = (typeof CONTRACT_FIELDS)[number];

/** The variables of all four expressions: what each holds, and a sample of it as programs see it. */
export const DOOR_VARIABLES: Record<"parked", { description: string; sample: Json }> = {
  parked: {
    description: "What is parked on the subject of this input, oldest first; fields that are not set are absent",
    sample: [
      {
        id: "i-42",
        status: "asking",
        to: "caller",
        asked_by: ["main"],
        question: "Shall I go on?",
        answer_format: "confirm",
        group_id: "g-1",
        created_at: "2026-03-01T09:00:00.000Z",
      },
      { id: "r-7", status: "finished", label: "scout", result: "Done" },
    ],
  },
};

const VARIABLES = Object.keys(DOOR_VARIABLES);

/**
 * What turns an input and what is parked into one value: a jq program, in which `.` is the input and `$parked` what is
 * parked, or a function of the same two. A function may be asynchronous and takes as long as it takes; what it gives
 * has to be JSON, and undefined stands for null.
 */
export type ContractExpression = string | ((input: Json, variables: { parked: Json }) => unknown);

/** What a door does with an input. Each expression is optional and yields one value. */
export interface DoorContract {
  /** Yields what to cancel: null, an id, or a list of ids. Unset, nothing. */
  cancelExpr?: ContractExpression;
  /**
   * Yields what to resume or take: null, `{ id, payload }` (an answer, also if it is null), a bare id (takes that
   * outcome), or a list of these. Unset, nothing.
   */
  resumeExpr?: ContractExpression;
  /** Yields the input of the run to start, an object, or null to start nothing. Unset, the door's own default. */
  startExpr?: ContractExpression;
  /** Yields what the started run gets beside its input, an object, or null. Unset, nothing. */
  extrasExpr?: ContractExpression;
}

/** What is resumed with which answer. */
export interface Resumption {
  id: string;
  payload: Json;
}

/** What a door starts: the run with its default input, nothing, or the run with this input. */
export type Start = { type: "default" } | { type: "nothing" } | { type: "input"; input: Record<string, Json> };

/** What a contract yields for one input. Ids may occur twice; whether they stand for anything is not known here. */
export interface ContractOutcome {
  cancel: string[];
  resume: Resumption[];
  take: string[];
  start: Start;
  extras: Record<string, Json>;
}

/** What a contract is evaluated on. */
export interface ContractInput {
  input: Json;
  /** What is parked, as `$parked` shows it: the one snapshot that all four see. */
  parked: Json;
  /** What errors say was called; `door` unless set. */
  operation?: string;
}

type ContractFunction = Exclude<ContractExpression, string>;

const Expression = z.custom<ContractExpression>(
  (value) => typeof value === "string" || typeof value === "function",
  "a jq program or a function",
);
const Contract = z.strictObject({
  cancelExpr: Expression.optional(),
  resumeExpr: Expression.optional(),
  startExpr: Expression.optional(),
  extrasExpr: Expression.optional(),
} satisfies Record<ContractField, z.ZodType>);

/**
 * Checks a contract before it is kept: its fields, and that every jq program compiles with `$parked` alone.
 * @param operation what errors say was called.
 * @throws HerdError `unknown_field` or `invalid_field`, or `door_contract` as `Jq.compile` throws it.
 */
export async function compileContract(jq: Jq, contract: DoorContract, operation: string): Promise<void> {
  const checked = parseRequest(operation, Contract, contract);
  for (const field of CONTRACT_FIELDS) {
    const expression = checked[field];
    if (typeof expression === "string") await jq.compile(expression, { operation, field, variables: VARIABLES });
  }
}

/**
 * Evaluates the four expressions one after another, each on the input and what is parked.
 *
 * It changes nothing and may be repeated; what functions do besides is theirs.
 * @throws HerdError `door_contract` that names the first field that fails or yields what it may not: `shape` for the
 * latter, `function` for a function that throws, `not_json` for one that gives no JSON, and the rules of `Jq`.
 */
export async function evaluateContract(
  jq: Jq,
  { cancelExpr, resumeExpr, startExpr, extrasExpr }: DoorContract,
  { input, parked, operation = "door" }: ContractInput,
): Promise<ContractOutcome> {
  const valueOf = async (field: ContractField, expression: ContractExpression | undefined): Promise<Json> => {
    if (expression === undefined) return null;
    const place = { operation, field };
    return typeof expression === "string"
      ? jq.evaluate(expression, { ...place, input, variables: { parked } })
      : call(place, expression, input, parked);
  };
  const cancel = parseCancel(await valueOf("cancelExpr", cancelExpr), operation);
  const { resume, take } = parseResume(await valueOf("resumeExpr", resumeExpr), operation);
  const start: Start =
    startExpr === undefined ? { type: "default" } : parseStart(await valueOf("startExpr", startExpr), operation);
  const extras = parseExtras(await valueOf("extrasExpr", extrasExpr), operation);
  return { cancel, resume, take, start, extras };
}

/** What `cancelExpr` yielded, as ids. @throws HerdError `door_contract` with the rule `shape`. */
export function parseCancel(value: Json, operation = "door"): string[] {
  if (value === null) return [];
  const ids = Array.isArray(value) ? value : [value];
  if (ids.every(isId)) return ids;
  throw wrongShape({ operation, field: "cancelExpr" }, value, "null, an id, or a list of ids");
}

/** What `resumeExpr` yielded, as what to resume and what to take. @throws HerdError `door_contract`, rule `shape`. */
export function parseResume(value: Json, operation = "door"): { resume: Resumption[]; take: string[] } {
  const resume: Resumption[] = [];
  const take: string[] = [];
  for (const item of value === null ? [] : Array.isArray(value) ? value : [value]) {
    if (isId(item)) take.push(item);
    else if (isResumption(item)) resume.push(item);
    else {
      const takes = "null, { id, payload } with these two fields and no other, a bare id, or a list of these";
      throw wrongShape({ operation, field: "resumeExpr" }, value, takes);
    }
  }
  return { resume, take };
}

/** What a `startExpr` that is set yielded. @throws HerdError `door_contract` with the rule `shape`. */
export function parseStart(value: Json, operation = "door"): Exclude<Start, { type: "default" }> {
  if (value === null) return { type: "nothing" };
  if (isPlain(value)) return { type: "input", input: value };
  throw wrongShape({ operation, field: "startExpr" }, value, "an object, or null");
}

/** What `extrasExpr` yielded, as an object. @throws HerdError `door_contract` with the rule `shape`. */
export function parseExtras(value: Json, operation = "door"): Record<string, Json> {
  if (value === null) return {};
  if (isPlain(value)) return value;
  throw wrongShape({ operation, field: "extrasExpr" }, value, "an object, or null");
}

/** Calls a function with copies, so that the one snapshot stays what it is for the others. */
async function call(place: Place, expression: ContractFunction, input: Json, parked: Json): Promise<Json> {
  let value: unknown;
  try {
    value = await expression(structuredClone(input), { parked: structuredClone(parked) });
  } catch (error) {
    const message = `${place.field} threw: ${messageOf(error)}`;
    throw doorContract(place, "function", message, "correct the function", { cause: error });
  }
  try {
    return copyJson(value);
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    const message = `${place.field} gave what is no JSON: ${error.message}`;
    throw doorContract(place, "not_json", message, "let the function give JSON");
  }
}

function isId(value: Json | undefined): value is string {
  return typeof value === "string" && value.trim() !== "";
}

function isResumption(value: Json): value is Json & Resumption {
  if (!isPlain(value)) return false;
  const { id, payload, ...others } = value;
  return isId(id) && payload !== undefined && Object.keys(others).length === 0;
}

function wrongShape(place: Place, value: Json, takes: string) {
  const message = `${place.field} yields ${shown(value)} and takes ${takes}`;
  return doorContract(place, "shape", message, "let the expression yield one of these");
}
