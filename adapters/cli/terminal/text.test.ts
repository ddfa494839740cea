import { describe, expect, test } from "vitest";
import { columnsOf, fit, pad, table, visible, visibleLines } from "./text.ts";

describe("the width of a text", () => {
  test.each([
    ["", 0],
    ["herd", 4],
    ["Größe", 5],
    ["Größe".normalize("NFD"), 5],
    ["日本語", 6],
    ["한국", 4],
    ["ｆｕｌｌ", 8],
    ["ﾊﾝ", 2],
    ["🙂", 2],
    ["👩‍👩‍👧‍👦", 2],
    ["🇩🇪", 2],
    ["❤️", 2],
    ["❤", 1],
    ["1️⃣", 2],
    ["…├─└", 4],
    ["a\u200db", 2],
  ])("is counted in columns: %j takes %i", (text, columns) => {
    expect(columnsOf(text)).toBe(columns);
  });
});

describe("a text", () => {
  test("is cut between graphemes, never wider than allowed", () => {
    expect(fit("short", 5)).toBe("short");
    expect(fit("longer", 5)).toBe("long…");
    expect(fit("日本語です", 6)).toBe("日本…");
    expect(fit("👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 3)).toBe("👩‍👩‍👧‍👦…");
    expect(fit("anything", 1)).toBe("…");
    expect(fit("anything", 0)).toBe("");
    for (let columns = 0; columns < 12; columns++) {
      expect(columnsOf(fit("a日b本🙂é한", columns))).toBeLessThanOrEqual(columns);
    }
  });

  test("is padded by its width, not by its length", () => {
    expect(pad("日", 4)).toBe("日  ");
    expect(pad("日", 4, "left")).toBe("  日");
    expect(pad("too long", 3)).toBe("too long");
  });

  test("from outside cannot steer the terminal", () => {
    expect(visible("a\u001b[31mb\r\n\u009b\u202e")).toBe(String.raw`a\u001b[31mb\u000d\u000a\u009b\u202e`);
    expect(visibleLines("one\r\ntwo\u0007\n")).toBe("one\ntwo\\u0007\n");
    expect(visible("日本 é 👩‍👩‍👧‍👦")).toBe("日本 é 👩‍👩‍👧‍👦");
  });

  test("stands in columns of equal width", () => {
    expect(
      table(
        [
          ["name", "n"],
          ["日本語", "10"],
          ["x", "5"],
        ],
        new Set([1]),
      ),
    ).toEqual(["name     n", "日本語  10", "x        5"]);
  });
});
