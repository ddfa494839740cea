import { HerdError, messageOf, type CallOptions, type Connection } from "../../runtime/client.ts";
import { hostCommand } from "../host/herd-command.ts";

/** How long to wait before the next try to connect: doubling between these, in milliseconds. */
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;
/** The same while something speaks against it that does not pass by itself: a person may mend it. */
const MENDED_WAIT_MS = 30_000;
/** How long a call waits for a connection. */
const CALL_WAIT_MS = 30_000;

export interface LinkOptions {
  /** The host's folder. */
  directory: string;
  /** Connects; undefined when nobody is there and nobody is to be started for it. */
  open(): Promise<Connection | undefined>;
  /** Says who this is. What it is called for before this is done waits. */
  greet(connection: Connection): Promise<void>;
  /** Whether to look for a connection when there is none, before anybody calls for something. */
  isNeeded(): boolean;
  /** The connection is gone. */
  lost?(): void;
  /** It cannot connect, and somebody has to do something about it: said once, until it could again or cannot for another reason. */
  failed(message: string): void;
}

/** The connection of a Pi session to its host, which comes back by itself. */
export class Link {
  readonly #options: LinkOptions;
  readonly #closed = new AbortController();
  #connection: Connection | undefined;
  #connecting: Promise<Connection | undefined> | undefined;
  /** Why it cannot connect, once that was said. */
  #said: string | undefined;
  #isTrying = false;

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#connection?.isOpen === true;
  }

  /** Connects, once for all who ask. @throws HerdError why it cannot. */
  connect(): Promise<Connection | undefined> {
    if (this.#connection?.isOpen) return Promise.resolve(this.#connection);
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  /**
   * Makes a call. One whose connection breaks on the way is made again on the next: only for what may be carried out
   * twice, or carries an id.
   * @throws HerdError what it was refused with, or why nobody can be reached.
   */
  async call<Answer>(method: string, says: object, options: CallOptions = {}): Promise<Answer> {
    const until = Date.now() + CALL_WAIT_MS;
    for (;;) {
      try {
        const connection = await orAborted(this.connect(), options.signal);
        if (connection) {
          const answer = await connection.request<Answer>(method, says, options);
          // Its process is just leaving: the next one carries it out.
          if (!isPassingAnswer(answer) || Date.now() >= until) return answer;
        }
      } catch (error) {
        if (!isPassing(error) || this.#closed.signal.aborted || Date.now() >= until) throw error;
      }
      options.signal?.throwIfAborted();
      if (Date.now() >= until || this.#closed.signal.aborted) throw unreachable(method, this.#options.directory);
      await this.#pause(FIRST_WAIT_MS, { ref: true });
    }
  }

  /** Tells something; whether it arrives shows when the connection comes back. */
  tell(method: string, says: object): void {
    if (this.#connection?.isOpen) void this.#connection.request(method, says).catch(() => undefined);
  }

  /** Ends it for good, after what is under way. */
  async close(graceMs: number): Promise<void> {
    this.#closed.abort();
    await this.#connection?.close(graceMs);
  }

  async #connect(): Promise<Connection | undefined> {
    const connection = await this.#options.open();
    if (connection === undefined) return undefined;
    if (this.#closed.signal.aborted) {
      await connection.close(0);
      return undefined;
    }
    try {
      await this.#options.greet(connection);
    } catch (error) {
      await connection.close(0);
      throw error;
    }
    // Closed meanwhile, it must not stay as somebody who hears.
    if (this.#closed.signal.aborted) {
      await connection.close(0);
      return undefined;
    }
    this.#connection = connection;
    this.#said = undefined;
    void connection.ended.then(() => this.#ended(connection));
    return connection;
  }

  #ended(connection: Connection): void {
    if (this.#connection === connection) this.#connection = undefined;
    if (this.#closed.signal.aborted) return;
    this.#options.lost?.();
    if (this.#options.isNeeded()) void this.#keepTrying();
  }

  /** Connects now, or else as soon as it can, where it is needed: why it cannot is said. */
  async reach(): Promise<void> {
    try {
      await this.connect();
    } catch (error) {
      this.sayWhy(error);
      if (this.#options.isNeeded()) void this.#keepTrying();
    }
  }

  /** Connects sooner or later, however long that takes. Why it cannot is said where it does not pass by itself. */
  async #keepTrying(): Promise<void> {
    if (this.#isTrying) return;
    this.#isTrying = true;
    try {
      for (let wait = FIRST_WAIT_MS; ;) {
        await this.#pause(wait, { ref: false });
        if (this.#closed.signal.aborted || this.isOpen) return;
        try {
          await this.connect();
          return;
        } catch (error) {
          const passes = isPassing(error);
          wait = passes ? Math.min(2 * wait, LONGEST_WAIT_MS) : MENDED_WAIT_MS;
          if (!passes) this.sayWhy(error);
        }
      }
    } finally {
      this.#isTrying = false;
    }
  }

  /** Waits until the time is over, or it is closed. @param ref whether this process stays for it. */
  async #pause(ms: number, { ref }: { ref: boolean }): Promise<void> {
    const { signal } = this.#closed;
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    if (!ref) timer.unref();
    const over = () => resolve();
    signal.addEventListener("abort", over);
    await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", over);
  }

  /** Says why it cannot be reached, unless that was said already. */
  sayWhy(error: unknown): void {
    const said = messageOf(error);
    if (this.#said === said) return;
    this.#said = said;
    this.#options.failed(said);
  }
}

/** What is waited for on behalf of somebody who may stop waiting. @throws the signal's reason. */
async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

const PASSING = ["connection_lost", "not_running", "herd_closed", "overloaded"];

/** Whether what a call failed with may be over at the next look. */
export function isPassing(error: unknown): boolean {
  return error instanceof HerdError && PASSING.includes(error.reason);
}

/** The same of the answer to a tool, which tells of errors and throws none. */
function isPassingAnswer(answer: unknown): boolean {
  const { ok, error } = (answer ?? {}) as { ok?: unknown; error?: { reason?: string } };
  return ok === false && PASSING.includes(error?.reason ?? "");
}

function unreachable(operation: string, directory: string): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "not_running",
    message: "The background process of the herd cannot be reached",
    nextAction: `try again; ${hostCommand(directory, ["doctor", "--pi"])} says what is wrong`,
    operation,
  });
}
