import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { HerdError } from "../errors.ts";
import { writeOverride, type OverrideChange } from "./override.ts";
import { Definitions } from "./roster.ts";

let folder: string;
beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), "override-")), "agents");
  onTestFinished(() => rm(join(folder, ".."), { recursive: true, force: true }));
});

const file = (name = "scout.md") => join(folder, name);
const set = (field: OverrideChange["field"], value: OverrideChange["value"], name = "scout") =>
  writeOverride(folder, name, { field, value });
async function given(text: string, name = "scout.md"): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(file(name), text);
}
const text = (name = "scout.md") => readFile(file(name), "utf8");
const effective = async (name = "scout") => (await new Definitions([folder]).current()).definitions.get(name);

describe("an override that exists", () => {
  test.each<[string, string, OverrideChange["field"], OverrideChange["value"], string]>([
    ["sets", "---\nname: scout\n---\nA\n", "model", "m/n", "---\nname: scout\nmodel: m/n\n---\nA\n"],
    ["sets in empty frontmatter", "---\n---\n", "enabled", false, "---\nenabled: false\n---\n"],
    ["changes", "---\nmodel: a\nskills: [x]\n---\n", "model", "b", "---\nmodel: b\nskills: [x]\n---\n"],
    ["changes a quoted value", '---\n"model": "a"  \n---\n', "model", "b", "---\nmodel: b  \n---\n"],
    ["changes before a comment", "---\nmodel: a # fast\n---\n", "model", "b", "---\nmodel: b # fast\n---\n"],
    ["changes a blank value", "---\nmodel: # none\nx: 1\n---\n", "model", "b", "---\nmodel: b # none\nx: 1\n---\n"],
    ["changes a blank value at the end", "---\nmodel:\n---\n", "model", "b", "---\nmodel: b\n---\n"],
    ["changes a folded value", "---\nmodel: >-\n  a\nx: 1\n---\n", "model", "b", "---\nmodel: b\nx: 1\n---\n"],
    ["changes a bad value", "---\nthinking: hard\n---\n", "thinking", "high", "---\nthinking: high\n---\n"],
    ["changes to a text that needs quotes", "---\nmodel: a\n---\n", "model", "b: #c", '---\nmodel: "b: #c"\n---\n'],
    [
      "takes out",
      "---\nname: scout\nmodel: a # fast\nx: 1\n---\nA",
      "model",
      undefined,
      "---\nname: scout\nx: 1\n---\nA",
    ],
    ["takes out a folded value", "---\nmodel: >-\n  a\n\nx: 1\n---\n", "model", undefined, "---\n\nx: 1\n---\n"],
    ["takes out a blank value", "---\nmodel:\nx: 1\n---\n", "model", undefined, "---\nx: 1\n---\n"],
    ["takes out the only line", "---\nmodel: a\n---\nA", "model", undefined, "---\n---\nA"],
    ["takes out nothing", "---\nx: 1\n---\nA", "model", undefined, "---\nx: 1\n---\nA"],
    ["leaves alone what is so already", "---\nmodel:   a\n---\n", "model", "a", "---\nmodel:   a\n---\n"],
    [
      "ignores the word elsewhere",
      "---\nx:\n  model: a\n---\nmodel: a\n",
      "model",
      "b",
      "---\nx:\n  model: a\nmodel: b\n---\nmodel: a\n",
    ],
    [
      "keeps line ends, the byte order mark and the body",
      "\uFEFF---\r\nname: scout\r\nmodel: a\r\n# why\r\n---\r\nA\nB\r\n",
      "thinking",
      "off",
      "\uFEFF---\r\nname: scout\r\nmodel: a\r\n# why\r\nthinking: off\r\n---\r\nA\nB\r\n",
    ],
  ])("%s one line", async (_, before, field, value, after) => {
    await given(before);
    await set(field, value);
    expect(await text()).toBe(after);
  });

  test("is found by its name, in folders too", async () => {
    await mkdir(file("team"), { recursive: true });
    await given("---\nname: scout\n---\n", "team/mine.md");
    await set("model", "m");
    expect(await text("team/mine.md")).toBe("---\nname: scout\nmodel: m\n---\n");
    expect(await readdir(folder)).toEqual(["team"]);
  });

  test("keeps its permissions, and nothing else is left in the folder", async () => {
    await given("---\nname: scout\n---\n");
    await chmod(file(), 0o640);
    await set("model", "m");
    expect((await stat(file())).mode & 0o777).toBe(0o640);
    expect(await readdir(folder)).toEqual(["scout.md"]);
  });

  test.each([
    ["of a map on one line", "---\n{ name: scout, model: a }\n---\n", undefined],
    ["of a map on one line", "---\n{ name: scout }\n---\n", "b"],
    ["of an anchor that others use", "---\nmodel: &a x\ndescription: *a\n---\n", "b"],
    ["of broken YAML", "---\nmodel: [\n---\n", "b"],
    ["without an end", "---\nmodel: a\n", "b"],
    ["that is not text", Buffer.from("---\nmodel: a\n---\n\xff", "latin1"), "b"],
  ])("%s is refused and stays as it is", async (_, content, value) => {
    await mkdir(folder, { recursive: true });
    await writeFile(file(), content);
    const before = await readFile(file());
    await expect(set("model", value)).rejects.toMatchObject({ category: "invalid_request", field: "model" });
    expect(await readFile(file())).toEqual(before);
  });

  test("of two files is refused, both named", async () => {
    await given("---\nname: scout\n---\n", "a.md");
    await given("---\nname: scout\n---\n", "b.md");
    const error = await set("model", "m").catch((error: unknown) => error);
    expect(error).toBeInstanceOf(HerdError);
    expect((error as HerdError).message).toContain(`${file("a.md")} and ${file("b.md")}`);
  });
});

describe("an override that does not exist", () => {
  test("is made with the name and the field, and overlays the definition", async () => {
    await set("thinking", "high");
    expect(await text()).toBe("---\nname: scout\nthinking: high\n---\n");
    expect(await effective()).toMatchObject({
      thinking: "high",
      overrideSource: "global",
      tools: ["read", "grep", "find", "ls"],
    });
  });

  test("is not made to take a field out", async () => {
    await set("model", undefined);
    await expect(stat(folder)).rejects.toThrow("ENOENT");
  });

  test("does not touch a file that is no definition, or one of another name", async () => {
    await given("# Notes", "scout.md");
    await given("---\nname: other\n---\n", "scout-2.md");
    await set("model", "m");
    expect(await text("scout.md")).toBe("# Notes");
    expect(await text("scout-3.md")).toBe("---\nname: scout\nmodel: m\n---\n");
  });

  test.each([
    ["nul", "nul-.md"],
    ["COM1", "COM1-.md"],
    ["aux.x", "aux-.x.md"],
    ["console", "console.md"],
    ["a: b?", "a-b-.md"],
  ])("has a name that every system can give to a file: %s becomes %s", async (name, file) => {
    await set("model", "m", name);
    expect(await readdir(folder)).toEqual([file]);
  });

  test.each(["fh: architect #1", "my.example", ".hidden", "späher", "true", "12", "nul"])(
    "is found again under the name %s",
    async (name) => {
      await given(`---\nname: ${JSON.stringify(name)}\ndescription: D\n---\n`, "base.md");
      const over = `${folder}-over`;
      await writeOverride(over, name, { field: "enabled", value: false });
      const { definitions } = await new Definitions([folder, over]).current();
      expect(definitions.get(name)).toMatchObject({ enabled: false, overrideSource: "global" });
    },
  );
});

test.each<[string, OverrideChange["field"], OverrideChange["value"]]>([
  ["../scout", "model", "m"],
  ["", "model", "m"],
  ["scout", "model", " "],
  ["scout", "model", "a\nenabled: true"],
  ["scout", "model", true],
  ["scout", "thinking", "hard"],
  ["scout", "thinking", true],
  ["scout", "enabled", "true"],
])("a name or value that is none is refused before anything is written: %j, %s: %j", async (name, field, value) => {
  await expect(set(field, value, name)).rejects.toMatchObject({ category: "invalid_request", reason: "bad_override" });
  await expect(stat(folder)).rejects.toThrow("ENOENT");
});

test("changes made at once all count", async () => {
  await Promise.all([set("model", "m"), set("thinking", "low"), set("enabled", false), set("model", "n")]);
  expect(await text()).toBe("---\nname: scout\nmodel: n\nthinking: low\nenabled: false\n---\n");
});

test("a change that is refused does not hold up the next", async () => {
  const refused = set("thinking", "hard").catch((error: unknown) => error);
  await set("thinking", "low");
  expect(await refused).toBeInstanceOf(HerdError);
  expect(await effective()).toMatchObject({ thinking: "low" });
});

test("setting a field and taking it out again gives the file as it was", async () => {
  const line = fc.constantFrom(
    "name: scout",
    "skills: [x]",
    "# why",
    "",
    "description: |-\n  A\n  B",
    "tools:\n  - a",
    "x: 'y'",
  );
  const eol = fc.constantFrom("\n", "\r\n");
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(line),
      eol,
      fc.string(),
      fc.string({ minLength: 1 }),
      async (lines, eol, body, value) => {
        fc.pre(value.trim() !== "" && !/\p{Cc}/u.test(value) && !body.includes("\0") && body.isWellFormed());
        const before = ["---", ...lines.flatMap((it) => it.split("\n")), "---", body].join(eol);
        await given(before);
        await set("model", value);
        expect(await effective()).toMatchObject({ model: value.trim() });
        await set("model", undefined);
        expect(await text()).toBe(before);
      },
    ),
    { numRuns: 50 },
  );
});
