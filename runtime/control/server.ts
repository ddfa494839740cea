import { once } from "node:events";
import { chmod } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { messageOf } from "../errors.ts";
import { isPipe, makeAddresses, publish, removeAddress, removeSocket } from "./address.ts";
import type { ControlHost } from "./host.ts";
import { Session } from "./session.ts";
import { packageVersion } from "./version.ts";

/** Connections at once: far more than anybody needs, far fewer than a process has descriptors. */
const MAX_CONNECTIONS = 256;

/**
 * The private socket of an open herd, through which commands, pages and other programs reach it. It listens on a Unix
 * socket (0600 in a 0700 folder) or a Windows pipe, never on a network, and keeps no process alive.
 */
export class Control {
  readonly #host: ControlHost;
  readonly #sessions = new Set<Session>();
  readonly #stopLeaving: () => void;
  #server: Server | undefined;

  private constructor(host: ControlHost) {
    this.#host = host;
    this.#stopLeaving = host.whenLeaving(() => this.tellStatus());
  }

  /**
   * Begins to listen for the herd that has this store's lock. A herd that cannot listen works all the same: why it
   * cannot is one process warning.
   */
  static async open(host: ControlHost): Promise<Control> {
    const control = new Control(host);
    try {
      await control.#listen();
    } catch (error) {
      const why = `The herd in ${host.directory} cannot be reached by other processes: ${messageOf(error)}`;
      process.emitWarning(why, { type: "HerdControlWarning" });
    }
    return control;
  }

  /** Says hello no more, and ends every connection once what was answered is out. */
  async close(): Promise<void> {
    this.tellStatus();
    this.#stopLeaving();
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await removeAddress(this.#host.directory).catch((error: unknown) => {
      process.emitWarning(`The control socket was not removed: ${messageOf(error)}`, { type: "HerdControlWarning" });
    });
    for (const session of this.#sessions) session.close();
    await closed;
  }

  /** Ends as the end of the process would: connections break, the socket stays behind. */
  crash(): void {
    this.#stopLeaving();
    this.#server?.close();
    for (const session of this.#sessions) session.destroy();
  }

  /** Tells every client what has become of the herd. */
  tellStatus(): void {
    for (const session of this.#sessions) session.notify("status", { status: this.#host.status });
  }

  async #listen(): Promise<void> {
    const { directory } = this.#host;
    await removeAddress(directory);
    const version = await packageVersion();
    let failure: unknown;
    for await (const path of makeAddresses(directory)) {
      try {
        this.#server = await this.#listenAt(path, version);
        return await publish(directory, path, this.#host.access.token);
      } catch (error) {
        failure ??= error;
        this.#server?.close();
        this.#server = undefined;
        await removeSocket(directory, path);
      }
    }
    throw failure;
  }

  async #listenAt(path: string, version: string): Promise<Server> {
    const server = createServer((socket) => {
      socket.unref();
      const session = new Session(socket, this.#host, { version, isFull: this.#sessions.size >= MAX_CONNECTIONS });
      this.#sessions.add(session);
      socket.on("close", () => this.#sessions.delete(session));
    });
    await once(server.listen(path), "listening");
    // A client that could not be let in, for want of descriptors perhaps, must not end the program.
    server.on("error", (error) => {
      process.emitWarning(`A client was not let in: ${messageOf(error)}`, { type: "HerdControlWarning" });
    });
    server.unref();
    if (!isPipe(path)) await chmod(path, 0o600);
    return server;
  }
}
