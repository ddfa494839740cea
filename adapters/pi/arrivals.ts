import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { HerdError } from "../../runtime/client.ts";
import { herdSaid, keyOf, type HerdDetails } from "./branch.ts";
import type { Outgoing } from "./outbox.ts";

/** Between two looks whether a message that has ended stands in the session: doubling between these, in milliseconds. */
const FIRST_LOOK_MS = 20;
const LONGEST_LOOK_MS = 1_000;

interface Arriving {
  /** Told at once when it stands in the session, before whatever else is said then. */
  stands: (() => void)[];
  promise: Promise<void>;
  resolve(): void;
  reject(error: Error): void;
}

/**
 * Messages on their way into a session, whose senders wait until they are there. One is acknowledged when it stands on the
 * active branch, so that whatever ends before has it given again.
 */
export class Arrivals {
  readonly #ctx: ExtensionContext;
  readonly #put: (message: Outgoing) => void;
  readonly #arriving = new Map<string, Arriving>();
  /** Messages that have ended, and do not stand in the session yet. */
  readonly #ended = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  /** @param put puts a message into the session, sooner or later. */
  constructor(ctx: ExtensionContext, put: (message: Outgoing) => void) {
    this.#ctx = ctx;
    this.#put = put;
  }

  /**
   * Resolves when it stands in the session.
   * @param stands called when it does, before this resolves.
   * @throws Error when the session is left before.
   */
  arrive(outgoing: Outgoing, stands?: () => void): Promise<void> {
    const key = keyOf(outgoing.details);
    const known = this.#arriving.get(key);
    if (known) {
      if (stands) known.stands.push(stands);
      return known.promise;
    }
    if (this.#stands(outgoing.details)) {
      stands?.();
      return Promise.resolve();
    }
    const arriving: Arriving = { stands: stands ? [stands] : [], ...Promise.withResolvers<void>() };
    arriving.promise.catch(() => undefined);
    this.#arriving.set(key, arriving);
    this.#put(outgoing);
    return arriving.promise;
  }

  /** A message has ended. It stands in the session once every extension has had its look at it. */
  ended(details: HerdDetails): void {
    if (!this.#arriving.has(keyOf(details))) return;
    this.#ended.add(keyOf(details));
    this.#lookSoon(0);
  }

  /** What stands in the session by now is acknowledged before whatever else is said. */
  async caughtUp(): Promise<void> {
    if (this.#ended.size === 0) return;
    this.look();
    await new Promise((done) => setImmediate(done));
  }

  #lookSoon(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.look();
      if (this.#ended.size > 0) this.#lookSoon(Math.min(Math.max(2 * ms, FIRST_LOOK_MS), LONGEST_LOOK_MS));
    }, ms).unref();
  }

  #arrived(details: HerdDetails): void {
    const key = keyOf(details);
    this.#ended.delete(key);
    const arriving = this.#arriving.get(key);
    if (arriving === undefined) return;
    this.#arriving.delete(key);
    for (const told of arriving.stands) told();
    arriving.resolve();
  }

  /** Acknowledges everything that stands on the active branch by now. */
  look(): void {
    if (this.#arriving.size === 0) return;
    for (const details of herdSaid(this.#ctx)) this.#arrived(details);
  }

  /** The session is left: what has not arrived goes to the next one that has its id. */
  close(): void {
    for (const { reject } of this.#arriving.values()) reject(left());
    this.#arriving.clear();
    this.#ended.clear();
    clearTimeout(this.#timer);
  }

  #stands(details: HerdDetails): boolean {
    const key = keyOf(details);
    return herdSaid(this.#ctx).some((said) => keyOf(said) === key);
  }
}

function left(): HerdError {
  return new HerdError({
    category: "worker_busy",
    reason: "detached",
    message: "The session was left before the message stood in it",
    nextAction: "nothing: it is given again when the session is open",
    operation: "receive",
  });
}
