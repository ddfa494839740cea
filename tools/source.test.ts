import { expect, test } from "vitest";
import { closing, lineOf, scan } from "./source.ts";

test("the code keeps its length and lines", () => {
  const text = 'const a = "x"; // note\n/* one\ntwo */ const b = `t ${a} u`;\n';
  const { code } = scan(text);
  expect(code).toHaveLength(text.length);
  expect(code.split("\n")).toHaveLength(text.split("\n").length);
});

test("comments and the insides of strings are blank, code is not", () => {
  const { code } = scan("one(); // two()\n/* three() */ four(\"five()\", 'six()');");
  expect(code).toMatch(/one\(\)/);
  expect(code).toMatch(/four\("/);
  expect(code).not.toMatch(/two|three|five|six/);
});

test("a quote inside a comment opens no string", () => {
  expect(scan("// don't\nreal();").code).toContain("real()");
});

test("a comment mark inside a string opens no comment", () => {
  expect(scan('const url = "http://x"; real();').code).toContain("real()");
});

test("code inside a template stays, nested templates and braces included", () => {
  const { code, literals } = scan("a(`x ${f({ b: `y ${g} z` })} w`); real();");
  expect(code).toContain("f({ b: `");
  expect(code).toContain("${g}");
  expect(code).not.toMatch(/[xyzw]/);
  expect(code).toContain("real()");
  expect(literals.get(2)?.raw).toBe("x ${f({ b: `y ${g} z` })} w");
});

test("escaped quotes do not close a literal", () => {
  const { literals } = scan(String.raw`"a \" b"`);
  expect(literals.get(0)?.raw).toBe(String.raw`a \" b`);
});

test.each([
  ["after an assignment", `const r = /["'\`]/g; real();`],
  ["after return", `return /"/.test(x); real();`],
  ["with a slash in a class", `match(/[/"]/); real();`],
  ["after an arrow", `(x) => /"/.test(x); real();`],
])("a quote in a regular expression opens no string: %s", (_, text) => {
  expect(scan(text).code).toContain("real()");
});

test("a division is not a regular expression", () => {
  expect(scan('a = b / c; d("e") / 2;').code).toBe('a = b / c; d(" ") / 2;');
});

test("a first line that names the interpreter is a comment", () => {
  expect(scan("#!/usr/bin/env don't\nreal();").code).toContain("real()");
});

test("brackets close across nesting", () => {
  expect(closing("a(b[c], { d: (e) }) f", 1)).toBe(19);
  expect(closing("a(b", 1)).toBe(3);
});

test("lines count from one", () => {
  expect(lineOf("a\nb\nc", 0)).toBe(1);
  expect(lineOf("a\nb\nc", 4)).toBe(3);
});
