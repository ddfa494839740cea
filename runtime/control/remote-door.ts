import { CONTRACT_FIELDS, type DoorContract } from "../doors/contract.ts";
import type { Json } from "../../machines/vocabulary.ts";
import type { Door, DoorKind, DoorVisitOptions } from "../doors/shapes.ts";
import { invalidRequest } from "../errors.ts";
import type { Connection } from "./connection.ts";
import type { DoorWire } from "./protocol.ts";

/** A door of a herd in another process. */
export class RemoteDoor implements Door {
  declare readonly name?: string;
  readonly kind: DoorKind;
  declare readonly url?: string;
  readonly #connection: Connection;
  /** What a door without a name is: it is made again with each visit. */
  readonly #unnamed: unknown;

  constructor(connection: Connection, { name, kind, url }: DoorWire, request: unknown) {
    this.#connection = connection;
    this.kind = kind;
    if (name === undefined) this.#unnamed = request;
    else this.name = name;
    if (url !== undefined) this.url = url;
  }

  visit(input: unknown = null, { signal, waits }: DoorVisitOptions = {}): Promise<any> {
    const which = this.name === undefined ? { request: this.#unnamed } : { name: this.name };
    return this.#connection.call(
      "door/visit",
      { ...which, input: input as Json, ...(waits !== undefined && { waits }) },
      { signal, waits: true },
    );
  }

  /** The delivery is checked where the secret is. */
  async fetch(request: Request): Promise<Response> {
    const body = Buffer.from(await request.arrayBuffer()).toString("base64");
    const { method, headers } = request;
    const told = { name: this.name ?? "", method, headers: [...headers], body };
    const { status, headers: given, body: text } = await this.#connection.call("door/fetch", told);
    return new Response(text, { status, headers: given });
  }

  async remove(): Promise<void> {
    if (this.name !== undefined) await this.#connection.call("door/remove", { name: this.name });
  }
}

/** What cannot be said to another process. @throws HerdError `invalid_field`. */
export function checkSendable(request: unknown): void {
  const contract = ((request ?? {}) as { contract?: DoorContract }).contract ?? {};
  const field = CONTRACT_FIELDS.find((name) => typeof contract[name] === "function");
  if (field === undefined) return;
  throw invalidRequest(
    "door",
    "invalid_field",
    `contract.${field}: a function cannot be sent to the process that has the herd open`,
    "write it in jq, or make the door in that program",
    { field: `contract.${field}` },
  );
}
