import { realpath } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { resolve } from "node:path";
import { CancellationTokenSource, createMessageConnection, type MessageConnection } from "vscode-jsonrpc/node";
import { HerdError, messageOf } from "../errors.ts";
import { readAddress } from "./address.ts";
import { checkSize, connectionLost, disconnected, fromWire, notRunning, otherVersion } from "./errors.ts";
import { LineReader, LineWriter } from "./lines.ts";
import {
  PROTOCOL,
  type Callbacks,
  type Hears,
  type Method,
  type Notices,
  type Said,
  type Welcome,
} from "./protocol.ts";

/** How long a process that has the store may take to say hello, in milliseconds. */
const HELLO_MS = 10_000;

/** A connection to the process that has a herd open. */
export class Connection {
  /** What the other process said of itself. */
  readonly welcome: Welcome;
  readonly #rpc: MessageConnection;
  readonly #socket: Socket;
  #state: "open" | "closed" | "lost" = "open";
  #why = "it ended";
  readonly #ended: Promise<void>;

  private constructor(socket: Socket, rpc: MessageConnection, welcome: Welcome) {
    this.#socket = socket;
    this.#rpc = rpc;
    this.welcome = welcome;
    this.#ended = new Promise((done) => {
      socket.once("close", () => {
        if (this.#state === "open") this.#state = "lost";
        rpc.dispose();
        done();
      });
    });
    rpc.onError(([error]) => {
      this.#why = messageOf(error);
      socket.destroy();
    });
  }

  /**
   * Connects to whoever has the herd in this folder open.
   * @throws HerdError `not_running`, `control_version`, `connection_lost`.
   */
  static async open(directory: string): Promise<Connection> {
    const folder = resolve(directory);
    const socket = await reach(folder);
    const rpc = createMessageConnection(new LineReader(socket), new LineWriter(socket));
    let why = "it ended";
    rpc.onError(([error]) => {
      why = messageOf(error);
      socket.destroy();
    });
    rpc.onClose(() => rpc.dispose());
    rpc.listen();
    const deadline = setTimeout(() => socket.destroy(new Error("it does not say hello")), HELLO_MS);
    try {
      const welcome: Welcome = await rpc.sendRequest("hello", { protocol: PROTOCOL, pid: process.pid });
      if (welcome?.protocol !== PROTOCOL) throw otherVersion(welcome?.pid, welcome?.protocol, PROTOCOL);
      // A folder that was copied by hand still names the socket of the one that it was copied from.
      if (!(await isSame(welcome.directory, folder))) {
        throw notRunning(folder, `its control socket is that of the herd in ${welcome.directory}`);
      }
      return new Connection(socket, rpc, welcome);
    } catch (error) {
      socket.destroy();
      if (error instanceof HerdError) throw error;
      throw fromWire(error, () => connectionLost("hello", folder, why));
    } finally {
      clearTimeout(deadline);
    }
  }

  /** Resolves when the connection is gone, whoever ended it. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /**
   * Makes a call. An abort stops it where it can still be stopped, and rejects with the signal's reason unless it was
   * carried out.
   * @throws HerdError what the other process refused it with, or `connection_lost`.
   */
  async call<M extends Method>(method: M, says: Said<M>, signal?: AbortSignal): Promise<Hears[M]> {
    signal?.throwIfAborted();
    this.#assertOpen(method);
    checkSize(method, says);
    const source = new CancellationTokenSource();
    const cancel = () => source.cancel();
    signal?.addEventListener("abort", cancel);
    try {
      return await this.#rpc.sendRequest<Hears[M]>(method, says, source.token);
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
    this.#rpc.onRequest(name, async (says: Callbacks[Name]) => {
      await handle(says);
      return null;
    });
  }

  hear<Name extends keyof Notices>(name: Name, handle: (notice: Notices[Name]) => void): void {
    this.#rpc.onNotification(name, handle);
  }

  /** Ends the connection, after what was sent is out. */
  async close(): Promise<void> {
    if (this.#state === "open") {
      this.#state = "closed";
      this.#socket.end();
    }
    await this.#ended;
  }

  #assertOpen(method: string): void {
    if (this.#state !== "open") throw this.gone(method);
  }

  /** Why a call cannot be made any more. */
  gone(method: string): HerdError {
    if (this.#state === "closed") return disconnected(method);
    return connectionLost(method, this.welcome.directory, this.#why);
  }
}

async function isSame(one: string, other: string): Promise<boolean> {
  const real = (path: string) => realpath(path).catch(() => path);
  return (await real(one)) === (await real(other));
}

/** The socket, connected. @throws HerdError `not_running` when nobody listens. */
async function reach(directory: string): Promise<Socket> {
  const path = await readAddress(directory);
  if (path === undefined) throw notRunning(directory, "its folder names no control socket");
  const socket = connect(path);
  try {
    await new Promise<void>((done, failed) => {
      socket.once("connect", done);
      socket.once("error", failed);
    });
  } catch (error) {
    socket.destroy();
    throw notRunning(directory, `nobody answers at its control socket (${messageOf(error)})`);
  }
  return socket;
}
