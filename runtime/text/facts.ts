import { fit } from "./columns.ts";
import { quotedUnlessPlain, visible } from "./safe.ts";

/** An object of which nothing is known. */
export type Fields = Record<string, unknown>;

/** Whether a value has fields. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value as JSON on one line. */
export function jsonOf(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // A circle or a bigint: no JSON, but still something to show.
  }
  return visible(text ?? String(value)).toWellFormed();
}

/** A value on one line, whole; undefined when there is nothing to say. */
export function valueOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") return jsonOf(value);
  return value.trim() === "" ? undefined : visible(value).toWellFormed();
}

/** A name among other words. */
export function nameOf(value: unknown): string {
  return typeof value === "string" ? quotedUnlessPlain(value.toWellFormed()) : jsonOf(value);
}

/** Columns that one text of a list may take, so that a long one does not hide the rest. */
const GIST = 500;

/** Free text on one line, its beginning if it is long; undefined when there is nothing to say. */
export function gistOf(value: unknown): string | undefined {
  const text =
    typeof value === "string"
      ? value
          .slice(0, 4 * GIST)
          .replace(/\s+/g, " ")
          .trim()
      : value;
  const line = valueOf(text);
  return line === undefined ? undefined : fit(line, GIST);
}
