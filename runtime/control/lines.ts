import type { Socket } from "node:net";
import {
  AbstractMessageReader,
  AbstractMessageWriter,
  type DataCallback,
  type Disposable,
  type Message,
  type MessageReader,
  type MessageWriter,
} from "vscode-jsonrpc/node";
import { messageOf } from "../errors.ts";
import { MAX_MESSAGE_BYTES, MAX_UNREAD_BYTES } from "./protocol.ts";

const NEWLINE = 0x0a;

/** What came is no message: the connection has no meaning any more. */
export class WireError extends Error {
  override readonly name = "WireError";
}

/**
 * One JSON-RPC message a line, none longer than the limit. The library's own framing lets the other side announce any
 * length and waits for it in memory.
 */
export class LineReader extends AbstractMessageReader implements MessageReader {
  readonly #socket: Socket;
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #broken = false;

  constructor(socket: Socket, limit = MAX_MESSAGE_BYTES) {
    super();
    this.#socket = socket;
    this.#limit = limit;
  }

  listen(callback: DataCallback): Disposable {
    const onData = (chunk: Buffer) => this.#take(chunk, callback);
    this.#socket.on("data", onData);
    this.#socket.on("error", (error) => this.fireError(error));
    this.#socket.on("close", () => this.fireClose());
    return { dispose: () => this.#socket.off("data", onData) };
  }

  #take(chunk: Buffer, callback: DataCallback): void {
    let from = 0;
    while (!this.#broken) {
      const end = chunk.indexOf(NEWLINE, from);
      const part = chunk.subarray(from, end === -1 ? undefined : end);
      if (this.#bytes + part.length > this.#limit) {
        return this.#break(`a message is longer than ${this.#limit} bytes`);
      }
      this.#chunks.push(part);
      this.#bytes += part.length;
      if (end === -1) return;
      this.#line(callback);
      from = end + 1;
    }
  }

  #line(callback: DataCallback): void {
    const line = Buffer.concat(this.#chunks).toString("utf8");
    this.#chunks = [];
    this.#bytes = 0;
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch (error) {
      return this.#break(`a line is not JSON: ${messageOf(error)}`);
    }
    if (!isMessage(message)) return this.#break("a line is not a JSON-RPC 2.0 message");
    callback(message);
  }

  #break(why: string): void {
    this.#broken = true;
    this.#chunks = [];
    this.fireError(new WireError(why));
  }
}

/** Writes what `LineReader` reads. */
export class LineWriter extends AbstractMessageWriter implements MessageWriter {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    socket.on("error", (error) => this.fireError(error));
    socket.on("close", () => this.fireClose());
  }

  async write(message: Message): Promise<void> {
    // A string holds no line end once it is JSON.
    const line = `${JSON.stringify(message)}\n`;
    if (this.#socket.writableLength + line.length > MAX_UNREAD_BYTES) {
      this.#socket.destroy(new WireError("the other side does not read what it asked for"));
    }
    await new Promise<void>((resolve, reject) => {
      this.#socket.write(line, (error) => (error ? reject(error) : resolve()));
    });
  }

  end(): void {
    this.#socket.end();
  }
}

function isMessage(value: unknown): value is Message {
  return typeof value === "object" && value !== null && (value as Message).jsonrpc === "2.0";
}
