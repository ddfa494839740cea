import { expect, test } from "vitest";
import { copyJson, isPlain } from "./json.ts";

test("a copy shares nothing with the original, and has its fields in their order", () => {
  const original = { b: [1, { deep: true }], a: null, text: "é" };
  const copy = copyJson(original) as typeof original;
  expect(JSON.stringify(copy)).toBe('{"b":[1,{"deep":true}],"a":null,"text":"é"}');
  original.b.push(2);
  expect(copy.b).toHaveLength(2);
});

test("undefined alone is null, an undefined field is absent", () => {
  expect(copyJson(undefined)).toBeNull();
  expect(copyJson({ a: undefined, b: 1 })).toEqual({ b: 1 });
});

test("a field named __proto__ is a field like any other", () => {
  const copy = copyJson(JSON.parse('{"__proto__":{"admin":true}}'));
  expect(JSON.stringify(copy)).toBe('{"__proto__":{"admin":true}}');
  expect((copy as { admin?: boolean }).admin).toBeUndefined();
});

const circle: Record<string, unknown> = {};
circle["self"] = circle;

test.each([
  [{ a: [Number.NaN] }, "NaN at .a[0]"],
  [Number.POSITIVE_INFINITY, "Infinity"],
  [{ a: { b: () => 1 } }, "a function at .a.b"],
  [[undefined], "undefined at [0]"],
  [1n, "a bigint"],
  [Symbol("s"), "a symbol"],
  [{ at: new Date(0) }, "an object of the class Date at .at"],
  [new Map(), "an object of the class Map"],
  [circle, "more than 512 levels of nesting"],
])("%o is no JSON, and it is said where", (value, what) => {
  expect(() => copyJson(value)).toThrow(what);
});

test("an object without a prototype is plain, a list and an instance are not", () => {
  expect([{}, Object.create(null), [], new Date(), null, "x"].map(isPlain)).toEqual([
    ...[true, true],
    ...[false, false, false, false],
  ]);
});
