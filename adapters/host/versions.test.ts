import { expect, test } from "vitest";
import { isNewer } from "./versions.ts";

test.each([
  ["0.1.1", "0.1.0"],
  ["0.10.0", "0.9.9"],
  ["1.0", "0.9.9"],
  ["1.0.0", "0"],
])("%s is newer than %s, and not the other way round", (newer, older) => {
  expect(isNewer(newer, older)).toBe(true);
  expect(isNewer(older, newer)).toBe(false);
});

test.each([
  ["1.2.3", "1.2.3"],
  ["1.2", "1.2.0"],
  ["1.2.3-beta.1", "1.2.3"],
  ["nonsense", "0.0.0"],
  [undefined, "0.0.1"],
])("%s is not newer than %s", (version, than) => {
  expect(isNewer(version, than)).toBe(false);
});
