import type { Json } from "../../machines/vocabulary.ts";
import { HerdError, internalFailure, messageOf } from "../errors.ts";
import { doorContract, type Place } from "./errors.ts";
import { failed, outOfMemory, tookTooLong, uncompiled } from "./jq-errors.ts";
import { JqThread, JqThreadEnded } from "./jq-thread.ts";
import { NON_FINITE, type JqAnswer, type JqJob } from "./jq-job.ts";
import { copyJson, NotJson } from "./json.ts";

/** A program is handed to jq on its stack, which has to hold more than that. In bytes. */
const MAX_PROGRAM_BYTES = 65_536;
/** How many programs are remembered as compiled. */
const MAX_REMEMBERED = 1_000;

/** How a `Jq` works. */
export interface JqOptions {
  /** How long one evaluation may take, in milliseconds; 2,000 unless set. */
  timeoutMs?: number;
  /** How many threads there may be at once; 2 unless set. What comes beyond them waits its turn. */
  workers?: number;
}

/** What a program is compiled for. */
export interface JqCompilation extends Place {
  /** The names of the variables that it may use, without `$`. */
  variables: readonly string[];
}

/** What a program is evaluated on. */
export interface JqEvaluation extends Place {
  /** What `.` is. */
  input: Json;
  /** The variables by their names, without `$`. */
  variables: Record<string, Json>;
}

/**
 * jq 1.8 in threads of its own, started when they are needed. An idle one does not keep the process alive.
 *
 * Programs see their input and their variables and nothing else: no environment, no files, no further input, and no
 * way to print or to end the process. Evaluations have nothing in common and may run at the same time.
 */
export class Jq {
  readonly #timeoutMs: number;
  readonly #compiled = new Set<string>();
  readonly #threads = new Set<JqThread>();
  readonly #idle: JqThread[] = [];
  readonly #waiting: (() => void)[] = [];
  #free: number;
  #module: unknown;
  #closed = false;

  constructor({ timeoutMs = 2_000, workers = 2 }: JqOptions = {}) {
    this.#timeoutMs = timeoutMs;
    this.#free = workers;
  }

  /**
   * Compiles a program and runs nothing.
   * @throws HerdError `door_contract`, with the rule `undeclared_variable`, `syntax` (both with line and column in the
   * message and in `details`) or `too_long`.
   */
  async compile(program: string, { variables, ...place }: JqCompilation): Promise<void> {
    await this.#perform({ program, variables, compile: true }, place);
    this.#remember(program, variables);
  }

  /**
   * Runs a program, compiled before or not.
   * @returns its one output; null when it has none.
   * @throws HerdError `door_contract` with the rules of `compile`, or `several_values`, `not_finite`, `not_json`,
   * `runtime_error`, `timeout` and `out_of_memory`.
   */
  async evaluate(program: string, { input, variables: values, ...place }: JqEvaluation): Promise<Json> {
    const variables = Object.keys(values);
    const compile = !this.#compiled.has(keyOf(program, variables));
    const document = documentOf(place, input, values);
    const answer = await this.#perform({ program, variables, compile, document }, place);
    if (compile) this.#remember(program, variables);
    return outputOf(place, answer.kind === "ran" ? answer.outputs : "");
  }

  /** Ends every thread at once. What runs or waits is refused as `herd_closed`, and so is what comes later. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const go of this.#waiting.splice(0)) go();
    await Promise.all([...this.#threads].map((thread) => thread.end()));
  }

  async #perform(job: JqJob, place: Place): Promise<JqAnswer> {
    checkJob(place, job);
    const thread = await this.#acquire(place);
    try {
      const answer = await thread.run(job, this.#timeoutMs);
      if (answer.kind === "uncompiled") throw uncompiled(place, job.program, job.variables, answer.stderr);
      if (answer.kind === "failed") throw failed(place, answer.stderr);
      if (answer.kind === "broken") throw outOfMemory(place, answer.why);
      return answer;
    } catch (error) {
      throw error instanceof JqThreadEnded ? this.#refusal(place, error) : error;
    } finally {
      await this.#release(thread);
    }
  }

  /** A thread of one's own, when it is one's turn. */
  async #acquire(place: Place): Promise<JqThread> {
    if (this.#closed) throw closed(place);
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    if (this.#closed) throw closed(place);
    return this.#idle.pop() ?? this.#start();
  }

  #start(): JqThread {
    const thread = new JqThread(this.#module, (module) => (this.#module = module));
    this.#threads.add(thread);
    return thread;
  }

  async #release(thread: JqThread): Promise<void> {
    if (thread.ended) {
      // Only one that is gone makes room for another: there are never more than there may be.
      await thread.end();
      this.#threads.delete(thread);
    } else this.#idle.push(thread);
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }

  #refusal(place: Place, { why, cause }: JqThreadEnded): HerdError {
    if (why === "timeout") return tookTooLong(place, this.#timeoutMs);
    if (why === "out_of_memory") return outOfMemory(place, messageOf(cause));
    if (why === "closed") return closed(place);
    return internalFailure(place.operation, cause ?? new Error("the thread of jq did not start"), {
      field: place.field,
    });
  }

  #remember(program: string, variables: readonly string[]): void {
    if (this.#compiled.size >= MAX_REMEMBERED) this.#compiled.clear();
    this.#compiled.add(keyOf(program, variables));
  }
}

function keyOf(program: string, variables: readonly string[]): string {
  return JSON.stringify([program, ...variables]);
}

/** What jq would cut or read in another way. */
function checkJob(place: Place, { program, variables }: JqJob): void {
  const bytes = Buffer.byteLength(program);
  if (bytes > MAX_PROGRAM_BYTES) {
    const message = `${place.field} has ${bytes} bytes; a program has at most ${MAX_PROGRAM_BYTES}`;
    throw doorContract(place, "too_long", message, "shorten the program, or hand its data in");
  }
  if (program.includes("\0")) {
    throw doorContract(place, "syntax", `${place.field} has a NUL character in it`, "take it out");
  }
  const wrong = variables.find((name) => !/^[A-Za-z_]\w*$/.test(name) || ["ENV", "ARGS", "__loc__"].includes(name));
  if (wrong !== undefined) {
    const message = `${JSON.stringify(wrong)} cannot be the name of a variable in jq`;
    throw doorContract(place, "variable_name", message, "give it another name");
  }
}

function documentOf(place: Place, input: Json, variables: Record<string, Json>): string {
  try {
    return JSON.stringify(copyJson([input, variables]));
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    const message = `What ${place.field} is to work on is no JSON: ${error.message}`;
    throw doorContract(place, "not_json", message, "hand in JSON");
  }
}

function outputOf(place: Place, text: string): Json {
  let outputs: Json;
  try {
    outputs = JSON.parse(text) as Json;
  } catch {
    throw doorContract(place, "not_json", `What ${place.field} yields cannot be read as JSON`, "yield less of it");
  }
  if (outputs === NON_FINITE) {
    const message = `${place.field} yields a number that is infinite or no number`;
    throw doorContract(place, "not_finite", message, "yield numbers that JSON knows");
  }
  const [output = null, ...more] = outputs as Json[];
  if (more.length > 0) {
    const message = `${place.field} yields more than one value`;
    throw doorContract(place, "several_values", message, "put them into one list: [ … ]");
  }
  return output;
}

function closed({ operation }: Place): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "herd_closed",
    message: "Programs are not evaluated any more, because the herd is closed",
    nextAction: "open it again",
    operation,
  });
}
