import { realpath } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { CancellationTokenSource, createMessageConnection, type MessageConnection } from "vscode-jsonrpc/node";
import { HerdError, messageOf } from "../errors.ts";
import { readAddress } from "./address.ts";
import { checkSize, connectionLost, disconnected, fromWire, notRunning, otherVersion, silent } from "./errors.ts";
import { LineReader, LineWriter } from "./lines.ts";
import type { Hears, Method, Said } from "./protocol.ts";
import { readHolder } from "../store/holder.ts";
import { PROTOCOL, type Callbacks, type Notices, type Welcome } from "./wire.ts";

/** How long a process that has the store may take to say hello, in milliseconds. */
const HELLO_MS = 10_000;
/** How long the other end may take to hang up too, in milliseconds. */
const LAST_WORDS_MS = 1_000;

export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** The call only waits for something: an abort ends it at once, whatever the other process does. */
  waits?: boolean;
}

/** A connection to the process that has a herd open. */
export class Connection {
  /** What the other process said of itself. */
  readonly welcome: Welcome;
  /** Resolves when the connection is gone, whoever ended it. */
  readonly ended: Promise<void>;
  readonly #link: Link;
  /** What it says of itself. */
  readonly #hello: object;
  /** Handlers of ours that the other process waits for. */
  readonly #answering = new Set<Promise<unknown>>();
  #state: "open" | "closing" | "closed" | "lost" = "open";

  private constructor(link: Link, welcome: Welcome, hello: object) {
    this.#link = link;
    this.#hello = hello;
    this.welcome = welcome;
    this.ended = link.ended.then(() => {
      this.#state = this.#state === "open" ? "lost" : "closed";
    });
  }

  /**
   * Connects to whoever has the herd in this folder open.
   * @param as what is told of this client: the token that lets it in, that of its user unless set, and its version.
   * @throws HerdError `not_running`, also when that is closing it at the moment, or hangs, `control_version`, `overloaded`, or why
   * it is not let in.
   */
  static async open(directory: string, as: { token?: string; version?: string } = {}): Promise<Connection> {
    const folder = resolve(directory);
    const { link, token } = await reach(folder);
    const says = { protocol: PROTOCOL, pid: process.pid, ...(token !== undefined && { token }), ...as };
    let isLate = false;
    const deadline = setTimeout(() => {
      isLate = true;
      link.drop("it does not answer");
    }, HELLO_MS);
    try {
      const welcome: Welcome = await link.rpc.sendRequest("hello", says);
      if (welcome?.protocol !== PROTOCOL) throw otherVersion(welcome?.pid, welcome?.protocol, PROTOCOL);
      // A folder that was copied by hand still names the socket of the one that it was copied from.
      if (!(await isSame(welcome.directory, folder))) {
        throw notRunning(folder, `its control socket is that of the herd in ${welcome.directory}`);
      }
      const { pid, status } = welcome;
      if (status !== "open" && status !== "fenced") throw notRunning(folder, `process ${pid} is closing it`);
      // Nothing of it can have been used yet.
      if (link.socket.destroyed) throw notRunning(folder, `process ${pid} hung up`);
      return new Connection(link, welcome, says);
    } catch (error) {
      link.socket.destroy();
      if (error instanceof HerdError) throw error;
      if (isLate) throw silent(folder, (await readHolder(folder))?.pid);
      throw fromWire(error, () => notRunning(folder, `whoever listens at its control socket hung up (${link.why})`));
    } finally {
      clearTimeout(deadline);
    }
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /**
   * Makes a call. An abort stops it where it can still be stopped, and rejects with the signal's reason unless it was
   * carried out.
   * @throws HerdError what the other process refused it with, or `connection_lost`.
   */
  async call<M extends Method>(method: M, says: Said<M>, options?: CallOptions): Promise<Hears[M]> {
    return this.request(method, says, options);
  }

  /** The same for what the herd's program offers besides. */
  async request<Answer>(method: string, says: object, { signal, waits = false }: CallOptions = {}): Promise<Answer> {
    signal?.throwIfAborted();
    if (this.#state !== "open") throw this.gone(method);
    checkSize(method, says);
    const source = new CancellationTokenSource();
    const { promise: aborted, reject } = Promise.withResolvers<never>();
    aborted.catch(() => undefined);
    const cancel = () => {
      source.cancel();
      if (waits) reject(signal?.reason);
    };
    signal?.addEventListener("abort", cancel);
    try {
      return await Promise.race([this.#link.rpc.sendRequest<Answer>(method, says, source.token), aborted]);
    } catch (error) {
      signal?.throwIfAborted();
      throw fromWire(error, () => this.gone(method));
    } finally {
      signal?.removeEventListener("abort", cancel);
      source.dispose();
    }
  }

  /** What the other process calls here; throwing tells it that the call failed. */
  answer<Name extends keyof Callbacks>(name: Name, handle: (says: Callbacks[Name]) => Promise<void>): void {
    this.serve<Callbacks[Name]>(name, handle);
  }

  /** The same for what the herd's program calls. */
  serve<Says>(name: string, handle: (says: Says) => Promise<void>): void {
    this.#link.rpc.onRequest(name, async (says: Says) => {
      if (this.#state !== "open") throw this.gone(name);
      const answering = handle(says);
      this.#answering.add(answering);
      try {
        await answering;
      } finally {
        this.#answering.delete(answering);
      }
      return null;
    });
  }

  hear<Name extends keyof Notices>(name: Name, handle: (notice: Notices[Name]) => void): void {
    this.listen<Notices[Name]>(name, handle);
  }

  /** The same for what the herd's program tells. */
  listen<Notice>(name: string, handle: (notice: Notice) => void): void {
    this.#link.rpc.onNotification(name, handle);
  }

  /**
   * Ends the connection, after handlers under way are over and what they came to is told: an acknowledgement that was
   * due is not lost. What takes longer than `graceMs` is cut off.
   */
  async close(graceMs: number): Promise<void> {
    if (this.#state === "open") {
      this.#state = "closing";
      const grace = new AbortController();
      await Promise.race([
        this.#finish().catch(() => undefined),
        pause(graceMs, undefined, { signal: grace.signal }).catch(() => undefined),
        this.ended,
      ]);
      grace.abort();
      this.#link.socket.end();
      const deadline = setTimeout(() => this.#link.socket.destroy(), LAST_WORDS_MS);
      await this.ended.finally(() => clearTimeout(deadline));
    }
    await this.ended;
  }

  /** Why a call cannot be made any more. */
  gone(method: string): HerdError {
    if (this.#state === "closing" || this.#state === "closed") return disconnected(method);
    return connectionLost(method, this.welcome.directory, this.#link.why);
  }

  /** Our answers are written before a call, so once that is answered they have been read. */
  async #finish(): Promise<void> {
    while (this.#answering.size > 0) await Promise.allSettled([...this.#answering]);
    await new Promise((done) => setImmediate(done));
    await this.#link.rpc.sendRequest("hello", this.#hello);
  }
}

/** A socket that speaks JSON-RPC, and why it ended once it did. */
class Link {
  readonly socket: Socket;
  readonly rpc: MessageConnection;
  readonly ended: Promise<void>;
  why = "it ended";

  constructor(socket: Socket) {
    this.socket = socket;
    this.rpc = createMessageConnection(new LineReader(socket), new LineWriter(socket));
    this.rpc.onError(([error]) => this.drop(messageOf(error)));
    this.ended = new Promise((done) => {
      socket.once("close", () => {
        this.rpc.dispose();
        done();
      });
    });
    this.rpc.listen();
  }

  drop(why: string): void {
    this.why = why;
    this.socket.destroy();
  }
}

async function isSame(one: string, other: string): Promise<boolean> {
  const real = (path: string) => realpath(path).catch(() => path);
  return (await real(one)) === (await real(other));
}

/** The socket, connected. @throws HerdError `not_running` when nobody listens. */
async function reach(directory: string): Promise<{ link: Link; token: string | undefined }> {
  const address = await readAddress(directory);
  if (address === undefined) throw notRunning(directory, "its folder names no control socket");
  const socket = connect(address.path);
  try {
    await new Promise<void>((done, failed) => {
      socket.once("connect", done);
      socket.once("error", failed);
    });
  } catch (error) {
    socket.destroy();
    throw notRunning(directory, `nobody answers at its control socket (${messageOf(error)})`);
  }
  return { link: new Link(socket), token: address.token };
}
