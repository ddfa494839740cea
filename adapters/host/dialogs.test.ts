import { describe, expect, test } from "vitest";
import { Dialogs, type DialogAnswer } from "./dialogs.ts";
import type { Dialog } from "./shapes.ts";

function desk() {
  const heard: string[] = [];
  const answers: [string, DialogAnswer][] = [];
  const dialogs = new Dialogs(
    {
      opened: (owner, { id }) => void heard.push(`${owner} sees ${id}`),
      closed: (owner, id) => void heard.push(`${owner} loses ${id}`),
    },
    "/herd",
  );
  const open = (id: string, more: Partial<Dialog> = {}, owner = "ada") =>
    dialogs.open(
      owner,
      { id, runId: `run-${more.label ?? "scout"}`, label: "scout", method: "confirm", title: "Go on?", ...more },
      (answer) => void answers.push([id, answer]),
    );
  return { dialogs, heard, answers, open };
}

describe("a dialog", () => {
  test("is shown to the owner of its worker, answered once, and taken away then", () => {
    const { dialogs, heard, answers, open } = desk();
    open("d1");
    expect(dialogs.answer("scout", "yes")).toMatchObject({ id: "d1" });
    expect(answers).toEqual([["d1", { confirmed: true }]]);
    expect(heard).toEqual(["ada sees d1", "ada loses d1"]);
    expect(() => dialogs.answer("d1", "yes")).toThrow(expect.objectContaining({ reason: "target_not_found" }));
    expect(dialogs.list()).toEqual([]);
  });

  test("that was closed is not closed again", () => {
    const { dialogs, heard, open } = desk();
    open("d1");
    dialogs.close("d1");
    dialogs.close("d1");
    expect(heard).toEqual(["ada sees d1", "ada loses d1"]);
  });

  test("of one worker after another is answered in the order in which they came", () => {
    const { dialogs, answers, open } = desk();
    open("d1");
    open("d2");
    dialogs.answer("scout", "no");
    dialogs.answer("scout", "yes");
    expect(answers).toEqual([
      ["d1", { confirmed: false }],
      ["d2", { confirmed: true }],
    ]);
  });

  test("of another owner is neither listed nor answered", () => {
    const { dialogs, open } = desk();
    open("d1", {}, "bob");
    expect(dialogs.list("ada")).toEqual([]);
    expect(() => dialogs.answer("d1", "yes", "ada")).toThrow(/No dialog of "d1" is open\. Next/);
    expect(dialogs.list("bob")).toHaveLength(1);
  });

  test("has to be named by its id where two workers have the label", () => {
    const { dialogs, open } = desk();
    open("d1", { runId: "one" });
    open("d2", { runId: "two" }, "bob");
    expect(() => dialogs.answer("scout", "yes")).toThrow(
      expect.objectContaining({ reason: "target_ambiguous", nextAction: expect.stringContaining("d1, d2") }),
    );
    expect(dialogs.answer("d2", "yes").id).toBe("d2");
  });
});

test.each<[Partial<Dialog>, string, DialogAnswer]>([
  [{ method: "confirm" }, " Yes ", { confirmed: true }],
  [{ method: "confirm" }, "false", { confirmed: false }],
  [{ method: "select", options: ["main", "no"] }, "no", { value: "no" }],
  [{ method: "select", options: ["main"] }, "no", { cancelled: true }],
  [{ method: "input" }, "no", { value: "no" }],
  [{ method: "editor" }, "", { value: "" }],
])("to %j the word %j is %j", (asked, word, expected) => {
  const { dialogs, answers, open } = desk();
  open("d1", asked);
  dialogs.answer("d1", word);
  expect(answers).toEqual([["d1", expected]]);
});

test.each<[Partial<Dialog>, string, string]>([
  [{ method: "confirm" }, "perhaps", "yes or no"],
  [{ method: "select", options: ["main"] }, "next", 'one of "main"'],
])("to %j the word %j is no answer, and it stays open", (asked, word, rule) => {
  const { dialogs, open } = desk();
  open("d1", asked);
  expect(() => dialogs.answer("d1", word)).toThrow(rule);
  expect(dialogs.list()).toHaveLength(1);
});
