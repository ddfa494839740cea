import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { FIELD_NAMES } from "./fields.ts";
import { parseDefinition } from "./parse.ts";
import { Definitions } from "./roster.ts";

const page = await readFile(new URL("../../docs/definitions.md", import.meta.url), "utf8");
const rows = (heading: string) => {
  const [, section = ""] = page.split(`## ${heading}\n`);
  return [...(section.split("\n## ", 1)[0] ?? "").matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name);
};

test("the page on definitions lists every field and no other", () => {
  expect(rows("Fields").toSorted()).toEqual(FIELD_NAMES.toSorted());
});

test("the page on definitions lists every bundled one and no other", async () => {
  const { definitions } = await new Definitions([]).current();
  expect(rows("The bundled definitions").toSorted()).toEqual([...definitions.keys()]);
});

test("the examples on the page load without a finding", () => {
  const examples = [...page.matchAll(/^```markdown\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text);
  expect(examples).toHaveLength(2);
  for (const example of examples) {
    expect(parseDefinition("/agents/x.md", Buffer.from(example))).toMatchObject({ broken: false, findings: [] });
  }
});
