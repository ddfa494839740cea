import { Text, visibleWidth } from "@earendil-works/pi-tui";
import { expect, test } from "vitest";
import { HangingList } from "./hanging-list.ts";

const shown = (text: string, width: number) => new HangingList(text, Text).render(width).map((line) => line.trimEnd());

test("what does not fit goes on below what is said of a name", () => {
  const text = "Workers (1)\n  scout     blocked, asks: Which of the two folders is it?\n\nAgents (0)";
  expect(shown(text, 32)).toEqual([
    "Workers (1)",
    "  scout     blocked, asks: Which",
    "            of the two folders",
    "            is it?",
    "",
    "Agents (0)",
  ]);
  expect(shown(text, 80)).toEqual(text.split("\n"));
});

test("no line is wider than the screen, whatever is in it and however narrow that is", () => {
  const text = `  ${"a-long-label".repeat(3)}  日本語のフォルダ ${"x".repeat(90)}\n  b  ${"word ".repeat(30)}`;
  for (const width of [1, 2, 5, 20, 79])
    for (const line of new HangingList(text, Text).render(width))
      expect(visibleWidth(line)).toBeLessThanOrEqual(Math.max(width, 2));
});
