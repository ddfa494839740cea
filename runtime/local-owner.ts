import type { Owner, OwnerOptions } from "./api.ts";
import type { ParkedEntry } from "./asks/entry.ts";
import { parkedOn } from "./asks/parked.ts";
import { reply, replyFields } from "./asks/reply.ts";
import type { ReplyReceipt } from "./asks/question.ts";
import { parkedTool } from "./asks/tools.ts";
import type { ParkedToolName } from "./asks/visit-shapes.ts";
import type { Assignment } from "./deliveries/assignment.ts";
import type { HerdError } from "./errors.ts";
import { checkedLimits } from "./evidence/limits.ts";
import type { HerdEngine } from "./herd-engine.ts";
import { ownerRef, ownerKeyOf, type Subject } from "./owners.ts";
import type { Controller } from "./subagent/acceptance.ts";
import { assign } from "./subagent/assign.ts";
import { close, closeFields } from "./subagent/close.ts";
import { list } from "./subagent/list.ts";
import type { AssignRequest, CloseReceipt, Listing, SteerReceipt } from "./subagent/shapes.ts";
import { steer } from "./subagent/steer.ts";
import type { ToolCall } from "./subagent/shapes.ts";
import { subagent } from "./subagent/tools.ts";

/** Says whether a herd takes a command now. */
export interface Gate {
  /** @throws HerdError `herd_closed`. */
  assertReadable(operation: string): void;
  /** @throws HerdError `herd_closed` or `passive`. */
  assertOpen(operation: string): void;
}

/** What an owner is to the engine. @throws HerdError `bad_owner`. */
export function controllerOf(
  engine: HerdEngine,
  id: string | Subject,
  { workspace, cwd = engine.cwd, limits }: Pick<OwnerOptions, "workspace" | "cwd" | "limits">,
): Controller {
  const owner = ownerRef(id);
  const place = { treeId: ownerKeyOf(owner), owner, workspace: workspace ?? owner.id, cwd, path: "" };
  return limits === undefined ? place : { ...place, limits: checkedLimits(limits) };
}

/** An owner of a herd in this process: each call is one command on its tree. */
export class LocalOwner implements Owner<string> {
  readonly #engine: HerdEngine;
  readonly #gate: Gate;
  readonly #by: Controller;
  readonly #detach: (() => void) | undefined;

  constructor(engine: HerdEngine, gate: Gate, by: Controller, detach?: () => void) {
    this.#engine = engine;
    this.#gate = gate;
    this.#by = by;
    this.#detach = detach;
  }

  async subagent(request: unknown, call?: ToolCall): Promise<any> {
    const reads = (request as { action?: unknown } | undefined)?.action === "list";
    try {
      if (reads) this.#gate.assertReadable("subagent");
      else this.#acts("subagent");
    } catch (error) {
      return { ok: false, error: (error as HerdError).toJSON() };
    }
    return subagent(this.#engine, this.#by, request, call);
  }

  async assign(request: AssignRequest<string>): Promise<Assignment> {
    this.#acts("assign");
    return this.#engine.handle(await assign(this.#engine, this.#by, request));
  }

  async reply(request: Parameters<Owner<string>["reply"]>[0]): Promise<ReplyReceipt> {
    this.#acts("reply");
    const { treeId, cwd, workspace, owner: subject } = this.#by;
    const operation = "reply";
    return reply(this.#engine, {
      ...replyFields(request),
      owner: treeId,
      subject,
      cwd,
      operation,
      treeId,
      path: "",
      workspace,
    });
  }

  async steer(request: Parameters<Owner<string>["steer"]>[0]): Promise<SteerReceipt> {
    this.#acts("steer");
    return steer(this.#engine, this.#by, request);
  }

  async close(request: { label: string }): Promise<CloseReceipt> {
    this.#gate.assertOpen("close");
    return close(this.#engine, { ...this.#by, ...closeFields(request), operation: "close" });
  }

  async list(): Promise<Listing> {
    this.#gate.assertReadable("list");
    return list(this.#engine, this.#by);
  }

  async parked(): Promise<ParkedEntry[]> {
    this.#gate.assertReadable("parked");
    return (await parkedOn(this.#engine, this.#by.owner)).map(({ entry }) => entry);
  }

  /** @param signal aborted when nobody is there any more to hear the answer. */
  async parkedTool(name: ParkedToolName, input: unknown, signal?: AbortSignal): Promise<any> {
    try {
      if (name === "list_parked") this.#gate.assertReadable(name);
      else this.#acts(name);
    } catch (error) {
      return { ok: false, error: (error as HerdError).toJSON() };
    }
    return parkedTool(this.#engine, this.#by.owner, name, input, signal && { signal });
  }

  detach(): void {
    this.#detach?.();
  }

  /** Looking at an owner leaves its limits as they are: whoever only reads may name any owner. */
  #acts(operation: string): void {
    this.#gate.assertOpen(operation);
    this.#engine.limits.note(this.#by);
  }
}
