import { HerdError, invalidRequest, type HerdErrorOptions } from "../errors.ts";

/** Which expression of which call is spoken of. */
export interface Place {
  /** What was called: `door`, `schedule`, … */
  operation: string;
  /** The field that holds the expression: `startExpr`, `subject`, … */
  field: string;
}

/** An expression of a door that is wrong, or that did not yield what its field takes. Nothing was changed. */
export function doorContract(
  { operation, field }: Place,
  rule: string,
  message: string,
  nextAction: string,
  more: Partial<HerdErrorOptions> = {},
): HerdError {
  return invalidRequest(operation, "door_contract", message, nextAction, { field, rule, ...more });
}

/** A value as a message shows it: its JSON, cut where it is long. */
export function shown(value: unknown): string {
  return shortened(JSON.stringify(value) ?? String(value));
}

/** A text that a program made, cut where it is long. */
export function shortened(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`;
}
