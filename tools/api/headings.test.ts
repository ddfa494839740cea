import { expect, test } from "vitest";
import { anchorsOf, headingsOf } from "./headings.ts";

test("headings have a level, a title and a position, and none is in fenced code", () => {
  const text = "# One\n\n```sh\n# no heading\n```\n\n### Two()\n";
  expect(headingsOf(text)).toEqual([
    { level: 1, title: "One", at: 0 },
    { level: 3, title: "Two()", at: text.indexOf("### Two") },
  ]);
});

test("anchors are lower case without punctuation, and numbered where titles recur", () => {
  expect(anchorsOf("# `pi-herd`\n## close()\n## diagnose()?\n## Close\n## What it does\n## close()\n")).toEqual([
    "pi-herd",
    "close",
    "diagnose",
    "close-1",
    "what-it-does",
    "close-2",
  ]);
});
