import { z } from "zod";
import { withoutUndefined } from "../errors.ts";
import { badOwner } from "../owners.ts";

/** How much of a message, and of the files that come with it, is taken; what is left out is as the herd has it. */
export interface MessageLimits {
  /** Bytes up to which the text of a file is embedded; 0: never, its path is given. */
  inlineBytes?: number | undefined;
  /** Bytes of a task, question, reply or steer with everything that is embedded; 1,024 to 1,048,576. */
  payloadBytes?: number | undefined;
}

/** Both of them, as they count. */
export interface MessageBytes {
  inlineBytes: number;
  payloadBytes: number;
}

const INLINE_RULE = "must be a whole number of bytes, 0 or more";
const PAYLOAD_RULE = "must be a whole number of bytes from 1024 to 1048576";

export const inlineBytes = z.int(INLINE_RULE).min(0, INLINE_RULE);
export const payloadBytes = z.int(PAYLOAD_RULE).min(1_024, PAYLOAD_RULE).max(1_048_576, PAYLOAD_RULE);

/** The limits of one owner. */
export const messageLimits = z.strictObject(
  { inlineBytes: inlineBytes.optional(), payloadBytes: payloadBytes.optional() },
  { error: ({ code }) => (code === "unrecognized_keys" ? undefined : "must be an object") },
);

/** An owner's limits at the edge. @throws HerdError `bad_owner` naming the field and the rule. */
export function checkedLimits(given: unknown): Partial<MessageBytes> {
  const parsed = messageLimits.safeParse(given);
  if (parsed.success) return withoutUndefined(parsed.data) as Partial<MessageBytes>;
  const [issue] = parsed.error.issues as [z.core.$ZodIssue];
  if (issue.code !== "unrecognized_keys") throw badOwner(["limits", ...issue.path].join("."), issue.message);
  throw badOwner(`limits.${issue.keys.join(", ")}`, "only inlineBytes and payloadBytes are known");
}
