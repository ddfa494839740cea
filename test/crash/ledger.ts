import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import type { Fact, Line } from "./facts.ts";
import { History } from "./history.ts";

/**
 * The ledger of one campaign: a line of JSON for each fact, appended by one process after the other. The lines are
 * in the page cache when `write` returns, which SIGKILL does not take.
 */
export class Ledger {
  readonly path: string;
  readonly session: number;
  /** What all lines so far say. */
  readonly history = new History();
  readonly #fd: number;
  #commands = 0;

  /** Reads what was written before and begins a session of its own. */
  constructor(path: string, session: number, role: Extract<Fact, { fact: "session" }>["role"]) {
    this.path = path;
    this.session = session;
    this.#fd = openSync(path, "a+", 0o600);
    const before = readFileSync(path, "utf8");
    for (const line of parseLines(before)) this.history.add(line);
    // A kill in the middle of a write leaves half a line.
    if (before !== "" && !before.endsWith("\n")) writeSync(this.#fd, "\n");
    this.write({ fact: "session", role });
  }

  /** The number of the next command. */
  next(): number {
    return ++this.#commands;
  }

  write(fact: Fact): void {
    const line: Line = { ...fact, s: this.session };
    writeSync(this.#fd, `${JSON.stringify(line)}\n`);
    this.history.add(line);
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** What the ledger at a path says, for those who only read. */
export function readHistory(path: string): History {
  const history = new History();
  for (const line of parseLines(readFileSync(path, "utf8"))) history.add(line);
  return history;
}

function* parseLines(text: string): Generator<Line> {
  const lines = text.split("\n");
  for (const [index, line] of lines.entries()) {
    if (line === "") continue;
    let parsed: Line;
    try {
      parsed = JSON.parse(line) as Line;
    } catch (error) {
      // Half a line can only be the last one of a session.
      const next = lines[index + 1];
      if (next === undefined || next === "" || next.includes('"fact":"session"')) continue;
      throw new Error(`ledger line ${index + 1} cannot be read: ${line.slice(0, 200)}`, { cause: error });
    }
    yield parsed;
  }
}
