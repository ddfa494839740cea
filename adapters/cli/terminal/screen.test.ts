import { describe, expect, test } from "vitest";
import { Screen } from "./screen.ts";

/** What a terminal shows after text and the few sequences that a screen may use; anything else is an error. */
class Emulator {
  columns = 20;
  rows = 10;
  writes = 0;
  lines: string[] = [""];
  #row = 0;
  #column = 0;

  write(text: string): void {
    this.writes++;
    // oxlint-disable-next-line no-control-regex -- escape sequences are what this reads
    for (const [token, up] of text.matchAll(/\u001b\[(\d+)A|\u001b\[K|\u001b\[J|\r|\n|[^\u001b\r\n]+/g)) {
      const line = this.lines[this.#row] ?? "";
      if (token === "\u001b[K") this.lines[this.#row] = line.slice(0, this.#column);
      else if (token === "\u001b[J") this.lines.splice(this.#row, Infinity, line.slice(0, this.#column));
      else if (up !== undefined) this.#row -= Number(up);
      else if (token === "\n") this.lines[++this.#row] ??= "";
      else if (token !== "\r") this.lines[this.#row] = token + line.slice(token.length);
      this.#column =
        token === "\n" || token === "\r" ? 0 : this.#column + (token.startsWith("\u001b") ? 0 : token.length);
    }
    if (this.#row < 0) throw new Error("drawn above the first line");
  }

  /** As terminals do when they get narrower. */
  narrow(columns: number): void {
    this.columns = columns;
    this.lines = this.lines.flatMap((line) => line.match(new RegExp(`.{1,${columns}}`, "g")) ?? [line]);
    this.#row = this.lines.length - 1;
  }
}

describe("a screen", () => {
  test("draws in place, below what was there, with one write each time", () => {
    const terminal = new Emulator();
    terminal.write("before\n");
    const screen = new Screen(terminal);
    screen.draw(["one", "two", "three"]);
    screen.draw(["eins", "zwei"]);
    expect(terminal.lines).toEqual(["before", "eins", "zwei", ""]);
    screen.draw(["1", "2", "3"]);
    expect(terminal.lines).toEqual(["before", "1", "2", "3", ""]);
    expect(terminal.writes).toBe(4);
  });

  test("writes nothing when nothing changed", () => {
    const terminal = new Emulator();
    const screen = new Screen(terminal);
    screen.draw(["same"]);
    screen.draw(["same"]);
    expect(terminal.writes).toBe(1);
  });

  test("takes itself away, or stays when it is released", () => {
    const terminal = new Emulator();
    const screen = new Screen(terminal);
    screen.draw(["stays"]);
    screen.release();
    screen.draw(["goes", "away"]);
    screen.clear();
    screen.clear();
    expect(terminal.lines).toEqual(["stays", ""]);
  });

  test("finds its first line again after the terminal became narrower", () => {
    const terminal = new Emulator();
    terminal.write("before\n");
    const screen = new Screen(terminal);
    screen.draw(["twelve chars", "short"]);
    terminal.narrow(6);
    screen.draw(["new"]);
    expect(terminal.lines).toEqual(["before", "new", ""]);
  });
});
