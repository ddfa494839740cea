import { mkdirSync } from "node:fs";
import { pino, type Logger } from "pino";
import { createStream } from "rotating-file-stream";
import { logFolder } from "./place.ts";

export interface Log extends Logger {}

/**
 * The log of a host: one JSON object a line, for this user alone, never more than three files of a megabyte. It says what
 * happened to whom, by ids and labels; what somebody asked, answered or was told to do has no place in it.
 */
export function openLog(directory: string): { log: Log; close(): Promise<void> } {
  const path = logFolder(directory);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const stream = createStream((index) => (index ? `host.${String(index)}.log` : "host.log"), {
    path,
    size: "1M",
    rotate: 2,
    mode: 0o600,
  });
  // A full disk must not end what keeps workers alive.
  stream.on("error", () => undefined);
  stream.on("warning", () => undefined);
  const log = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, stream);
  return { log, close: () => new Promise((done) => stream.end(() => done())) };
}
