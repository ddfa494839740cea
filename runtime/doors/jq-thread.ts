import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { JqAnswer, JqJob, JqStarted, JqThreadData } from "./jq-job.ts";

/** Beside this file and with its ending: TypeScript in the repository, JavaScript where it is compiled. */
const WORKER_FILE = new URL(`./jq-worker${extname(import.meta.url)}`, import.meta.url);
/** How long a thread may take to load jq before it counts as broken, in milliseconds. */
const START_MS = 30_000;
/** The thread's own heap, in megabytes. jq's memory is not in it; the package bounds that to 256 MiB. */
const HEAP_MB = 128;

/** Why a thread ended before its answer. */
export type JqEnd = "timeout" | "out_of_memory" | "closed" | "failed";

/** A thread ended and the job with it. `cause` is what the thread threw, if it did. */
export class JqThreadEnded extends Error {
  override readonly name = "JqThreadEnded";
  readonly why: JqEnd;

  constructor(why: JqEnd, cause?: unknown) {
    super(`the jq thread ended: ${why}`, { cause });
    this.why = why;
  }
}

/** A thread of jq, seen from outside. It keeps the process alive while it works and not otherwise. */
export class JqThread {
  readonly #worker: Worker;
  readonly #onModule: (module: unknown) => void;
  #started = false;
  #end: { error: JqThreadEnded; gone: Promise<unknown> } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #job: { timeoutMs: number; resolve(answer: JqAnswer): void; reject(error: Error): void } | undefined;

  /**
   * Starts the thread.
   * @param module the compiled module, if there is one yet.
   * @param onModule is told the compiled module once the thread has it.
   */
  constructor(module: unknown, onModule: (module: unknown) => void) {
    this.#onModule = onModule;
    this.#worker = new Worker(WORKER_FILE, {
      workerData: { module } satisfies JqThreadData,
      // Nothing of the process is for a program to see. What jq prints when it aborts is for nobody, and it is not
      // read either: a thread's output that is read keeps the process alive.
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    });
    this.#worker.on("message", (message: JqStarted | JqAnswer) => this.#receive(message));
    this.#worker.on("error", (error: Error & { code?: string }) =>
      this.#fail(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? "out_of_memory" : "failed", error),
    );
    this.#worker.on("exit", () => this.#fail("failed"));
    this.#worker.unref();
  }

  /** Whether it cannot take another job. */
  get ended(): boolean {
    return this.#end !== undefined;
  }

  /**
   * Does a job; one at a time.
   * @param timeoutMs how long it may take once the thread has started, in milliseconds; then the thread is ended.
   * @throws JqThreadEnded when the thread ends before its answer.
   */
  run(job: JqJob, timeoutMs: number): Promise<JqAnswer> {
    if (this.#end) return Promise.reject(this.#end.error);
    return new Promise((resolve, reject) => {
      this.#job = { timeoutMs, resolve, reject };
      this.#worker.ref();
      this.#worker.postMessage(job);
      this.#watch(this.#started ? timeoutMs : START_MS);
    });
  }

  /** Ends it at once, also in the middle of a job, and waits until it is gone. */
  async end(why: JqEnd = "closed"): Promise<void> {
    this.#fail(why);
    await this.#end?.gone;
  }

  #receive(message: JqStarted | JqAnswer): void {
    if (this.#end) return;
    if (message.kind === "started") {
      this.#started = true;
      this.#onModule(message.module);
      if (this.#job) this.#watch(this.#job.timeoutMs);
      return;
    }
    const job = this.#settle();
    if (message.spent) this.#terminate(new JqThreadEnded("failed"));
    else this.#worker.unref();
    job?.resolve(message);
  }

  #watch(ms: number): void {
    clearTimeout(this.#timer);
    const job = this.#job;
    this.#timer = setTimeout(() => {
      // Where this process was busy longer than that, the answer may be here already, behind this timer.
      setImmediate(() => {
        if (job !== undefined && job === this.#job) this.#fail(this.#started ? "timeout" : "failed");
      });
    }, ms);
  }

  #settle() {
    clearTimeout(this.#timer);
    const job = this.#job;
    this.#job = undefined;
    return job;
  }

  #fail(why: JqEnd, cause?: unknown): void {
    const job = this.#settle();
    const error = new JqThreadEnded(why, cause);
    this.#terminate(error);
    job?.reject(error);
  }

  #terminate(error: JqThreadEnded): void {
    if (this.#end) return;
    // Somebody waits for it to be gone.
    this.#worker.ref();
    this.#end = { error, gone: this.#worker.terminate() };
  }
}
