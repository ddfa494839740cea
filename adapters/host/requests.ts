import { z } from "zod";
import { HerdError } from "../../runtime/client.ts";

/** What clients say to a host beside what every herd is told, checked at the edge. */

const text = z.string().min(1);
const usage = z.object({ inputTokens: z.number(), outputTokens: z.number(), costUsd: z.number() }).partial();
const contextUsage = z.object({ tokens: z.number(), contextWindow: z.number(), percent: z.number().nullable() });
const outcome = z.union([
  z.strictObject({
    status: z.literal("completed"),
    text: z.string(),
    usage: usage.optional(),
    contextUsage: contextUsage.optional(),
  }),
  z.strictObject({
    status: z.literal("failed"),
    error: z.strictObject({ code: text, message: z.string() }),
    usage: usage.optional(),
    contextUsage: contextUsage.optional(),
  }),
]);

export const RootHere = z.strictObject({
  cwd: text,
  trusted: z.boolean(),
  model: text.optional(),
  thinking: text.optional(),
  pi: z.strictObject({ node: text, cli: text }),
  env: z.record(z.string(), z.string()),
  dialogs: z.enum(["ask", "deny"]),
  hasUI: z.boolean(),
  sessionFile: text.optional(),
});

export const WorkerHello = z.strictObject({
  sessionId: text,
  sessionFile: text.optional(),
  pid: z.int(),
  model: text.optional(),
  thinking: text.optional(),
  problem: text.optional(),
});

export const WorkerReport = z.strictObject({
  told: z.union([
    z.strictObject({ type: z.enum(["turn.started", "turn.ended", "activity"]) }),
    z.strictObject({ type: z.literal("blocked"), diagnostic: text }),
    z.strictObject({ type: z.literal("delivered"), orderId: text }),
    z.strictObject({ type: z.literal("settled"), outcome }),
  ]),
  requestId: text.optional(),
  /** The order that began the turn. */
  orderId: text.optional(),
});

export const WorkerAsk = z.strictObject({
  id: text,
  request: z.unknown(),
  batch: z.array(z.string()),
  requestId: text.optional(),
});

export const WorkerSubagent = z.strictObject({ id: text, request: z.unknown() });

export const DialogAnswerSays = z.strictObject({
  /** The dialog's id, or the worker's label. */
  dialog: text,
  answer: z.union([
    z.string(),
    z.strictObject({ value: z.string() }),
    z.strictObject({ confirmed: z.boolean() }),
    z.strictObject({ cancelled: z.literal(true) }),
  ]),
});

/**
 * What a client says, of the type that the schema describes: in JSON nothing is there and undefined.
 * @throws HerdError `invalid_field` naming every field and its rule.
 */
export function parsed<Said>(operation: string, schema: z.ZodType, says: unknown): Said {
  const result = schema.safeParse(says);
  if (result.success) return result.data as Said;
  const findings = result.error.issues
    .map(({ path, message }) => `${path.join(".") || "request"}: ${message}`)
    .join("; ");
  throw new HerdError({
    category: "invalid_request",
    reason: "invalid_field",
    message: findings,
    nextAction: "update pi-herd in the older of the two processes",
    operation,
    field: result.error.issues.map(({ path }) => path.join(".") || "request").join(", "),
    rule: findings,
  });
}
