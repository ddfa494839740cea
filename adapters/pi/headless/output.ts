import type { Readable } from "node:stream";

/** Longest line that is kept: a worker that writes without an end costs nobody's memory. */
const LINE_LIMIT = 1024 * 1024;

/**
 * Calls back for every line of a stream, without the newline. Lines end with LF alone, as Pi's do; what is longer than a
 * line may be is left out, and everything is read, because a writer whose output nobody reads stands still.
 */
export function readLines(stream: Readable, line: (text: string) => void): void {
  let chunks: Buffer[] = [];
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, from)) {
      take(chunk.subarray(from, end));
      if (bytes <= LINE_LIMIT && bytes > 0) line(Buffer.concat(chunks).toString("utf8"));
      chunks = [];
      bytes = 0;
      from = end + 1;
    }
    take(chunk.subarray(from));
  });

  function take(part: Buffer): void {
    bytes += part.length;
    if (bytes > LINE_LIMIT) chunks = [];
    else if (part.length > 0) chunks.push(part);
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
