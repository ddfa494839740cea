import type { Json } from "../../machines/vocabulary.ts";
import { doorContract, shown } from "./errors.ts";
import type { Jq } from "./jq.ts";
import { isPlain } from "./json.ts";

const FIELD = "subject";

/** What an input is about: a scope and at least one key in it. */
export interface DoorSubject {
  scope: string;
  keys: Record<string, string>;
}

/**
 * Checks the program that finds the subject of an input: that it compiles without any variable.
 * @param operation what errors say was called.
 * @throws HerdError `door_contract` as `Jq.compile` throws it, with the field `subject`.
 */
export function compileSubject(jq: Jq, program: string, operation: string): Promise<void> {
  return jq.compile(program, { operation, field: FIELD, variables: [] });
}

/**
 * Finds the subject of an input.
 * @param operation what errors say was called; `door` unless set.
 * @throws HerdError `door_contract` as `Jq.evaluate` throws it, or with the rule `shape`.
 */
export async function evaluateSubject(jq: Jq, program: string, input: Json, operation = "door"): Promise<DoorSubject> {
  return parseSubject(await jq.evaluate(program, { operation, field: FIELD, input, variables: {} }), operation);
}

/**
 * What a program for the subject yielded, as a subject.
 *
 * Keys that are null or blank are left out: an input that lacks a field is not about all others that lack it. Numbers
 * are refused, because `7` and `7.0` would be one key or two depending on who writes them.
 * @throws HerdError `door_contract` with the rule `shape`.
 */
export function parseSubject(value: Json, operation = "door"): DoorSubject {
  const { scope, keys, ...others } = isPlain(value) ? (value as Record<string, Json>) : {};
  const entries = isPlain(keys) ? Object.entries(keys as Record<string, Json>) : [];
  const given = entries.filter((entry): entry is [string, string] => isText(entry[1]));
  const rest = entries.filter(([, entry]) => entry !== null && typeof entry !== "string");
  if (isText(scope) && given.length > 0 && rest.length === 0 && Object.keys(others).length === 0) {
    return { scope, keys: Object.fromEntries(given) };
  }
  throw doorContract(
    { operation, field: FIELD },
    "shape",
    `${FIELD} yields ${shown(value)} and takes { scope, keys } with a non-blank scope and at least one non-blank key, ` +
      "all of them text",
    "let the program yield that; tostring makes text of a number",
  );
}

function isText(value: Json | undefined): value is string {
  return typeof value === "string" && value.trim() !== "";
}
