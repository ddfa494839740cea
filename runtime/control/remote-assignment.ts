import { eventsOf, type Assignment, type AssignmentStatus, type OwnerEvent } from "../deliveries/assignment.ts";
import type { Result } from "../deliveries/result.ts";
import type { HandleWire } from "./protocol.ts";
import type { Link } from "./link.ts";

/** The handle of an assignment in another process. A result is acknowledged once it is here, never on its way. */
export class RemoteAssignment implements Assignment {
  readonly requestId: string;
  readonly label: string;
  readonly sessionId: string;
  readonly #herd: Link;
  readonly #cwd: string;
  readonly #seen = new Set<string>();

  /** @param cwd where the files of replies are looked up. */
  constructor(herd: Link, { requestId, label, sessionId }: HandleWire, cwd: string) {
    this.#cwd = cwd;
    this.#herd = herd;
    this.requestId = requestId;
    this.label = label;
    this.sessionId = sessionId;
  }

  async status({ acknowledge = true }: { acknowledge?: boolean } = {}): Promise<AssignmentStatus> {
    const { requestId } = this;
    const told = (await this.#herd.connection.call("assignment/status", { requestId })) as AssignmentStatus;
    if (told.result && acknowledge) this.#returned(told.result);
    return told.question ? { ...told, question: this.#herd.question(told.question, this.#cwd) } : told;
  }

  async next({ signal }: { signal?: AbortSignal } = {}): Promise<OwnerEvent> {
    const says = { requestId: this.requestId, seen: [...this.#seen] };
    const event = (await this.#herd.connection.call("assignment/next", says, { signal, waits: true })) as OwnerEvent;
    if (event.type === "result") {
      this.#returned(event.result);
      return event;
    }
    this.#seen.add(event.question.askId);
    return { type: "question", question: this.#herd.question(event.question, this.#cwd) };
  }

  async result({ signal }: { signal?: AbortSignal } = {}): Promise<Result> {
    const { requestId } = this;
    const result = (await this.#herd.connection.call(
      "assignment/result",
      { requestId },
      { signal, waits: true },
    )) as Result;
    this.#returned(result);
    return result;
  }

  [Symbol.asyncIterator](): AsyncIterator<OwnerEvent> {
    return eventsOf(this);
  }

  #returned({ deliveryId }: Result): void {
    if (deliveryId === "") return;
    const { requestId } = this;
    this.#herd.inBackground(this.#herd.connection.call("assignment/returned", { requestId, deliveryId }));
  }
}
