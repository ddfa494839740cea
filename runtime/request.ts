import { z, type ZodSafeParseResult } from "zod";
import type { Json } from "../machines/vocabulary.ts";
import { invalidRequest } from "./errors.ts";

const RULE = "must be JSON, which has no circles";
const anyJson = z.json();

/** Any JSON, copied. What has a circle passes zod's own schema, which names no rule either, and cannot be written. */
export const json = z.unknown().transform((value, context): Json => {
  const parsed = anyJson.safeParse(value);
  if (parsed.success && isWritable(value)) return parsed.data as Json;
  context.addIssue(RULE);
  return z.NEVER;
});

/** Anything that may be JSON: what else is wrong with it is said by whoever knows what it is for. */
export const payload = z.unknown().refine(isWritable, RULE);

function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch (error) {
    if (error instanceof TypeError) return false;
    throw error;
  }
}

/**
 * Parses a request at the edge.
 * @throws HerdError `invalid_request` that names every offending field and its rule; unknown fields first.
 */
export function parseRequest<Schema extends z.ZodType>(
  operation: string,
  schema: Schema,
  input: unknown,
): z.infer<Schema> {
  const parsed = safely(operation, schema, input ?? {});
  if (parsed.success) return parsed.data;
  const unknown = parsed.error.issues.flatMap((issue) => (issue.code === "unrecognized_keys" ? issue.keys : []));
  if (unknown.length > 0) {
    throw invalidRequest(
      operation,
      "unknown_field",
      `Unknown ${unknown.length === 1 ? "field" : "fields"} ${unknown.join(", ")}`,
      "leave them out",
      { field: unknown.join(", ") },
    );
  }
  const findings = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "request"}: ${message}`);
  const field = [...new Set(parsed.error.issues.map(({ path }) => String(path[0] ?? "request")))].join(", ");
  throw invalidRequest(operation, "invalid_field", findings.join("; "), `correct ${field}`, {
    field,
    rule: findings.join("; "),
  });
}

/** What is looked at by recursion, on a stack that ends, may be nested deeper than that. */
function safely<Schema extends z.ZodType>(
  operation: string,
  schema: Schema,
  input: unknown,
): ZodSafeParseResult<z.infer<Schema>> {
  try {
    return schema.safeParse(input);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    const rule = "is nested too deeply, or without an end";
    throw invalidRequest(operation, "invalid_field", `request: ${rule}`, "nest it less", {
      field: "request",
      rule,
      cause,
    });
  }
}
