import { describe, expect, test } from "vitest";
import { pad, table, visibleLines } from "./text.ts";

describe("a text", () => {
  test("is padded by its width, not by its length", () => {
    expect(pad("日", 4)).toBe("日  ");
    expect(pad("日", 4, "left")).toBe("  日");
    expect(pad("too long", 3)).toBe("too long");
  });

  test("of several lines keeps them, each one visible", () => {
    expect(visibleLines("one\r\ntwo\u0007\n")).toBe("one\ntwo\\u0007\n");
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
