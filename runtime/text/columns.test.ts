import { describe, expect, test } from "vitest";
import { columnsOf, fit, wrap } from "./columns.ts";

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

  test("is wrapped at spaces, and inside a word that is too long", () => {
    expect(wrap("fits", 4)).toEqual(["fits"]);
    expect(wrap("one two three", 7)).toEqual(["one two", "three"]);
    expect(wrap("one two three", 8)).toEqual(["one two", "three"]);
    expect(wrap("a longerthanallowed b", 6)).toEqual(["a", "longer", "thanal", "lowed", "b"]);
    expect(wrap("日本語 です", 5)).toEqual(["日本", "語", "です"]);
    expect(wrap("a日b", 1)).toEqual(["a", "…", "b"]);
    expect(wrap("", 1)).toEqual([""]);
    expect(wrap("a\u00a0日", 2).join("")).toBe("a\u00a0日");
  });
});
