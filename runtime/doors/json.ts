import type { Json } from "../../machines/vocabulary.ts";

/** Deeper than this jq runs out of its stack, and nobody nests data like that by hand. */
const MAX_DEPTH = 512;

/** A value is no JSON: what it is and where, for a message. */
export class NotJson extends Error {
  override readonly name = "NotJson";
}

/**
 * A copy of a value as JSON would carry it, which shares nothing with the original.
 *
 * Fields that are undefined are left out and undefined alone is null, as an unset one is. Whatever else JSON drops or
 * changes without a word (functions, dates, NaN, …) is refused.
 * @throws NotJson that names the first such value and its path.
 */
export function copyJson(value: unknown): Json {
  return copy(value ?? null, "", 0);
}

function copy(value: unknown, path: string, depth: number): Json {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (Number.isFinite(value)) return value;
    throw new NotJson(`${value}${at(path)}`);
  }
  if (value === undefined) throw new NotJson(`undefined${at(path)}`);
  if (typeof value !== "object") throw new NotJson(`a ${typeof value}${at(path)}`);
  // A value that contains itself ends here too.
  if (depth === MAX_DEPTH) throw new NotJson(`more than ${MAX_DEPTH} levels of nesting`);
  if (Array.isArray(value)) return value.map((entry, index) => copy(entry, `${path}[${index}]`, depth + 1));
  if (!isPlain(value)) throw new NotJson(`${className(value)}${at(path)}`);
  const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
  return Object.fromEntries(entries.map(([name, entry]) => [name, copy(entry, `${path}.${name}`, depth + 1)]));
}

/** Whether a value is an object of fields: no array, nothing with a class of its own. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function className(value: object): string {
  return `an object of the class ${value.constructor?.name || "without a name"}`;
}

function at(path: string): string {
  return path === "" ? "" : ` at ${path}`;
}
