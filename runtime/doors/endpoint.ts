import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { finished } from "node:stream/promises";
import { HerdError, invalidRequest, messageOf } from "../errors.ts";
import { collect, MAX_BODY_BYTES, tooLarge } from "./body.ts";

const OPERATION = "listen";
const HOST = "127.0.0.1";
/** What a path is read against; the address that a client used is in the header `host`. */
const ORIGIN = `http://${HOST}`;
const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** What an endpoint is to listen to. */
export interface ListenOptions {
  /** 0 for any that is free. */
  port: number;
  /** The one path that is answered, from its slash on. */
  path: string;
  /** Gives the answer to a request whose body has come whole. What it throws is answered with 500. */
  handle(request: Request): Promise<Response>;
  /** What a body may have, in bytes; 1 MiB unless set. */
  maxBodyBytes?: number;
  /** How long a request may take to come whole, in milliseconds; 10,000 unless set. */
  requestMs?: number;
}

/** An endpoint that listens. It keeps the process alive. */
export interface Endpoint {
  /** Where it is, with the port that it has got. */
  readonly url: string;
  /**
   * Listens no more, waits for the answers that are under way, and drops every other connection.
   * @param graceMs how long it waits for these, in milliseconds; 10,000 unless set.
   */
  close(graceMs?: number): Promise<void>;
}

/**
 * Listens for POST requests to one path, on this machine alone.
 *
 * A page in a browser on this machine is not this machine: a request for another host than the loopback ones is
 * refused, also where a foreign name leads here, and so is one that a page from elsewhere sends.
 * @throws HerdError `port_unavailable` when the port is taken or not allowed, `invalid_field` that names `port` or
 * `path`.
 */
export async function listen(options: ListenOptions): Promise<Endpoint> {
  checkOptions(options);
  const endpoint = new HttpEndpoint(options);
  await endpoint.listen(options.port);
  return endpoint;
}

class HttpEndpoint implements Endpoint {
  readonly #server: Server;
  readonly #options: ListenOptions;
  /** The answers that are under way: their requests have come whole. */
  readonly #answers = new Set<Promise<void>>();
  #url = "";
  #closed: Promise<void> | undefined;

  constructor(options: ListenOptions) {
    this.#options = options;
    const { requestMs = 10_000 } = options;
    const limits = {
      headersTimeout: requestMs,
      requestTimeout: requestMs,
      // How often it is looked who has been too slow.
      connectionsCheckingInterval: Math.min(requestMs, 1_000),
    };
    this.#server = createServer(limits, (incoming, outgoing) => void this.#receive(incoming, outgoing));
  }

  get url(): string {
    return this.#url;
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", (error) => reject(portUnavailable(port, error)));
      this.#server.listen(port, HOST, resolve);
    });
    this.#url = `http://${HOST}:${(this.#server.address() as AddressInfo).port}${this.#options.path}`;
  }

  close(graceMs = 10_000): Promise<void> {
    this.#closed ??= this.#close(graceMs);
    return this.#closed;
  }

  async #close(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const grace = new AbortController();
    const over = pause(graceMs, undefined, { signal: grace.signal }).catch(() => undefined);
    await Promise.race([this.#answered(), over]);
    grace.abort();
    // What is left is idle, has not sent its request, or takes too long.
    this.#server.closeAllConnections();
    await closed;
  }

  async #answered(): Promise<void> {
    while (this.#answers.size > 0) await Promise.allSettled(this.#answers);
  }

  async #receive(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { path, handle, maxBodyBytes = MAX_BODY_BYTES } = this.#options;
    const refusal = refusalOf(incoming, path);
    if (refusal) return send(outgoing, await whole(refusal), true);
    let body: Uint8Array<ArrayBuffer>;
    try {
      body = await bodyOf(incoming, maxBodyBytes);
    } catch (error) {
      // Otherwise the client is gone, or was too slow and is told so already.
      if (error instanceof HerdError) await send(outgoing, await whole(failure(error, 413)), true);
      return;
    }
    // A connection that was open before the endpoint closed may bring another request.
    if (this.#closed) return send(outgoing, await whole(text(503, "closing")), true);
    const answered = respond(outgoing, () => handle(requestOf(incoming, body)));
    this.#answers.add(answered);
    await answered;
    this.#answers.delete(answered);
  }
}

function checkOptions({ port, path }: ListenOptions): void {
  const refuse = (field: string, rule: string) =>
    invalidRequest(OPERATION, "invalid_field", `${field}: ${rule}`, `correct ${field}`, { field, rule });
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw refuse("port", "a number from 0 to 65535");
  if (typeof path !== "string" || !path.startsWith("/") || URL.parse(path, ORIGIN)?.pathname !== path) {
    throw refuse("path", "the path of a URL from its slash on, without a query");
  }
}

/** Why a request is not read at all, as its answer. */
function refusalOf({ headers, url = "", method }: IncomingMessage, path: string): Response | undefined {
  if (!isLoopback(`http://${headers.host ?? ""}`)) return text(403, "this is for 127.0.0.1 and localhost alone");
  if (headers.origin !== undefined && !isLoopback(headers.origin)) return text(403, "this is not for pages elsewhere");
  if (URL.parse(url, ORIGIN)?.pathname !== path) return text(404, "nothing is here");
  if (method !== "POST") return text(405, "this takes POST", { allow: "POST" });
  return undefined;
}

function isLoopback(url: string): boolean {
  return LOOPBACK.has(URL.parse(url)?.hostname ?? "");
}

/** @throws HerdError `too_large`; what the connection throws when it ends before the body. */
async function bodyOf(incoming: IncomingMessage, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  if (Number(incoming.headers["content-length"] ?? 0) > limit) throw tooLarge(limit);
  // The connection is still needed for the answer.
  return collect(incoming.iterator({ destroyOnReturn: false }), limit);
}

function requestOf({ headersDistinct, url = "" }: IncomingMessage, body: Uint8Array<ArrayBuffer>): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  return new Request(new URL(url, ORIGIN), { method: "POST", headers, body });
}

async function respond(outgoing: ServerResponse, handle: () => Promise<Response>): Promise<void> {
  let answer: Answer;
  try {
    answer = await whole(await handle());
  } catch (error) {
    answer = await whole(failure(error instanceof HerdError ? error : doorFailed(error), 500));
  }
  await send(outgoing, answer);
}

/** An answer that can be sent without anything going wrong on its side. */
interface Answer {
  status: number;
  headers: Headers;
  body: Buffer;
}

async function whole(response: Response): Promise<Answer> {
  const { status, headers } = response;
  // What `Response.error()` gives is for the inside of a browser.
  if (status < 200) throw new Error(`the answer has the status ${status}`);
  return { status, headers, body: Buffer.from(await response.arrayBuffer()) };
}

/** Sends an answer. It resolves when that is written or the client is gone; with `last` the connection ends. */
async function send(outgoing: ServerResponse, { status, headers, body }: Answer, last = false): Promise<void> {
  if (last) outgoing.setHeader("connection", "close");
  outgoing.setHeaders(headers);
  outgoing.setHeader("content-length", body.length);
  outgoing.writeHead(status).end(body);
  await finished(outgoing).catch(() => undefined);
}

function text(status: number, words: string, headers: Record<string, string> = {}): Response {
  return new Response(`${words}\n`, { status, headers: { "content-type": "text/plain", ...headers } });
}

function failure(error: HerdError, status: number): Response {
  return Response.json({ ok: false, error }, { status });
}

function doorFailed(cause: unknown): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "door_failed",
    message: `What answers here failed: ${messageOf(cause)}`,
    nextAction: "look at the cause; whether anything was done is not known",
    operation: OPERATION,
    cause,
  });
}

function portUnavailable(port: number, cause: Error): HerdError {
  return invalidRequest(
    OPERATION,
    "port_unavailable",
    `Port ${port} cannot be listened to: ${cause.message}`,
    "name another port, or 0 for any that is free",
    { field: "port", cause },
  );
}
