import type { Owner, OwnerOptions } from "../api.ts";
import { HerdError, internalFailure } from "../errors.ts";
import type { ParkedEntry } from "../asks/entry.ts";
import type { ReplyReceipt } from "../asks/question.ts";
import type { ParkedToolName } from "../asks/visit-shapes.ts";
import type { Assignment } from "../deliveries/assignment.ts";
import type { ToolCall } from "../subagent/shapes.ts";
import type { AssignRequest, CloseReceipt, Listing, SteerReceipt } from "../subagent/shapes.ts";
import type { By } from "./protocol.ts";
import type { Link } from "./link.ts";
import { RemoteAssignment } from "./remote-assignment.ts";

/** An owner whose herd is in another process. */
export class RemoteOwner implements Owner<string> {
  readonly #herd: Link;
  readonly #by: By;
  readonly #receiver: number | undefined;
  /** Settles once its receiver is one; what was refused is the answer to every call. */
  readonly #attached: Promise<unknown> | undefined;
  #detached = false;

  constructor(herd: Link, by: By, { onQuestion, onResult, replace = false }: OwnerOptions) {
    this.#herd = herd;
    this.#by = by;
    if (onQuestion === undefined && onResult === undefined) return;
    this.#receiver = herd.attach({ cwd: by.cwd, ...(onQuestion && { onQuestion }), ...(onResult && { onResult }) });
    this.#attached = herd.connection.call("owner/attach", {
      ...by,
      receiver: this.#receiver,
      hearsQuestions: onQuestion !== undefined,
      hearsResults: onResult !== undefined,
      replace,
    });
    herd.inBackground(this.#attached);
  }

  async subagent(request: unknown, call?: ToolCall): Promise<any> {
    try {
      return await this.#call("owner/subagent", { ...this.#by, request, ...(call && { call }) });
    } catch (error) {
      const failure = error instanceof HerdError ? error : internalFailure("subagent", error);
      return { ok: false, error: failure.toJSON() };
    }
  }

  async assign(given: AssignRequest<string>): Promise<Assignment> {
    const { signal, ...request } = given ?? {};
    return new RemoteAssignment(
      this.#herd,
      await this.#call("owner/assign", { ...this.#by, request }, { signal }),
      this.#by.cwd,
    );
  }

  steer(request: { label: string; message: string; files?: string[] }): Promise<SteerReceipt> {
    return this.#call("owner/steer", { ...this.#by, request });
  }

  reply(request: Parameters<Owner<string>["reply"]>[0]): Promise<ReplyReceipt> {
    return this.#call("owner/reply", { ...this.#by, request });
  }

  close(request: { label: string }): Promise<CloseReceipt> {
    return this.#call("owner/close", { ...this.#by, request });
  }

  list(): Promise<Listing> {
    return this.#call("owner/list", this.#by);
  }

  parked(): Promise<ParkedEntry[]> {
    return this.#call("owner/parked", this.#by);
  }

  async parkedTool(name: ParkedToolName, input: unknown): Promise<any> {
    try {
      return await this.#call("owner/parkedTool", { ...this.#by, name, input });
    } catch (error) {
      const failure = error instanceof HerdError ? error : internalFailure(name, error);
      return { ok: false, error: failure.toJSON() };
    }
  }

  detach(): void {
    if (this.#receiver === undefined || this.#detached) return;
    this.#detached = true;
    this.#herd.detach(this.#receiver);
    if (!this.#herd.connection.isOpen) return;
    this.#herd.inBackground(this.#herd.connection.call("owner/detach", { receiver: this.#receiver }));
  }

  readonly #call: Link["connection"]["call"] = async (method, says, options) => {
    if (!this.#detached) await this.#attached;
    return this.#herd.connection.call(method, says, options);
  };
}
