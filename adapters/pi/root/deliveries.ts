import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { HerdError } from "../../../runtime/client.ts";
import type { Question, Result } from "../../../runtime/index.ts";
import { HOW_TO_ANSWER, herdSaid, keyOf, type HerdDetails } from "../branch.ts";
import type { Outgoing } from "../outbox.ts";

interface Arriving {
  outgoing: Outgoing;
  promise: Promise<void>;
  resolve(): void;
  reject(error: Error): void;
}

/**
 * Questions and results on their way into a root session. One is acknowledged when it stands on the active branch, so that
 * whatever ends before has it given again.
 */
export class RootDeliveries {
  readonly #ctx: ExtensionContext;
  readonly #put: (message: Outgoing) => void;
  readonly #arriving = new Map<string, Arriving>();

  /** @param put puts a message into the session, sooner or later. */
  constructor(ctx: ExtensionContext, put: (message: Outgoing) => void) {
    this.#ctx = ctx;
    this.#put = put;
  }

  /** Resolves when it stands in the session. @throws Error when the session is left before. */
  arrive(outgoing: Outgoing): Promise<void> {
    const key = keyOf(outgoing.details);
    const known = this.#arriving.get(key);
    if (known) return known.promise;
    if (this.#stands(outgoing.details)) return Promise.resolve();
    const arriving: Arriving = { outgoing, ...Promise.withResolvers<void>() };
    arriving.promise.catch(() => undefined);
    this.#arriving.set(key, arriving);
    this.#put(outgoing);
    return arriving.promise;
  }

  /** A message stands in the session. */
  arrived(details: HerdDetails): void {
    const key = keyOf(details);
    this.#arriving.get(key)?.resolve();
    this.#arriving.delete(key);
  }

  /** Acknowledges everything that stands on the active branch by now. */
  look(): void {
    if (this.#arriving.size === 0) return;
    for (const details of herdSaid(this.#ctx)) this.arrived(details);
  }

  /** The session is left: what has not arrived goes to the next one that has its id. */
  close(): void {
    for (const { reject } of this.#arriving.values()) reject(left());
    this.#arriving.clear();
  }

  #stands(details: HerdDetails): boolean {
    const key = keyOf(details);
    return herdSaid(this.#ctx).some((said) => keyOf(said) === key);
  }
}

/** A question as it stands in the session. */
export function questionMessage(
  question: Pick<Question, "askId" | "label" | "envelope"> &
    Partial<Pick<Question, "requestId" | "agent" | "deliveryId">>,
  toolName: string,
): Outgoing {
  const { askId, requestId, label, agent, deliveryId, envelope } = question;
  const how = `${toolName}: ${JSON.stringify({ action: "reply", label, message: "…" })}. The worker waits until then.`;
  return {
    text: `${envelope}${HOW_TO_ANSWER}${how}`,
    as: "followUp",
    details: {
      kind: "question",
      askId,
      label,
      ...(deliveryId !== undefined && { deliveryId }),
      ...(requestId !== undefined && { requestId }),
      ...(agent !== undefined && { agent }),
    },
  };
}

/** A result as it stands in the session. */
export function resultMessage({ deliveryId, requestId, label, agent, status, envelope, details }: Result): Outgoing {
  return {
    text: envelope,
    as: "steer",
    details: { kind: "result", deliveryId, requestId, label, agent, status, result: details },
  };
}

/** The question that a reply by this label means: the last one of it on the active branch. */
export function questionMeant(ctx: ExtensionContext, label: unknown): string | undefined {
  return herdSaid(ctx).findLast((said) => said.kind === "question" && said.label === label)?.askId;
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
