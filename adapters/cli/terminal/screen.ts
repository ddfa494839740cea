import { columnsOf } from "./text.ts";

/** The part of a terminal's stream that a screen needs. */
export interface Terminal {
  columns?: number;
  rows?: number;
  write(text: string): unknown;
}

const UP = (lines: number) => (lines > 0 ? `\u001b[${lines}A` : "");
const CLEAR_TO_LINE_END = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/**
 * Lines at the end of a terminal's output that are drawn again in place. Each drawing is one write over the old one,
 * never a cleared screen in between, so nothing flickers.
 */
export class Screen {
  readonly #terminal: Terminal;
  #drawn: readonly string[] = [];

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  get size(): { columns: number; rows: number } {
    return { columns: this.#terminal.columns || 80, rows: this.#terminal.rows || 24 };
  }

  /** Puts these lines where the last ones are. Each must fit into the terminal's width. */
  draw(lines: readonly string[]): void {
    if (lines.length === this.#drawn.length && lines.every((line, index) => line === this.#drawn[index])) return;
    const text = lines.map((line) => `${line}${CLEAR_TO_LINE_END}\n`).join("");
    this.#terminal.write(`${this.#back()}${text}${CLEAR_BELOW}`);
    this.#drawn = lines;
  }

  /** Leaves what is drawn where it is: the next drawing begins below it. */
  release(): void {
    this.#drawn = [];
  }

  /** Takes what is drawn away. */
  clear(): void {
    if (this.#drawn.length > 0) this.#terminal.write(`${this.#back()}${CLEAR_BELOW}`);
    this.release();
  }

  /** To the first line. A terminal that became narrower has wrapped the lines, so they are more than they were. */
  #back(): string {
    const { columns } = this.size;
    let rows = 0;
    for (const line of this.#drawn) rows += Math.max(1, Math.ceil(columnsOf(line) / columns));
    return UP(rows) + (rows > 0 ? "\r" : "");
  }
}
