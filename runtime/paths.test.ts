import { homedir } from "node:os";
import { join, posix, win32 } from "node:path";
import { expect, test } from "vitest";
import { expandHome } from "./paths.ts";

const linux = { home: "/home/ada", paths: posix };
const windows = { home: "C:\\Users\\ada", paths: win32 };

test.each([
  ["~", linux, "/home/ada"],
  ["~/a/b.md", linux, "/home/ada/a/b.md"],
  ["~\\a", linux, "~\\a"],
  ["~", windows, "C:\\Users\\ada"],
  ["~/a/b.md", windows, "C:\\Users\\ada\\a\\b.md"],
  ["~\\a\\b.md", windows, "C:\\Users\\ada\\a\\b.md"],
])("%s begins in the home folder of %o as %s", (path, place, expected) => {
  expect(expandHome(path, place)).toBe(expected);
});

test.each(["~ada/a", "a/~/b", "C:\\~", "/~", ""])("%j has no home folder in it", (path) => {
  expect(expandHome(path, linux)).toBe(path);
  expect(expandHome(path, windows)).toBe(path);
});

test("the home folder is that of whoever runs the process", () => {
  expect(expandHome("~/a")).toBe(join(homedir(), "a"));
});
