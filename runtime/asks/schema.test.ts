import { describe, expect, test } from "vitest";
import type { Json } from "../../machines/vocabulary.ts";
import { compileSchema } from "./schema.ts";

const faultIn = async (schema: object, value: Json) => (await compileSchema(schema))(value);
const brokenBy = (schema: object) =>
  compileSchema(schema).then(
    () => "compiled",
    (error: Error) => error.message,
  );

describe("a format is asserted", () => {
  test.each([
    ["date", "2024-02-29", "2023-02-29"],
    ["date", "2026-12-31", "2026-13-01"],
    ["date", "2026-01-02", "2026-1-2"],
    ["time", "09:30:00", "9:30:00"],
    ["time", "09:30:00Z", "24:00:00Z"],
    ["time", "09:30:00+02:00", "09:60:00"],
    ["date-time", "2026-03-01T09:30:00Z", "2026-03-01T09:30:00"],
    ["date-time", "2026-03-01T09:30:00.5+02:00", "2026-02-30T09:30:00Z"],
    ["date-time", "2026-03-01T23:59:59Z", "2026-03-01T9:30:00Z"],
    ["email", "ada@example.org", "ada"],
    ["uri", "https://example.org/a?b", "example"],
    ["uuid", "5f8f8c44-9d4b-4d61-8ac7-0c1f1b4ef6f0", "5f8f8c44"],
    ["ipv4", "127.0.0.1", "127.0.0.256"],
  ])("%s: %s and not %s", async (format, good, bad) => {
    expect(await faultIn({ format }, good)).toBeUndefined();
    expect(await faultIn({ format }, bad)).toEqual({ path: undefined, message: `must match format "${format}"` });
    expect(await faultIn({ properties: { at: { format } } }, { at: bad })).toMatchObject({ path: "at" });
  });

  test.each([5, null, {}, [], true])("of strings alone: %j is left to the type", async (value) => {
    expect(await faultIn({ format: "date" }, value)).toBeUndefined();
    expect(await faultIn({ format: "date", type: "string" }, value)).toMatchObject({ message: "must be string" });
  });

  test("unless only others know it", async () => {
    expect(await faultIn({ format: "postcode" }, "?")).toBeUndefined();
  });
});

describe("a fault names the place", () => {
  const string = { type: "string" };

  test.each<[string, object, Json, string | undefined, string]>([
    ["the root", string, 5, undefined, "must be string"],
    ["a property", { properties: { a: string } }, { a: 5 }, "a", "must be string"],
    ["a nested one", { properties: { a: { properties: { b: string } } } }, { a: { b: 5 } }, "a.b", "must be string"],
    [
      "an item",
      { properties: { items: { items: { properties: { name: string } } } } },
      { items: [{ name: 1 }] },
      "items.0.name",
      "must be string",
    ],
    ["a missing property", { required: ["a"] }, {}, "a", "is required"],
    ["a missing nested property", { properties: { a: { required: ["b"] } } }, { a: {} }, "a.b", "is required"],
    [
      "a property too many",
      { properties: { a: { additionalProperties: false } } },
      { a: { b: 1 } },
      "a.b",
      "must not be there",
    ],
    [
      "a property under a name that may not be",
      { propertyNames: { pattern: "^a" } },
      { b: 1 },
      "b",
      "must not be called so",
    ],
    ["a name with a slash", { properties: { "a/b~c": string } }, { "a/b~c": 5 }, "a/b~c", "must be string"],
    ["none of some values", { properties: { a: { enum: ["x", 1] } } }, { a: 2 }, "a", 'must be one of ["x",1]'],
    ["another constant", { const: { a: 1 } }, 2, undefined, 'must be {"a":1}'],
    ["what a condition requires", { if: { required: ["a"] }, else: { required: ["b"] } }, {}, "b", "is required"],
    ["no alternative", { anyOf: [string, { type: "null" }] }, 5, undefined, "must match a schema in anyOf"],
    ["what every object inherits", { required: ["constructor"] }, {}, "constructor", expect.any(String)],
  ])("of %s", async (_what, schema, value, path, message) => {
    expect(await faultIn(schema, value)).toEqual({ path, message });
  });

  test("and stays short, whatever the value and the schema hold", async () => {
    const long = "x".repeat(10_000);
    const extra = await faultIn({ additionalProperties: false }, { [long]: 1 });
    expect(extra?.path?.length).toBeLessThanOrEqual(200);
    expect((await faultIn({ enum: [long] }, 1))?.message.length).toBeLessThan(250);
    expect((await faultIn({ pattern: long }, "a"))?.message.length).toBeLessThan(250);
  });
});

describe("the draft", () => {
  const [tuple2020, tuple07] = [{ prefixItems: [{ const: 1 }] }, { items: [{ const: 1 }] }];

  test.each([
    ["2020-12 unless it is named", tuple2020],
    ["2020-12", { $schema: "https://json-schema.org/draft/2020-12/schema", ...tuple2020 }],
    ["2019-09", { $schema: "https://json-schema.org/draft/2019-09/schema", ...tuple07 }],
    ["draft-07", { $schema: "http://json-schema.org/draft-07/schema#", ...tuple07 }],
    ["draft-07 without its hash", { $schema: "https://json-schema.org/draft-07/schema", ...tuple07 }],
    ["draft-06", { $schema: "http://json-schema.org/draft-06/schema#", ...tuple07 }],
  ])("is %s", async (_draft, schema) => {
    expect(await faultIn(schema, [1])).toBeUndefined();
    expect(await faultIn(schema, [2])).toEqual({ path: "0", message: "must be 1" });
  });

  test.each(["http://json-schema.org/draft-04/schema#", "https://example.org/schema", "constructor", 7, null])(
    "is not %j",
    async ($schema) => {
      expect(await brokenBy({ $schema })).toMatch(/^\$schema must name draft 2020-12, 2019-09, draft-07 or draft-06/);
    },
  );

  test("is a draft without promises, whatever ajv makes of $async", async () => {
    expect(await faultIn({ $async: true, type: "string" }, 5)).toMatchObject({ message: "must be string" });
  });
});

describe("a broken schema is a plain error:", () => {
  const nested = (depth: number): object => (depth === 0 ? {} : { properties: { a: nested(depth - 1) } });
  const circle: Record<string, unknown> = {};
  circle["not"] = circle;

  test.each<[string, object, RegExp]>([
    ["a type that does not exist", { properties: { a: { type: "text" } } }, /^properties\.a\.type must be one of/],
    ["a keyword with a wrong value", { minLength: -1 }, /^minLength must be >= 0/],
    ["required that is no list", { required: "a" }, /^required must be array/],
    ["a pattern that is none", { pattern: "(" }, /^Invalid regular expression/],
    ["a $ref that leads nowhere", { $ref: "#/$defs/none" }, /can't resolve reference/],
    ["a $ref to elsewhere, which is not fetched", { $ref: "http://127.0.0.1:1/x.json" }, /can't resolve reference/],
    ["nesting without an end", circle, /circular/],
    ["nesting beyond the stack", nested(5_000), /nested too deeply/],
    ["the id of the draft", { $id: "https://json-schema.org/draft/2020-12/schema" }, /./],
    [
      "an async part",
      { not: { $ref: "#/$defs/a" }, $defs: { a: { $async: true, not: { $ref: "#/$defs/a" } } } },
      /async/,
    ],
  ])("%s", async (_what, schema, message) => {
    const said = await brokenBy(schema);
    expect(said).toMatch(message);
    expect(said).not.toBe("compiled");
    expect(said.length).toBeLessThanOrEqual(200);
  });

  test("a $ref that never comes to a value, when a value is checked", async () => {
    const check = await compileSchema({ $ref: "#" });
    expect(() => check(1)).toThrow(/^nested too deeply, or without an end$/);
  });

  test("and one with the same id or text may follow", async () => {
    const $id = "https://example.org/answer";
    expect(await faultIn({ $id, type: "string" }, 5)).toMatchObject({ message: "must be string" });
    expect(await faultIn({ $id, type: "number" }, 5)).toBeUndefined();
    expect(await brokenBy({ $ref: $id })).toMatch(/can't resolve reference/);
    expect(await brokenBy({ $ref: $id })).toMatch(/can't resolve reference/);
  });
});

describe("a compiled schema", () => {
  test("is compiled once for the same text, until many others were used since", async () => {
    const first = await compileSchema({ const: "first" });
    expect(await compileSchema({ const: "first" })).toBe(first);
    for (let other = 0; other < 63; other++) await compileSchema({ const: other });
    expect(await compileSchema({ const: "first" })).toBe(first);
    for (let other = 100; other < 164; other++) await compileSchema({ const: other });
    expect(await compileSchema({ const: "first" })).not.toBe(first);
  });

  test("means what it said when it was compiled", async () => {
    const schema = { enum: ["a"] };
    const check = await compileSchema(schema);
    schema.enum.push("b");
    expect(check("b")).toBeDefined();
    expect(await faultIn(schema, "b")).toBeUndefined();
  });
});
