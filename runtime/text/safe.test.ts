import { describe, expect, test } from "vitest";
import { printable, quotedUnlessPlain, visible } from "./safe.ts";

describe("a text from outside", () => {
  test("cannot steer the terminal, and shows on one line what would", () => {
    expect(visible("a\u001b[31mb\r\n\u009b\u202e")).toBe(String.raw`a\u001b[31mb\u000d\u000a\u009b\u202e`);
    expect(visible("日本 é 👩‍👩‍👧‍👦")).toBe("日本 é 👩‍👩‍👧‍👦");
  });

  test.each([
    ["colours", "\u001b[1;31mred\u001b[0m", "red"],
    ["colours in one byte", "\u009b31mred\u009b0m", "red"],
    ["a window title", "\u001b]0;evil\u0007text", "text"],
    ["a link", "\u001b]8;;https://a.test\u001b\\here\u001b]8;;\u001b\\.", "here."],
    ["a device string", "a\u001bPq#0\u001b\\b", "ab"],
    ["a reset", "\u001bca\u001b(Bb", "ab"],
    ["a title without an end", "\u001b]0;title\nnext", "0;title\nnext"],
    ["a sequence inside a sequence", "\u001b[\u001b[31m31m", "31m"],
    ["an escape at the end", "text\u001b", "text"],
    ["carriage returns, bells, deletes and NUL", "a\r\nb\u0007\u007f\u0000c\u0085", "a\nbc"],
    ["halves of code points", "a\ud83d", "a\ufffd"],
  ])("is shown without %s", (_what, text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  test("keeps tabs, line ends, emoji and every script", () => {
    const text = "a\tb\n日本 שלום é 👩‍👩‍👧‍👦\n";
    expect(printable(text)).toBe(text);
  });

  test("is made printable in a time that grows with its length alone", () => {
    for (const unit of ["\u001b]", "\u001b[1", "\u001b[1;", "\u001b ", "\u009d"]) {
      expect(printable(unit.repeat(200_000)).includes("\u001b")).toBe(false);
    }
  });
});

describe("a name in a line of several facts", () => {
  test("stands as it is when it is plain, else in quotes", () => {
    expect(quotedUnlessPlain("implementer-2")).toBe("implementer-2");
    expect(quotedUnlessPlain("größe/日本")).toBe("größe/日本");
    expect(quotedUnlessPlain("a | status: failed")).toBe('"a | status: failed"');
    expect(quotedUnlessPlain("a\nb\u2028\u202e")).toBe(String.raw`"a\nb\u2028\u202e"`);
    expect(quotedUnlessPlain("")).toBe('""');
  });
});
