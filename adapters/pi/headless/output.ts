import type { Readable } from "node:stream";

/** Longest line that is kept: a worker that writes without an end costs nobody's memory. */
const LINE_LIMIT = 1024 * 1024;

/** As much is kept of a longer one, in bytes. */
const START_BYTES = 512;

/** Who hears the lines of a stream. */
export interface LineReader {
  /** A line, without its newline. */
  line(text: string): void;
  /** How a line begins that is longer than a line may be. */
  tooLong(start: string): void;
}

/**
 * Reads a stream line by line. Lines end with LF alone, as Pi's do; of what is longer than a line may be only the start is
 * kept, and everything is read, because a writer whose output nobody reads stands still.
 */
export function readLines(stream: Readable, reader: LineReader): void {
  let chunks: Buffer[] = [];
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, from)) {
      take(chunk.subarray(from, end));
      const text = Buffer.concat(chunks).toString("utf8");
      if (bytes > LINE_LIMIT) reader.tooLong(text);
      else if (bytes > 0) reader.line(text);
      chunks = [];
      bytes = 0;
      from = end + 1;
    }
    take(chunk.subarray(from));
  });

  function take(part: Buffer): void {
    const isKnownTooLong = bytes > LINE_LIMIT;
    bytes += part.length;
    if (isKnownTooLong || part.length === 0) return;
    chunks.push(part);
    if (bytes > LINE_LIMIT) chunks = [Buffer.from(Buffer.concat(chunks).subarray(0, START_BYTES))];
  }
}

/** The last of what a stream says. */
export class Tail {
  readonly #limit: number;
  #text = "";

  /** @param limit how many characters are kept. */
  constructor(stream: Readable | null | undefined, limit = 8 * 1024) {
    this.#limit = limit;
    stream?.setEncoding("utf8").on("data", (part: string) => {
      this.#text = (this.#text + part).slice(-this.#limit);
    });
  }

  get text(): string {
    return this.#text;
  }

  /** The line that says most of why a program ended: the last that names an error, else the last that says something. */
  get gist(): string | undefined {
    const lines = this.#text
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "" && !ASIDE.test(line));
    return lines.findLast((line) => /error\b|cannot|failed/i.test(line)) ?? lines.at(-1);
  }
}

/** What Node says around an error: where it was thrown, and which Node it is. */
const ASIDE = /^(at |Node\.js v|code: |requireStack: |[{}^~]|throw )/;
