import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isDeepStrictEqual } from "node:util";
import type { Json } from "../../machines/vocabulary.ts";
import { HerdError } from "../errors.ts";
import { askFields, checkAnswer, checkInput, EXPIRED, type Answerable } from "./formats.ts";

const MiB = 1024 * 1024;
const question = "proceed?";
const defaults = { question, answerFormat: "text", onExpiry: "kill", to: "caller", wait: true };
const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const circle: Record<string, unknown> = {};
circle["self"] = circle;

const refusalOf = (call: Promise<unknown>): Promise<HerdError> =>
  call.then(
    (value) => {
      throw new Error(`not refused: ${JSON.stringify(value)}`);
    },
    (error: unknown) => {
      if (error instanceof HerdError) return error;
      throw error;
    },
  );

describe("an ask", () => {
  test.each<[string, object, object]>([
    ["with a question alone", { question }, {}],
    ["with all that is undefined", { question, payload: undefined, options: undefined, to: undefined }, {}],
    ["with a payload alone", { payload: { a: [1] } }, { question: "", payload: { a: [1] } }],
    ["with an empty question and a payload", { question: "", payload: null }, { question: "", payload: null }],
    ["of the user", { question, to: "user" }, { to: "user" }],
    ["at the longest", { question: "x".repeat(8192) }, { question: "x".repeat(8192) }],
    ["with suggestions", { question, options: ["a", "b"] }, { options: ["a", "b"] }],
    ["to confirm", { question, answerFormat: "confirm" }, { answerFormat: "confirm" }],
    [
      "to select from anything",
      { question, answerFormat: "select", options: [1, { a: null }, ""] },
      { answerFormat: "select", options: [1, { a: null }, ""] },
    ],
    ["with a form", { question, answerFormat: "form", schema }, { answerFormat: "form", schema }],
    ["for anything", { question, answerFormat: "free" }, { answerFormat: "free" }],
    ["for anything of a kind", { question, answerFormat: "free", schema }, { answerFormat: "free", schema }],
    [
      "with the rest",
      { question, groupId: "g-1", onExpiry: "resume", name: "go", wait: false },
      { groupId: "g-1", onExpiry: "resume", name: "go", wait: false },
    ],
    ["until a Date", { question, expiresAt: new Date(5) }, { expiresAt: 5 }],
    ["until a time with Z", { question, expiresAt: "1970-01-01T00:00:01.5Z" }, { expiresAt: 1500 }],
    ["until a time without seconds", { question, expiresAt: "1970-01-01T00:01Z" }, { expiresAt: 60_000 }],
    ["until a time elsewhere", { question, expiresAt: "1970-01-01T02:00:00+02:00" }, { expiresAt: 0 }],
    ["until long ago", { question, expiresAt: "1960-01-01T00:00:00Z" }, { expiresAt: Date.UTC(1960) }],
    ["until far from now", { question, expiresAt: "9999-12-31T23:59:59Z" }, { expiresAt: 253_402_300_799_000 }],
  ])("%s is taken", async (_what, request, more) => {
    expect(await askFields(request)).toStrictEqual({ ...defaults, ...more });
  });

  test.each<[string, unknown, string, string | RegExp]>([
    ["nothing", {}, "question", /unless there is a payload/],
    ["nothing at all", undefined, "question", /unless there is a payload/],
    ["an empty question", { question: "" }, "question", /unless there is a payload/],
    ["a blank question", { question: " \n" }, "question", /unless there is a payload/],
    ["a question that is no text", { question: 5 }, "question", "must be text"],
    ["a question that is null", { question: null, payload: 1 }, "question", "must be text"],
    ["a question too long", { question: "x".repeat(8193) }, "question", "must be at most 8192 characters"],
    ["a blank question to the user", { question: " ", to: "user" }, "question", "must contain non-whitespace text"],
    ["no question to the user", { to: "user" }, "question", "must contain non-whitespace text"],
    ["a payload to the user", { question, to: "user", payload: 1 }, "payload", "is only for a question to the caller"],
    [
      "free to the user",
      { question, to: "user", answerFormat: "free" },
      "answerFormat",
      "free is only for a question to the caller",
    ],
    ["somebody else", { question, to: "owner" }, "to", "must be caller or user"],
    [
      "an unknown format",
      { question, answerFormat: "external" },
      "answerFormat",
      'must be one of text, confirm, select, form, free, not "external"',
    ],
    ["a format that is null", { question, answerFormat: null }, "answerFormat", /must be one of text, .*, free$/],
    ["a format that is a bigint", { question, answerFormat: 1n }, "answerFormat", /must be one of/],
    ["a time without a zone", { question, expiresAt: "2026-03-01T09:00:00" }, "expiresAt", /with Z or an offset/],
    ["a day", { question, expiresAt: "2026-03-01" }, "expiresAt", /with Z or an offset/],
    ["a day that is none", { question, expiresAt: "2026-02-30T09:00:00Z" }, "expiresAt", /with Z or an offset/],
    ["a Date that is none", { question, expiresAt: new Date("?") }, "expiresAt", /valid Date/],
    ["a number as a time", { question, expiresAt: 5 }, "expiresAt", /valid Date/],
    ["null as a time", { question, expiresAt: null }, "expiresAt", /valid Date/],
    ["another expiry", { question, onExpiry: "wait" }, "onExpiry", "must be kill or resume"],
    ["a blank group", { question, groupId: " " }, "groupId", "must not be blank"],
    ["a long group", { question, groupId: "g".repeat(513) }, "groupId", "must be at most 512 characters"],
    ["a blank name", { question, name: "" }, "name", "must not be blank"],
    ["a wait that is no boolean", { question, wait: "no" }, "wait", "must be true or false"],
    ["no suggestion", { question, options: [] }, "options", "must not be empty"],
    ["a suggestion that is empty", { question, options: ["a", ""] }, "options", /must be texts/],
    ["a suggestion that is no text", { question, options: [1] }, "options", /must be texts/],
    ["options that are no list", { question, options: { a: 1 } }, "options", "must be a list"],
    ["null as options", { question, options: null }, "options", "must be a list"],
    ["text with a schema", { question, schema }, "schema", "is only for form and free"],
    [
      "confirm with options",
      { question, answerFormat: "confirm", options: ["a"] },
      "options",
      "are only for select and text",
    ],
    ["confirm with a schema", { question, answerFormat: "confirm", schema }, "schema", "is only for form and free"],
    ["select without options", { question, answerFormat: "select" }, "options", "must be given with select"],
    ["select with none", { question, answerFormat: "select", options: [] }, "options", "must not be empty"],
    [
      "select with a schema",
      { question, answerFormat: "select", options: [1], schema },
      "schema",
      "is only for form and free",
    ],
    [
      "an option for the reserved answer",
      { question, answerFormat: "select", options: [EXPIRED] },
      "options",
      /expired/,
    ],
    ["a form without a schema", { question, answerFormat: "form" }, "schema", "must be given with form"],
    [
      "a form with options",
      { question, answerFormat: "form", schema, options: ["a"] },
      "options",
      "are only for select and text",
    ],
    [
      "free with options",
      { question, answerFormat: "free", options: ["a"] },
      "options",
      "are only for select and text",
    ],
    [
      "a schema that is true",
      { question, answerFormat: "free", schema: true },
      "schema",
      "must be a JSON Schema object",
    ],
    [
      "a schema that is a list",
      { question, answerFormat: "form", schema: [] },
      "schema",
      "must be a JSON Schema object",
    ],
    ["a broken schema", { question, answerFormat: "free", schema: { type: "text" } }, "schema", /type must be one of/],
    ["a lost $ref", { question, answerFormat: "form", schema: { $ref: "#/a" } }, "schema", /can't resolve reference/],
    ["a payload with undefined", { payload: { a: [undefined] } }, "payload", "a.0 must be JSON, not undefined"],
    ["a payload with a function", { payload: { a: () => 1 } }, "payload", "a must be JSON, not a function"],
    ["a payload with NaN", { payload: [Number.NaN] }, "payload", "0 must be JSON, not NaN"],
    ["a payload that is a bigint", { payload: 5n }, "payload", "must be JSON, not a bigint"],
    [
      "a payload with a Date",
      { payload: { at: new Date() } },
      "payload",
      "at must be JSON, not an object of the class Date",
    ],
    ["a payload in a circle", { payload: circle }, "payload", "self must be JSON, which cannot contain itself"],
    ["a payload too large", { payload: "x".repeat(MiB) }, "payload", "must be at most 1 MiB of JSON"],
    ["a payload too large in bytes", { payload: "é".repeat(MiB / 2) }, "payload", "must be at most 1 MiB of JSON"],
    [
      "payload and options too large together",
      { question, payload: "x".repeat(MiB / 2), options: ["x".repeat(MiB / 2)] },
      "payload, options",
      /must be at most 1048576 bytes of JSON together, not 10485\d\d/,
    ],
  ])("that has %s is refused", async (_what, request, field, rule) => {
    const error = await refusalOf(askFields(request));
    expect(error).toMatchObject({ category: "invalid_request", reason: "invalid_field", operation: "ask", field });
    expect(error.rule).toMatch(rule);
    expect(error.message).toContain(field);
    expect(error.message.length).toBeLessThan(400);
  });

  test("names every rule that it breaks, whom it asks first", async () => {
    const broken = { question: " ", to: "user", payload: 1, answerFormat: "confirm", options: [], schema: {} };
    expect(await refusalOf(askFields(broken))).toMatchObject({ field: "question, payload, options, schema" });
  });

  test("with an unknown field is refused before anything else", async () => {
    const error = await refusalOf(askFields({ answer_format: "text", mode: "sync" }, "worker.ask"));
    expect(error).toMatchObject({
      reason: "unknown_field",
      field: "answer_format, mode",
      operation: "worker.ask",
    });
  });

  test("keeps what was given, whatever becomes of that", async () => {
    const given = { question, payload: { a: 1 } };
    const fields = await askFields(given);
    given.payload.a = 2;
    expect(fields.payload).toEqual({ a: 1 });
  });

  test("is refused, and costs nothing, when what it shares is small only in memory", async () => {
    let payload: object = {};
    for (let level = 0; level < 60; level++) payload = { left: payload, right: payload };
    expect(await refusalOf(askFields({ payload }))).toMatchObject({ rule: "payload: must be at most 1 MiB of JSON" });
  });

  test("is refused when it is nested deeper than anything can walk", async () => {
    let payload: unknown = 1;
    for (let level = 0; level < 100_000; level++) payload = [payload];
    expect(await refusalOf(askFields({ payload }))).toMatchObject({ rule: "payload: must be nested at most 500 deep" });
  });
});

const check = (asked: Answerable, answer: unknown) => checkAnswer(asked, answer, { operation: "reply" });

describe("an answer", () => {
  const select: Answerable = { answerFormat: "select", options: ["a", 1, { b: [null], c: 1 }] };
  const confirm: Answerable = { answerFormat: "confirm" };
  const nested = { properties: { a: { properties: { b: { type: "string", format: "date" } }, required: ["b"] } } };

  test.each<[string, Answerable, Json, Json?]>([
    ["a text", { answerFormat: "text" }, "yes"],
    ["an empty text", { answerFormat: "text" }, ""],
    ["a text beside the suggestions", { answerFormat: "text", options: ["a"] }, "b"],
    ["true", confirm, true],
    ["false", confirm, false],
    ["{ answer: true }", confirm, { answer: true }, true],
    ["{ answer: false }", confirm, { answer: false }, false],
    ['{ answer: "yes" }', confirm, { answer: "yes" }, true],
    ['{ answer: "no" }', confirm, { answer: "no" }, false],
    ["an option", select, "a"],
    ["an option that is an object, in another order", select, { c: 1, b: [null] }],
    ["an object for a form", { answerFormat: "form", schema }, { name: "Ada", more: 1 }],
    ["null, freely", { answerFormat: "free" }, null],
    ["what the schema wants, freely", { answerFormat: "free", schema: nested }, { a: { b: "2026-03-01" } }],
    ["what is no object, where the schema wants none", { answerFormat: "free", schema: { type: "number" } }, 5],
    ["a negative zero as what JSON makes of it", { answerFormat: "free" }, -0, 0],
  ])("is accepted: %s", async (_what, asked, answer, effective = answer) => {
    expect(await check(asked, answer)).toStrictEqual(effective);
  });

  test.each<[string, Answerable, unknown, string | undefined, string | RegExp]>([
    ["a number for a text", { answerFormat: "text" }, 5, undefined, "must be a string"],
    ["null for a text", { answerFormat: "text" }, null, undefined, "must be a string"],
    ["a bare yes", confirm, "yes", undefined, /must be a boolean/],
    ["a number to confirm", confirm, 1, undefined, /must be a boolean/],
    ["another key beside the answer", confirm, { answer: true, why: "" }, undefined, /must be a boolean/],
    ["another key", confirm, { confirmed: true }, undefined, /must be a boolean/],
    ["another word", confirm, { answer: "YES" }, undefined, /must be a boolean/],
    ["an answer in an answer", confirm, { answer: { answer: true } }, undefined, /must be a boolean/],
    ["a list with the answer", confirm, [true], undefined, /must be a boolean/],
    ["no option", select, "b", undefined, 'must be one of ["a",1,{"b":[null],"c":1}]'],
    ["an option as text", select, "1", undefined, /must be one of/],
    ["an option in an answer", select, { answer: "a" }, undefined, /must be one of/],
    ["a text for a form", { answerFormat: "form", schema }, "Ada", undefined, "must be an object"],
    ["a list for a form", { answerFormat: "form", schema: {} }, [], undefined, "must be an object"],
    ["a wrong type in a form", { answerFormat: "form", schema }, { name: 5 }, "name", "must be string"],
    ["too little in a form", { answerFormat: "form", schema }, {}, "name", "is required"],
    ["a form without a schema", { answerFormat: "form" }, {}, undefined, /has no schema/],
    ["a nested fault", { answerFormat: "form", schema: nested }, { a: { b: 5 } }, "a.b", "must be string"],
    ["a nested lack", { answerFormat: "free", schema: nested }, { a: {} }, "a.b", "is required"],
    [
      "a day that is none, freely",
      { answerFormat: "free", schema: nested },
      { a: { b: "2026-02-30" } },
      "a.b",
      'must match format "date"',
    ],
    ["a broken form", { answerFormat: "form", schema: { type: "text" } }, {}, undefined, /schema cannot be used: type/],
    ["a broken schema", { answerFormat: "free", schema: { required: 1 } }, {}, undefined, /schema cannot be used/],
    [
      "a broken visibleWhen",
      { answerFormat: "form", schema: { properties: { a: { visibleWhen: 1 } } } },
      {},
      undefined,
      /schema cannot be used: visibleWhen of a/,
    ],
    [
      "a schema without an end",
      { answerFormat: "free", schema: { $ref: "#" } },
      1,
      undefined,
      /nested too deeply, or without an end/,
    ],
    ["nothing", { answerFormat: "free" }, undefined, undefined, "must be JSON, not undefined"],
    ["a function inside", { answerFormat: "free" }, { a: [() => 1] }, "a.0", "must be JSON, not a function"],
    ["a promise", { answerFormat: "text" }, Promise.resolve(""), undefined, /not an object of the class Promise/],
    ["NaN", { answerFormat: "free" }, Number.NaN, undefined, "must be JSON, not NaN"],
    ["a circle", { answerFormat: "free" }, circle, "self", /cannot contain itself/],
    ["too much", { answerFormat: "text" }, "x".repeat(MiB - 1), undefined, "must be at most 1 MiB of JSON"],
  ])("is refused: %s", async (_what, asked, answer, field, rule) => {
    const error = await refusalOf(check(asked, answer));
    expect(error).toMatchObject({ category: "invalid_request", reason: "answer_mismatch", operation: "reply" });
    expect(error.field).toBe(field);
    expect(error.rule).toMatch(rule);
    expect(error.message).toMatch(field === undefined ? /^The answer / : /^The answer's /);
    expect(error.message).toContain(error.rule as string);
    expect(error.nextAction).not.toBe("");
  });

  test.each(["text", "confirm", "select", "form", "free"] as const)("is never the reserved one: %s", async (format) => {
    const asked: Answerable = { answerFormat: format, options: [EXPIRED as unknown as Json], schema: {} };
    for (const marker of [EXPIRED, { "pi-herd:expired": true }]) {
      const error = await refusalOf(check(asked, marker));
      expect(error).toMatchObject({ reason: "answer_mismatch", rule: expect.stringMatching(/a question expired/) });
    }
    expect(Object.isFrozen(EXPIRED)).toBe(true);
  });

  test("is not made the reserved one by what does not show", async () => {
    const form = { properties: { kind: {}, more: { visibleWhen: { kind: 1 } } } };
    const error = await refusalOf(check({ answerFormat: "form", schema: form }, { ...EXPIRED, more: 1 }));
    expect(error.rule).toMatch(/a question expired/);
  });

  test("may hold what the reserved one is beside something else", async () => {
    expect(await check({ answerFormat: "free" }, [EXPIRED])).toEqual([EXPIRED]);
    expect(await check({ answerFormat: "free" }, { "pi-herd:expired": false })).toEqual({ "pi-herd:expired": false });
  });

  test("may be any JSON when it is free", () =>
    fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const json = JSON.parse(JSON.stringify(value)) as Json;
        expect(await check({ answerFormat: "free" }, value)).toStrictEqual(json);
      }),
    ));

  test("is exactly one of the options when it is selected", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue(), { minLength: 1, maxLength: 5 }), fc.jsonValue(), async (all, other) => {
        const options = JSON.parse(JSON.stringify(all)) as Json[];
        const asked: Answerable = { answerFormat: "select", options };
        for (const option of options) expect(await check(asked, structuredClone(option))).toStrictEqual(option);
        const json = JSON.parse(JSON.stringify(other)) as Json;
        if (options.some((option) => isDeepStrictEqual(option, json))) return;
        expect(await refusalOf(check(asked, other))).toMatchObject({ reason: "answer_mismatch" });
      }),
    ));

  test("is a boolean when it is confirmed, whatever came", () =>
    fc.assert(
      fc.asyncProperty(fc.oneof(fc.jsonValue(), fc.record({ answer: fc.jsonValue() })), async (value) => {
        const confirmed = await check(confirm, value).catch((error: HerdError) => error.reason);
        expect([true, false, "answer_mismatch"]).toContain(confirmed);
      }),
    ));
});

describe("the input of an agent", () => {
  const input = (value: unknown, asked: object = schema) => checkInput(asked, value, { operation: "visit" });

  test("is given back when it fits", async () => {
    expect(await input({ name: "Ada" })).toStrictEqual({ name: "Ada" });
    expect(await input(5, {})).toBe(5);
  });

  test.each<[unknown, object, string, string | RegExp]>([
    [5, schema, "input", "must be object"],
    [undefined, schema, "input", "must be JSON, not undefined"],
    [{ name: 5 }, schema, "input.name", "must be string"],
    [{ a: [{}] }, { properties: { a: { items: { required: ["b"] } } } }, "input.a.0.b", "is required"],
    [{ a: undefined }, {}, "input.a", "must be JSON, not undefined"],
    [{}, { type: "text" }, "input", /schema cannot be used/],
  ])("is refused when it does not: %j", async (value, asked, field, rule) => {
    const error = await refusalOf(input(value, asked));
    expect(error).toMatchObject({ category: "invalid_request", reason: "invalid_field", operation: "visit", field });
    expect(error.rule).toMatch(rule);
  });

  test("is called as whoever gave it calls it", async () => {
    const refused = checkInput(schema, {}, { operation: "visit", field: "start.input" });
    expect((await refusalOf(refused)).field).toBe("start.input.name");
  });
});
