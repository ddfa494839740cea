import { z } from "zod";
import { LABEL_PATTERN } from "../../machines/vocabulary.ts";
import { invalidRequest, type HerdError } from "../errors.ts";

/** The fields of every request, in the order they are reported. */
const FIELDS = [
  "action",
  "agent",
  "label",
  "cwd",
  "task",
  "files",
  "reusable",
  "fork",
  "session",
  "timeoutMs",
  "message",
];
const STRINGS = ["action", "agent", "label", "cwd", "task", "fork", "session", "message"];

/** Which fields each action and variant takes, and which it needs. Source: the `subagent` API. */
const VARIANTS = {
  list: { takes: [], needs: [] },
  fresh: {
    takes: ["agent", "label", "cwd", "task", "files", "reusable", "fork", "timeoutMs"],
    needs: ["agent", "task"],
  },
  historical: {
    takes: ["session", "label", "cwd", "task", "files", "reusable", "timeoutMs"],
    needs: ["session", "task"],
  },
  live: { takes: ["label", "task", "files"], needs: ["label", "task"] },
  steer: { takes: ["label", "message", "files"], needs: ["label", "message"] },
  reply: { takes: ["label", "message", "files"], needs: ["label", "message"] },
  close: { takes: ["label"], needs: ["label"] },
} as const;

/** The actions, with the forms of assign apart. */
export type Variant = keyof typeof VARIANTS;
export type Fields = Record<string, unknown>;

/**
 * Checks a request in the fixed order of the specification; nothing is looked up before it ends.
 * @throws HerdError `invalid_request` that names every offending field at once.
 */
export function parse(request: unknown): { variant: Variant; fields: Fields } {
  const object = z.record(z.string(), z.unknown()).safeParse(request);
  if (!object.success) throw bad("subagent", "request", "The request must be an object");
  const fields = object.data;
  const operation = typeof fields["action"] === "string" ? (fields["action"] as string) : "subagent";
  const unknown = Object.keys(fields).filter((field) => !FIELDS.includes(field));
  if (unknown.length > 0) {
    const next = `leave out ${unknown.join(", ")}; the fields are ${FIELDS.join(", ")}`;
    throw bad(operation, unknown, `Unknown fields: ${unknown.join(", ")}`, next, "unknown_field");
  }
  const blank = STRINGS.filter((field) => {
    const value = fields[field];
    return value !== undefined && (typeof value !== "string" || value.trim() === "");
  });
  if (blank.length > 0) {
    const next = `give ${blank.join(", ")} as text, or leave out what is not needed`;
    throw bad(operation, blank, `Must be non-blank strings: ${blank.join(", ")}`, next);
  }
  const { label, timeoutMs } = fields;
  if (label !== undefined && !LABEL_PATTERN.test(label as string)) {
    throw bad(operation, "label", `The label must match ${LABEL_PATTERN.source}`);
  }
  if (
    timeoutMs !== undefined &&
    !(Number.isInteger(timeoutMs) && Number(timeoutMs) >= 5_001 && Number(timeoutMs) <= 300_000)
  ) {
    throw bad(operation, "timeoutMs", "timeoutMs must be an integer from 5001 to 300000");
  }
  const variant = variantOf(fields, operation);
  const { takes, needs } = VARIANTS[variant] as { takes: readonly string[]; needs: readonly string[] };
  const given = Object.keys(fields).filter((field) => field !== "action" && fields[field] !== undefined);
  const offending = given.filter((field) => !takes.includes(field));
  if (offending.length > 0) {
    const allowed = takes.length > 0 ? `allowed are ${takes.join(", ")}` : "no other field is allowed";
    const message = `${nameOf(variant)} does not take ${offending.join(", ")}; ${allowed}`;
    throw bad(operation, offending, message, `leave out ${offending.join(", ")}`);
  }
  const missing = needs.filter((field) => fields[field] === undefined);
  if (missing.length > 0) {
    throw bad(operation, missing, `${nameOf(variant)} needs ${missing.join(", ")}`, `give ${missing.join(", ")}`);
  }
  checkShapes(fields, operation);
  return { variant, fields };
}

function variantOf(fields: Fields, operation: string): Variant {
  const { action } = fields;
  if (action === "list" || action === "steer" || action === "reply" || action === "close") return action;
  if (action !== "assign") {
    throw bad(
      operation,
      "action",
      action === undefined
        ? "The request needs an action: list, assign, steer, reply or close"
        : `The action ${JSON.stringify(action)} is not supported; actions are list, assign, steer, reply, close`,
    );
  }
  if (fields["agent"] !== undefined) return "fresh";
  if (fields["session"] !== undefined) return "historical";
  if (fields["label"] !== undefined) return "live";
  throw bad(operation, "agent", "assign requires exactly one of agent, session or label");
}

function checkShapes({ files, reusable }: Fields, operation: string): void {
  if (
    files !== undefined &&
    !(Array.isArray(files) && files.every((file) => typeof file === "string" && /\S/.test(file)))
  ) {
    throw bad(operation, "files", "files must be a list of non-blank paths");
  }
  if (reusable !== undefined && typeof reusable !== "boolean")
    throw bad(operation, "reusable", "reusable must be true or false");
}

function nameOf(variant: Variant): string {
  return variant === "fresh" || variant === "historical" || variant === "live"
    ? `The ${variant} form of assign`
    : variant;
}

function bad(
  operation: string,
  field: string | readonly string[],
  message: string,
  nextAction?: string,
  reason = "invalid_field",
): HerdError {
  const names = typeof field === "string" ? field : field.join(", ");
  return invalidRequest(operation, reason, message, nextAction ?? `correct ${names}`, { field: names });
}
