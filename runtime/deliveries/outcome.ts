import type { Outcome } from "../../machines/vocabulary.ts";

/** The largest result that is kept, in bytes. Source: specification of the record's hard ceilings. */
export const RESULT_LIMIT = 4 * 1024 * 1024;

/** An outcome that fits into its record: one that does not becomes the failure `result_too_large`. */
export function boundedOutcome(outcome: Outcome): Outcome {
  if (outcome.status !== "completed") return outcome;
  // Text of fewer characters than a quarter of the limit cannot exceed it in bytes.
  if (outcome.text.length <= RESULT_LIMIT / 4) return outcome;
  const bytes = Buffer.byteLength(outcome.text);
  if (bytes <= RESULT_LIMIT) return outcome;
  return {
    status: "failed",
    error: {
      code: "result_too_large",
      message: `The result is ${bytes} bytes, the limit is ${RESULT_LIMIT}. Have the worker write it to a file and return the path.`,
    },
    ...(outcome.usage && { usage: outcome.usage }),
    ...(outcome.contextUsage && { contextUsage: outcome.contextUsage }),
  };
}
