import { describe, expect, test } from "vitest";
import { answerFor, chooseFolders, written } from "./answer.ts";

const folders = ["dist", "src", "my folder", "none", "Größe".normalize("NFD"), ".git"];
const choose = (answer: string) => chooseFolders(answer, folders);

describe("an answer", () => {
  test.each(["dist src", "dist,src", "dist, src", " ./dist/ ,, src ", "dist\tsrc\n", "src dist src"])(
    "names folders, separated by spaces or commas: %j",
    (answer) => {
      const { leaveOut, unknown } = choose(answer);
      expect(leaveOut.toSorted()).toEqual(["dist", "src"]);
      expect(unknown).toEqual([]);
    },
  );

  test.each(["none", "None", "nothing", "no", "-", ""])("may leave nothing out: %j", (answer) => {
    expect(choose(answer)).toEqual({ leaveOut: [], unknown: [] });
  });

  test("names a folder with a space, or one that is called like a word for nothing, in quotes", () => {
    expect(choose('"my folder" "none"').leaveOut).toEqual(["my folder", "none"]);
  });

  test("reports a name that is no folder, and guesses nothing", () => {
    expect(choose("dits SRC dist src/deep")).toEqual({ leaveOut: ["dist"], unknown: ["dits", "SRC", "src/deep"] });
  });

  test("finds a folder whose name was typed with composed letters", () => {
    expect(choose("Größe".normalize("NFC")).leaveOut).toEqual(["Größe".normalize("NFD")]);
  });

  test("takes an unfinished quote as it stands", () => {
    expect(choose('"dist')).toEqual({ leaveOut: [], unknown: ['"dist'] });
    expect(choose(String.raw`"a\qb"`).unknown).toEqual([String.raw`a\qb`]);
  });
});

describe("a suggested answer", () => {
  test("leaves out exactly the folders that it was made for, whatever they are called", () => {
    const names = [
      "dist",
      "my folder",
      'a"b',
      "a,b",
      "none",
      "back\\slash",
      "bell\u0007",
      "turn\u202e",
      "it's",
      "日本",
    ];
    expect(chooseFolders(answerFor(names), names)).toEqual({ leaveOut: names, unknown: [] });
  });

  test("is none when there is nothing to leave out", () => {
    expect(answerFor([])).toBe("none");
  });

  test("shows no character that would steer a terminal", () => {
    expect(written("a\u001b[2Jb\u009b")).toBe(String.raw`"a\u001b[2Jb\u009b"`);
  });
});
