import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { HerdError } from "../errors.ts";
import { composeBody } from "./body.ts";
import type { Definition } from "./definition.ts";

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "body-")));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, "sub"));
  await writeFile(join(root, "a.md"), "\uFEFFText of A.\r\nMore.\r\n");
  await writeFile(join(root, "sub", "b c.md"), "Text of B.\n@a.md\n");
});

const define = (...texts: string[]): Definition => ({
  name: "x",
  description: "X",
  enabled: true,
  systemPromptMode: "append",
  body: texts.map((text, index) => ({ text, file: join(root, index === 0 ? "x.md" : "sub/x.md") })),
  extensionSource: "global",
});
const compose = (texts: string[], given: string[] = []) => composeBody(define(...texts), new Set(given));

describe("a role prompt", () => {
  test.each<[string, string[], string]>([
    ["of one part stands alone", ["\n\nYou work.\r\nWell.\n\n"], "You work.\nWell."],
    ["of several parts has a blank line between them", ["One.\n", "\n \n", "Two.\n"], "One.\n\nTwo."],
    ["has files in the place of their lines", ["Before.\n@a.md\nAfter."], "Before.\nText of A.\nMore.\nAfter."],
    ["finds files from the file that names them", ["One.", "@../a.md"], "One.\n\nText of A.\nMore."],
    ["takes quoted paths and does not read on in files", ['@"sub/b c.md"'], "Text of B.\n@a.md"],
    ["has every file once", ["@a.md\n@./sub/../a.md\nEnd.", "@../a.md"], "Text of A.\nMore.\nEnd."],
    ["keeps what is no whole line", ["See @a.md\n@a.md, too\n    @a.md"], "See @a.md\n@a.md, too\n    @a.md"],
    ["keeps fenced code", ["```ts\n@gone\n~~~\n@gone\n```\n@a.md"], "```ts\n@gone\n~~~\n@gone\n```\nText of A.\nMore."],
    ["is empty without a body", [], ""],
  ])("%s", async (_, texts, expected) => {
    expect(await compose(texts)).toBe(expected);
  });

  test("leaves out what the caller gives, also where a link leads to it", async () => {
    await symlink(join(root, "a.md"), join(root, "link.md"));
    expect(await compose(["Before.\n@link.md\n@a.md\nAfter."], [join(root, "a.md")])).toBe("Before.\nAfter.");
  });

  test("finds files by absolute path and from the home folder", async () => {
    for (const name of ["HOME", "USERPROFILE"]) vi.stubEnv(name, root);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await compose(["@~/a.md"])).toBe("Text of A.\nMore.");
    expect(await compose([`@${root}/a.md`])).toBe("Text of A.\nMore.");
  });
});

describe("a file of a role prompt is refused, definition, line and place named, when it", () => {
  test.each<[string, (path: string) => Promise<void>]>([
    ["is missing", () => Promise.resolve()],
    ["is a folder", async (path) => void (await mkdir(path))],
    ["is a broken link", (path) => symlink(join(root, "nowhere"), path)],
    ["is not UTF-8", (path) => writeFile(path, Buffer.from([0x66, 0xff]))],
    ["holds NUL", (path) => writeFile(path, "a\0b")],
    ["is too large", (path) => writeFile(path, "x".repeat(1_048_577))],
  ])("%s", async (_, make) => {
    await make(join(root, "bad"));
    const error = await compose(["You work.\n@bad\n"]).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(HerdError);
    expect(error).toMatchObject({ category: "invalid_request", reason: "unreadable_prompt_file", field: "agent" });
    expect((error as HerdError).message).toContain(`The role prompt of "x" in ${join(root, "x.md")} refers to "@bad"`);
  });
});
