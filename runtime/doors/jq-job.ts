/** What the threads of jq and the rest of the process say to each other. */

/** What a thread is to do. */
export interface JqJob {
  program: string;
  /** The names of the variables that the program may use. */
  variables: readonly string[];
  /** Whether the program is first to be compiled alone. What was accepted once need not be compiled again. */
  compile: boolean;
  /** The JSON of `[input, { name: value }]`; absent, nothing is run. */
  document?: string;
}

/** How a job ended. A thread with `spent` is not to be used again. */
export type JqAnswer = { spent: boolean } & JqEnding;

/** What came out of it. */
export type JqEnding =
  | { kind: "compiled" }
  /** The JSON of a list of the first two outputs, or `NON_FINITE` as JSON. */
  | { kind: "ran"; outputs: string }
  /** jq refuses the program, or the program failed; `stderr` is what jq says. */
  | { kind: "uncompiled" | "failed"; stderr: string }
  /** jq itself broke down; nothing that it says or will say can be trusted. */
  | { kind: "broken"; why: string };

/** What a thread is given when it starts: the compiled module, if an earlier thread has made it. */
export interface JqThreadData {
  module?: unknown;
}

/** The first message of a thread: it is ready, and this is the compiled module, for the threads to come. */
export interface JqStarted {
  kind: "started";
  module: unknown;
}

/** What stands in place of the outputs when there is a number among them that JSON does not know. */
export const NON_FINITE = "non-finite";
