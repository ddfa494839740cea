import type { Json } from "../../machines/vocabulary.ts";
import { invalidRequest, type HerdError } from "../errors.ts";
import type { Execution } from "./execution.ts";

/** A journalled step's result may be this large, in bytes of JSON. */
const STEP_LIMIT = 1024 * 1024;

/** @throws HerdError `invalid_request` naming the field. */
export function checkStep(name: unknown, { attempts, backoffMs }: { attempts?: number; backoffMs?: number }): void {
  if (typeof name !== "string" || name.trim() === "" || name.length > 512) {
    throw invalidRequest("step", "invalid_field", "name: must be 1 to 512 characters", "name the step", {
      field: "name",
    });
  }
  if (attempts !== undefined && !(Number.isInteger(attempts) && attempts >= 1)) {
    throw invalidRequest(
      "step",
      "invalid_field",
      "attempts: must be a whole number of at least 1",
      "correct attempts",
      {
        field: "attempts",
      },
    );
  }
  if (backoffMs !== undefined && !(backoffMs >= 0)) {
    throw invalidRequest("step", "invalid_field", "backoffMs: must not be negative", "correct backoffMs", {
      field: "backoffMs",
    });
  }
}

/** Runs a step's function, as often as its options allow and the run goes on. */
export async function attempt<T>(
  { engine, signal }: Execution,
  fn: () => T | Promise<T>,
  { attempts = 1, backoffMs = 250 }: { attempts?: number; backoffMs?: number },
): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await fn();
    } catch (error) {
      if (tried < attempts) await engine.clock.pause(backoffMs * 2 ** (tried - 1), signal);
      // Also when it was stopped during the pause: nothing more is done for a run that is over.
      if (tried >= attempts || signal.aborted) throw error;
    }
  }
}

/** What a re-run will get for this value, which the first run gets as well. @throws HerdError `step_not_json`, `step_too_large`. */
export function jsonOf(name: string, value: unknown): Json {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw notJson(name, error);
  }
  if (text === undefined) throw notJson(name, undefined);
  if (Buffer.byteLength(text) > STEP_LIMIT) {
    throw invalidRequest(
      "step",
      "step_too_large",
      `The step ${JSON.stringify(name)} returned ${Buffer.byteLength(text)} bytes of JSON, the limit is ${STEP_LIMIT}`,
      "write it to a file and return the path",
    );
  }
  return typeof value === "object" ? (JSON.parse(text) as Json) : (value as Json);
}

function notJson(name: string, cause: unknown): HerdError {
  return invalidRequest(
    "step",
    "step_not_json",
    `The step ${JSON.stringify(name)} returned something that is not JSON`,
    "return JSON: it is what a re-run gets",
    { cause },
  );
}
