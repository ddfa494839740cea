import { describe, expect, test } from "vitest";
import { pictureOf, textIn } from "./picture.ts";
import { readScreen, textOf } from "./screen.ts";
import { steady } from "./steady.ts";

const ESC = "\u001B";
const draw = (text: string, columns = 20) => pictureOf(readScreen(text), { title: "a screen", columns });
/** The looks of each letter. */
const looks = (text: string) => readScreen(text).flatMap((row) => row.map(({ text: char, style }) => [char, style]));

describe("what a terminal shows", () => {
  test.each([
    ["a named colour", `${ESC}[31ma`, { ink: "#cc6666" }],
    ["a bright one behind it", `${ESC}[102ma`, { paper: "#b9ca4a" }],
    ["one of 256 that has a name", `${ESC}[38;5;1ma`, { ink: "#cc6666" }],
    ["one of the cube", `${ESC}[48;5;208ma`, { paper: "#ff8700" }],
    ["a grey", `${ESC}[38;5;240ma`, { ink: "#585858" }],
    ["any colour", `${ESC}[38;2;1;2;255ma`, { ink: "#0102ff" }],
    ["with colons", `${ESC}[38:2:1:2:3ma`, { ink: "#010203" }],
    ["several at once", `${ESC}[1;3;4;7;2ma`, { bold: true, italic: true, underline: true, inverse: true, dim: true }],
  ])("has %s", (_, text, style) => {
    expect(looks(text)).toEqual([["a", expect.objectContaining(style)]]);
  });

  test("keeps a style over the ends of lines, until it is taken back", () => {
    const [a, b, c, d] = looks(`${ESC}[1;31ma\nb${ESC}[22mc${ESC}[md`).map(([, style]) => style);
    expect([a, b]).toEqual([
      { bold: true, ink: "#cc6666" },
      { bold: true, ink: "#cc6666" },
    ]);
    expect(c).toMatchObject({ bold: false, ink: "#cc6666" });
    expect(d).toMatchObject({ bold: false });
    expect((d as { ink?: string }).ink).toBeUndefined();
  });

  test("has no sequence that shows nothing, and two cells for what is wide", () => {
    const screen = readScreen(`${ESC}]8;;http://x${ESC}\\li${ESC}]8;;\u0007nk${ESC}[2K${ESC}(B 漢✅e\u0301|\n`);
    expect(textOf(screen)).toBe("link 漢✅e\u0301|");
    expect(screen).toHaveLength(1);
    expect(screen[0]).toHaveLength(4 + 1 + 2 + 2 + 1 + 1);
  });
});

describe("a picture", () => {
  test("has the text of the screen, whatever stands in it, at its place", () => {
    const text = `  a  ${ESC}[1mbold${ESC}[0m\n\n<b> & "c" 'd'\n${ESC}[44m   ${ESC}[0m\n${ESC}[4m x ${ESC}[0m|`;
    expect(textIn(draw(text))).toBe(textOf(readScreen(text)));
    expect(draw(text)).not.toContain("<b>");
  });

  test("has a box for each stretch of one colour, and blanks are boxes too", () => {
    const boxes = [
      ...draw(`a${ESC}[48;2;0;0;9mb  ${ESC}[1mc${ESC}[0md`).matchAll(/<rect x="(\d+)"[^>]*width="(\d+)"[^>]*>/g),
    ];
    expect(boxes.map(([, x, width]) => [Number(x), Number(width)])).toEqual([[22, 32]]);
  });

  test("turns ink and paper round for what is inverse", () => {
    const picture = draw(`${ESC}[7;38;2;1;1;1mx`);
    expect(picture).toMatch(/<rect x="14"[^>]*fill="#010101"/);
    expect(picture).toMatch(/<tspan[^>]*fill="#18181e"/);
  });

  test("of one screen is always the same, and is as large as the screen", () => {
    expect(draw("a\nb")).toBe(draw("a\nb"));
    expect(draw("a\nb")).toContain('viewBox="0 0 188 64"');
  });
});

describe("what differs from run to run", () => {
  const steadied = (text: string, pattern: RegExp, by: string) => textOf(steady(readScreen(text), [{ pattern, by }]));

  test("is replaced, also where it goes over the end of a line", () => {
    expect(steadied(" see /tmp/x1\n y2z/file, and\n /tmp/x1y2z", /\/tmp\/\w{5}/g, "/home/ada0")).toBe(
      " see /home/a\n da0/file, and\n /home/ada0",
    );
  });

  test("may be of another length within a line, and what comes after it moves", () => {
    expect(steadied(" pid 31 and 4711, done", /\d+/g, "100")).toBe(" pid 100 and 100, done");
  });

  test("is refused where the lines would break elsewhere", () => {
    expect(() => steadied(" id ab\n cd", /abcd/g, "x")).toThrow("goes over several rows");
  });
});
