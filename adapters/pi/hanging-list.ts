import type { Component } from "@earendil-works/pi-tui";

/** What wraps a text at a width. */
type Wraps = new (text: string, paddingX: number, paddingY: number) => Component;

/** What stands before the column in which the rest of a line goes on: a label, and the blanks behind it. */
const HEAD = /^ *\S+(?: \S+)* {2,}(?=\S)/;
/** A column that begins further right than this leaves no room for what stands in it. */
const FURTHEST_SHARE = 0.5;

/** A text whose lines are a name and what is said of it; what does not fit goes on below what is said, not below the name. */
export class HangingList implements Component {
  readonly #lines: readonly string[];
  readonly #Text: Wraps;

  constructor(text: string, Text: Wraps) {
    this.#lines = text.split("\n");
    this.#Text = Text;
  }

  render(width: number): string[] {
    return this.#lines.flatMap((line) => {
      const [head = ""] = HEAD.exec(line) ?? [];
      const indent = head.length > width * FURTHEST_SHARE ? "" : head;
      const wrapped = this.#wrapped(line.slice(indent.length), width - indent.length);
      return wrapped.map((part, index) => (index === 0 ? indent : " ".repeat(indent.length)) + part);
    });
  }

  invalidate(): void {
    // Nothing is kept.
  }

  #wrapped(text: string, width: number): readonly string[] {
    const lines = new this.#Text(text, 0, 0).render(width);
    return lines.length === 0 ? [" ".repeat(width)] : lines;
  }
}
