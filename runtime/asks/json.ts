import type { Json } from "../../machines/vocabulary.ts";

/** What one ask, and what one answer, may hold, in bytes of JSON. */
export const JSON_LIMIT = 1024 * 1024;

/** How deep lists and objects may lie in each other. What walks them later does so by recursion, on a stack that ends. */
const DEPTH_LIMIT = 500;

const TOO_LARGE = `must be at most ${JSON_LIMIT / 1024 / 1024} MiB of JSON`;

/** What is wrong with a value, as the end of a sentence: "must be a string". */
export interface Fault {
  /** Where, with dots: `items.0.name`. Undefined for the value as a whole. */
  path: string | undefined;
  message: string;
}

/** An object of JSON, which is neither a list nor null. */
export type JsonObject = { [key: string]: Json };

/** Whether a value of JSON is an object. */
export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object's own entry: `constructor` and its like are not inherited. */
export function own(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/**
 * A copy of a value, which nobody changes later, and its size in bytes of JSON.
 *
 * Stricter than `JSON.stringify`, which drops or rewrites what it cannot say: undefined, functions, numbers that are not
 * finite, circles and objects of a class are faults, and so is what is over `JSON_LIMIT` or nested over 500 deep.
 */
export function readJson(value: unknown): { json: Json; bytes: number } | { fault: Fault } {
  try {
    const json = copyOf(value, { path: [], above: new Set(), left: JSON_LIMIT });
    const bytes = Buffer.byteLength(JSON.stringify(json));
    return bytes > JSON_LIMIT ? { fault: { path: undefined, message: TOO_LARGE } } : { json, bytes };
  } catch (error) {
    if (error instanceof NotJson) return { fault: error.fault };
    throw error;
  }
}

/** The path to a place inside a value, undefined for none; cut, because names come from whoever sent the value. */
export function dotted(path: readonly string[]): string | undefined {
  return path.length === 0 ? undefined : cut(path.join("."));
}

/** A value for a message, cut. */
export function brief(value: Json): string {
  return cut(JSON.stringify(value));
}

/** A text for a message: at most 200 characters of it. */
export function cut(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 199).toWellFormed()}…`;
}

class NotJson extends Error {
  readonly fault: Fault;

  constructor(path: readonly string[], message: string) {
    super(message);
    this.fault = { path: dotted(path), message };
  }
}

interface Walk {
  path: string[];
  /** The lists and objects around the value. */
  above: Set<object>;
  /** Bytes of JSON that are left. Counted on the way, because what is shared many times over is small only in memory. */
  left: number;
}

function copyOf(value: unknown, walk: Walk): Json {
  spend(walk, typeof value === "string" ? value.length + 2 : 1);
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new NotJson(walk.path, `must be JSON, not ${value}`);
    // JSON knows no negative zero.
    return value === 0 ? 0 : value;
  }
  if (typeof value !== "object") throw new NotJson(walk.path, `must be JSON, not ${nameOf(value)}`);
  if (walk.above.has(value)) throw new NotJson(walk.path, "must be JSON, which cannot contain itself");
  if (walk.above.size >= DEPTH_LIMIT) throw new NotJson([], `must be nested at most ${DEPTH_LIMIT} deep`);
  walk.above.add(value);
  const copy = Array.isArray(value) ? listOf(value, walk) : objectOf(value, walk);
  walk.above.delete(value);
  return copy;
}

function listOf(list: readonly unknown[], walk: Walk): Json[] {
  return Array.from(list, (entry, index) => inside(String(index), entry, walk));
}

function objectOf(object: object, walk: Walk): JsonObject {
  const prototype: unknown = Object.getPrototypeOf(object);
  // The prototype of plain objects is another one in each realm, but there is always nothing above it.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new NotJson(walk.path, `must be JSON, not an object of the class ${cut(object.constructor.name)}`);
  }
  return Object.fromEntries(
    Object.entries(object).map(([name, entry]) => {
      spend(walk, name.length + 3);
      return [name, inside(name, entry, walk)];
    }),
  );
}

function inside(name: string, value: unknown, walk: Walk): Json {
  walk.path.push(name);
  const copy = copyOf(value, walk);
  walk.path.pop();
  return copy;
}

function spend(walk: Walk, bytes: number): void {
  walk.left -= bytes;
  if (walk.left < 0) throw new NotJson([], TOO_LARGE);
}

function nameOf(value: unknown): string {
  return value === undefined ? "undefined" : `a ${typeof value}`;
}
