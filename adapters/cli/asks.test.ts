import { describe, expect, test } from "vitest";
import type { AnswerFormat, Json } from "../../runtime/index.ts";
import { answerIn, askedBy, exampleFor, wantedBy } from "./asks.ts";
import { UsageError } from "./errors.ts";

const form = { answerFormat: "form" as const, schema: { type: "object", properties: { name: {}, age: {} } } };
const select = { answerFormat: "select" as const, options: ["S", { size: 2 }] };

describe("the answer that a word means", () => {
  test.each<[AnswerFormat | undefined, string, Json]>([
    ["text", "north", "north"],
    ["text", "12 EUR", "12 EUR"],
    ["text", '"north"', "north"],
    ["text", "42", "42"],
    ["text", "true", "true"],
    ["text", '{"a":1}', '{"a":1}'],
    ["text", "", ""],
    [undefined, "null", "null"],
    ["confirm", "true", true],
    ["confirm", '{"answer":"no"}', { answer: "no" }],
    ["select", '"S"', "S"],
    ["form", '{"name":"Ada"}', { name: "Ada" }],
    ["free", "null", null],
  ])("to what asks for %s and is %s", (answerFormat, word, answer) => {
    expect(answerIn(word, { ...(answerFormat && { answerFormat }) }, "herd resume ID")).toEqual(answer);
  });

  test.each([
    [
      { answerFormat: "confirm" as const },
      "yes",
      "true or false; yes is none. Next: quote it as JSON: herd resume ID true",
    ],
    [select, "S", `one of "S", {"size":2}; S is none. Next: quote it as JSON: herd resume ID '"S"'`],
    [select, "L", `one of "S", {"size":2}; L is none. Next: quote it as JSON: herd resume ID '"S"'`],
    [
      form,
      "{name: 1}",
      `an object with "name", "age"; {name: 1} is none. Next: quote it as JSON: herd resume ID "{…}"`,
    ],
    [{ answerFormat: "free" as const }, "a b", `any JSON; a b is none. Next: quote it as JSON: herd resume ID '"a b"'`],
  ])("is refused where %j is asked for and %s is no JSON", (asked, word, says) => {
    const refused = () => answerIn(word, asked, "herd resume ID");
    expect(refused).toThrow(UsageError);
    expect(refused).toThrow(`The answer must be JSON, ${says}`);
  });
});

describe("an ask on one line", () => {
  test("says whom it asks and which answers fit, and names a few of many choices", () => {
    expect(askedBy({ question: "Go?\nOr not?" })).toBe("Go?");
    expect(askedBy({ question: "Go?", to: "user" })).toBe("Go? (a person)");
    expect(askedBy({ question: "Go?", to: "user", answerFormat: "confirm" })).toBe("Go? (a person: true or false)");
    expect(askedBy({ question: "", payload: { sku: 1 }, answerFormat: "free" })).toBe('{"sku":1} (any JSON)');
    expect(wantedBy({ options: ["a", "b"] })).toBe('such as "a", "b"');
    expect(wantedBy({ answerFormat: "select", options: [1, 2, 3, 4, 5, 6, 7] })).toBe("one of 1, 2, 3, 4, 5, 6, …");
    expect(wantedBy({ answerFormat: "form", schema: {} })).toBe("an object");
    expect(exampleFor({ options: ["a b"] })).toBe('"a b"');
  });
});
