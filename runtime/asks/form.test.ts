import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "../../machines/vocabulary.ts";
import type { HerdError } from "../errors.ts";
import { askFields, checkAnswer, type Answerable } from "./formats.ts";

const check = (asked: Answerable, answer: unknown) => checkAnswer(asked, answer, { operation: "reply" });
const refusalOf = (call: Promise<unknown>) =>
  call.then(
    (value) => ({ accepted: value }),
    (error: HerdError) => error,
  );

describe("a form", () => {
  const form = (more: object, required: string[] = []): Answerable => ({
    answerFormat: "form",
    schema: {
      properties: { kind: { type: "string" }, ...more },
      required: ["kind", ...required],
      additionalProperties: false,
    },
  });
  const vat = { type: "string", visibleWhen: { kind: "firm" } };

  test("drops what does not show, and does not require it", async () => {
    const asked = form({ vat }, ["vat"]);
    expect(await check(asked, { kind: "person", vat: 5 })).toStrictEqual({ kind: "person" });
    expect(await check(asked, { kind: "person" })).toStrictEqual({ kind: "person" });
    expect(await check(asked, { kind: "firm", vat: "X" })).toStrictEqual({ kind: "firm", vat: "X" });
    expect(await refusalOf(check(asked, { kind: "firm" }))).toMatchObject({
      field: "vat",
      rule: "is required",
    });
    expect(await refusalOf(check(asked, { kind: "firm", vat: 5 }))).toMatchObject({ field: "vat" });
    expect(await refusalOf(check(asked, { vat: "X" }))).toMatchObject({ field: "kind" });
  });

  test.each<[string, Json, Json, boolean]>([
    ["one of several values", { kind: ["firm", "club"] }, { kind: "club" }, true],
    ["none of them", { kind: ["firm", "club"] }, { kind: "person" }, false],
    ["all of several properties", { kind: "firm", size: { n: [1] } }, { kind: "firm", size: { n: [1] } }, true],
    ["only one of them", { kind: "firm", size: { n: [1] } }, { kind: "firm", size: { n: [2] } }, false],
    ["one that is absent", { size: 1 }, { kind: "firm" }, false],
    ["null where it is null", { size: null }, { kind: "firm", size: null }, true],
    ["null where it is absent", { size: null }, { kind: "firm" }, false],
    ["a list as one value", { size: [[1, 2]] }, { kind: "firm", size: [1, 2] }, true],
    ["no property", {}, { kind: "firm" }, true],
  ])("shows a property when its visibleWhen names %s", async (_what, visibleWhen, answer, shows) => {
    const asked = form({ size: {}, note: { visibleWhen } }, ["note"]);
    const whole = { ...(answer as object), note: "n" };
    expect(await check(asked, whole)).toStrictEqual(shows ? whole : answer);
    const without = await check(asked, answer).catch((error: HerdError) => error.field);
    expect(without).toEqual(shows ? "note" : answer);
  });

  test("hides what depends on what is hidden", async () => {
    const asked = form({ vat, proof: { visibleWhen: { vat: "X" } } }, ["proof"]);
    expect(await check(asked, { kind: "person", vat: "X", proof: 1 })).toStrictEqual({ kind: "person" });
    expect(await refusalOf(check(asked, { kind: "firm", vat: "X" }))).toMatchObject({ field: "proof" });
  });

  test("does the same in its objects and lists", async () => {
    const part = {
      type: "object",
      properties: { on: { type: "boolean" }, why: { type: "string", visibleWhen: { on: true } } },
      required: ["why"],
    };
    const asked = form({ part, parts: { type: "array", items: part } });
    expect(
      await check(asked, { kind: "k", part: { on: false, why: 1 }, parts: [{ why: 1 }, { on: true, why: "w" }] }),
    ).toStrictEqual({ kind: "k", part: { on: false }, parts: [{}, { on: true, why: "w" }] });
    expect(await refusalOf(check(asked, { kind: "k", part: { on: true } }))).toMatchObject({ field: "part.why" });
    expect(await refusalOf(check(asked, { kind: "k", parts: [{}, { on: true }] }))).toMatchObject({
      field: "parts.1.why",
    });
  });

  test("takes what it made of an answer as it is", () => {
    const asked = form({ vat, size: { visibleWhen: { vat: ["X", "Y"] } } }, ["size"]);
    const values = fc.record(
      { kind: fc.constantFrom("firm", "person"), vat: fc.constantFrom("X", "Y", "Z", 5), size: fc.jsonValue() },
      { requiredKeys: [] },
    );
    return fc.assert(
      fc.asyncProperty(values, async (value) => {
        const effective = await check(asked, value).catch(() => undefined);
        fc.pre(effective !== undefined);
        expect(await check(asked, effective)).toStrictEqual(effective);
        expect(JSON.parse(JSON.stringify(value))).toMatchObject(effective as object);
      }),
    );
  });

  test("may have a property of any name", async () => {
    const schema = JSON.parse(
      '{"properties":{"visibleWhen":{},"__proto__":{"visibleWhen":{"visibleWhen":1}},"toString":{"visibleWhen":{"__proto__":2}}},"required":["toString"]}',
    ) as object;
    const answer = JSON.parse('{"visibleWhen":1,"__proto__":2,"toString":3}') as Json;
    expect(JSON.stringify(await check({ answerFormat: "form", schema }, answer))).toBe(JSON.stringify(answer));
    expect(await check({ answerFormat: "form", schema }, { visibleWhen: 2, toString: 3 } as never)).toEqual({
      visibleWhen: 2,
    });
  });

  test("is free of conditions where the answer is", async () => {
    const { schema = {} } = form({ vat });
    expect(await check({ answerFormat: "free", schema }, { kind: "person", vat: "X" })).toHaveProperty("vat");
  });

  test.each<[string, Json, RegExp]>([
    ["nothing to look at", ["kind"], /visibleWhen of name must be an object/],
    ["a property that is not there", { other: 1 }, /visibleWhen of name names other/],
    ["no value", { kind: [] }, /visibleWhen of name has no value for kind/],
    ["itself", { name: "a" }, /visibleWhen of name depends on itself/],
  ])("is refused when a visibleWhen names %s", async (_what, visibleWhen, rule) => {
    const form = { properties: { kind: {}, name: { visibleWhen } } };
    const error = await refusalOf(askFields({ question: "who?", answerFormat: "form", schema: form }));
    expect(error).toMatchObject({ reason: "invalid_field", field: "schema", rule: expect.stringMatching(rule) });
  });
});
