/** The nine public categories. Source: the `subagent` API, "Errors"; rules of the engine, chapter 8. */
export const CATEGORIES = [
  "not_running_inside_herdr",
  "worker_label_exists",
  "pane_not_ready",
  "target_not_found",
  "target_ambiguous",
  "rollback_failure",
  "worker_busy",
  "invalid_request",
  "internal_failure",
] as const;

/** One of the nine public categories of failure; the page on errors says what each means and what to do. */
export type ErrorCategory = (typeof CATEGORIES)[number];

/** What a `HerdError` is made of. What is unset is absent. */
export interface HerdErrorOptions {
  category: ErrorCategory;
  /** A stable code inside the category, for programs: `already_answered`, `id_reused`, … */
  reason: string;
  /** What happened, in one sentence, without what to do about it. */
  message: string;
  /** What the reader should do now; becomes the end of `message`. */
  nextAction: string;
  operation?: string;
  rule?: string;
  field?: string;
  ids?: Record<string, string>;
  primary?: { category: string; message: string; operation: string };
  cleanup?: { category: string; message: string; operation: string };
  details?: Record<string, unknown>;
  retryAfterMs?: number;
  rollbackOccurred?: boolean;
  retryAttempted?: boolean;
  cause?: unknown;
}

/** Every refusal and failure of the engine. `message` says what happened and ends with the next action. */
export class HerdError extends Error {
  override readonly name = "HerdError";
  readonly category: ErrorCategory;
  /** A stable code inside the category, for programs: `already_answered`, `id_reused`, … */
  readonly reason: string;
  /** What was called: `assign`, `reply`, … */
  declare readonly operation?: string;
  /** The rule that the request breaks. */
  declare readonly rule?: string;
  /** The field of the request that is wrong. */
  declare readonly field?: string;
  /** What it is about, by the kind of id. */
  declare readonly ids?: Record<string, string>;
  /** What the reader should do now. */
  readonly nextAction: string;
  /** What failed first, where cleaning up after it failed as well. */
  declare readonly primary?: NonNullable<HerdErrorOptions["primary"]>;
  /** What failed while cleaning up. */
  declare readonly cleanup?: NonNullable<HerdErrorOptions["cleanup"]>;
  /** More facts, by reason. */
  declare readonly details?: Record<string, unknown>;
  /** When it is worth another try, in milliseconds from now. */
  declare readonly retryAfterMs?: number;
  /** What had been begun was undone. */
  readonly rollbackOccurred: boolean;
  /** The engine tried again before it gave up. */
  readonly retryAttempted: boolean;

  constructor(options: HerdErrorOptions) {
    super(
      `${options.message.replace(/[.\s]*$/, "")}. Next: ${options.nextAction.replace(/[.\s]*$/, "")}.`,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.category = options.category;
    this.reason = options.reason;
    this.nextAction = options.nextAction;
    this.rollbackOccurred = options.rollbackOccurred ?? false;
    this.retryAttempted = options.retryAttempted ?? false;
    const { operation, rule, field, ids, primary, cleanup, details, retryAfterMs } = options;
    // What is not set is absent, also where the error is printed.
    Object.assign(this, withoutUndefined({ operation, rule, field, ids, primary, cleanup, details, retryAfterMs }));
  }

  /** An error that was stored as JSON, as it was. */
  static from(stored: Record<string, unknown>): HerdError {
    const options = stored as unknown as HerdErrorOptions;
    const error = new HerdError(options);
    // The stored message already ends with the next action.
    error.message = options.message;
    return error;
  }

  /** The structured form of the tools: unset optional fields are absent. */
  toJSON(): Record<string, unknown> {
    return withoutUndefined({
      category: this.category,
      reason: this.reason,
      message: this.message,
      operation: this.operation,
      rule: this.rule,
      field: this.field,
      ids: this.ids,
      nextAction: this.nextAction,
      primary: this.primary,
      cleanup: this.cleanup,
      details: this.details,
      retryAfterMs: this.retryAfterMs,
      rollbackOccurred: this.rollbackOccurred,
      retryAttempted: this.retryAttempted,
    });
  }
}

/** A malformed request: nothing was changed. */
export function invalidRequest(
  operation: string,
  reason: string,
  message: string,
  nextAction: string,
  more: Partial<HerdErrorOptions> = {},
): HerdError {
  return new HerdError({ category: "invalid_request", reason, message, nextAction, operation, ...more });
}

/** A fault inside the engine or in what runs in it; `cause` keeps the original. */
export function internalFailure(operation: string, cause: unknown, more: Partial<HerdErrorOptions> = {}): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "undone",
    message: `${operation} failed and was undone: ${messageOf(cause)}`,
    nextAction: "look at the cause, then try again",
    operation,
    rollbackOccurred: true,
    cause,
    ...more,
  });
}

/** The message of anything that was thrown. */
export function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** Drops keys whose value is undefined, so that they are absent in JSON and in objects alike. */
export function withoutUndefined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as T;
}

/** The same with what it was caused by, as far as that says more. */
export function messageWithCause(error: unknown): string {
  const message = messageOf(error);
  const cause = error instanceof Error && error.cause !== undefined ? messageOf(error.cause) : "";
  return cause === "" || message.includes(cause) ? message : `${message}: ${cause}`;
}
