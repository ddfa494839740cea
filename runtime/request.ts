import type { z, ZodSafeParseResult } from "zod";
import { invalidRequest } from "./errors.ts";

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
