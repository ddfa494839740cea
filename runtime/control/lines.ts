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
import { MAX_MESSAGE_BYTES, MAX_UNREAD_BYTES } from "./wire.ts";

const NEWLINE = 0x0a;
/** How long a side for which too much waits may read nothing, in milliseconds. */
const STALL_MS = 30_000;

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
    try {
      callback(message);
    } catch (error) {
      this.#break(messageOf(error));
    }
  }

  #break(why: string): void {
    this.#broken = true;
    this.#chunks = [];
    this.fireError(new WireError(why));
  }
}

/**
 * Writes what `LineReader` reads, one message after another: whatever is written at once, the other side has the time
 * that it needs to read it. Only one that reads nothing for long while much waits for it is disconnected.
 */
export class LineWriter extends AbstractMessageWriter implements MessageWriter {
  readonly #socket: Socket;
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;
  #stalled: NodeJS.Timeout | undefined;

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    socket.on("error", (error) => this.fireError(error));
    socket.on("close", () => {
      clearTimeout(this.#stalled);
      this.fireClose();
    });
  }

  write(message: Message): Promise<void> {
    // A string holds no line end once it is JSON.
    const line = Buffer.from(`${JSON.stringify(message)}\n`);
    this.#waiting += line.length;
    this.#watch();
    const written = this.#last.then(() => this.#send(line));
    this.#last = written.catch(() => undefined);
    return written;
  }

  end(): void {
    this.#socket.end();
  }

  async #send(line: Buffer): Promise<void> {
    try {
      await new Promise<void>((resolve, reject) => {
        this.#socket.write(line, (error) => (error ? reject(error) : resolve()));
      });
    } finally {
      this.#waiting -= line.length;
      clearTimeout(this.#stalled);
      this.#stalled = undefined;
      this.#watch();
    }
  }

  /** Starts the time in which something has to be read, while too much waits. */
  #watch(): void {
    if (this.#waiting <= MAX_UNREAD_BYTES || this.#stalled || this.#socket.destroyed) return;
    const why = new WireError("the other side does not read what it asked for");
    this.#stalled = setTimeout(() => this.#socket.destroy(why), STALL_MS).unref();
  }
}

/** A call, a notice or an answer, with parameters by name: those by place would be spread over our handlers. */
function isMessage(value: unknown): value is Message {
  if (typeof value !== "object" || value === null || (value as Message).jsonrpc !== "2.0") return false;
  const { method, params } = value as { method?: unknown; params?: unknown };
  if (params !== undefined && (typeof params !== "object" || params === null || Array.isArray(params))) return false;
  if (method !== "$/cancelRequest") return true;
  return ["string", "number"].includes(typeof (params as { id?: unknown } | undefined)?.id);
}
