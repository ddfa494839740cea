import { chmodSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folderWith } from "../../../test/e2e/folder.ts";
import { countFile, countFiles } from "./count.ts";
import { generatedFolders, survey } from "./survey.ts";

const count = (folder: string, leaveOut: string[] = [], signal = new AbortController().signal) =>
  countFiles(folder, { root: folder, leaveOut: new Set(leaveOut), signal, progress: () => undefined });
const look = (folder: string, leaveOut: string[] = []) =>
  survey(folder, { leaveOut: new Set(leaveOut), signal: new AbortController().signal });

/** Runs as a user whom permissions stop: they stop no root. */
async function asOrdinaryUser<T>(work: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(65_534);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}

describe("a file", () => {
  test.each([
    ["nothing", "", 0],
    ["a line without an end", "one", 1],
    ["a line with an end", "one\n", 1],
    ["lines that end with CRLF", "one\r\ntwo\r\n", 2],
    ["a last line without an end", "one\r\ntwo", 2],
    ["empty lines", "\n\n\n", 3],
    ["more than one chunk", "0123456789abcde\n".repeat(10_000), 10_000],
  ])("with %s is counted", async (_what, text, lines) => {
    const folder = folderWith({ "a.txt": text });
    expect(await countFile(join(folder, "a.txt"))).toEqual({ language: "Text", files: 1, lines, bytes: text.length });
  });

  test("that is binary has bytes and no lines", async () => {
    const folder = folderWith({ "a.ts": new Uint8Array([10, 10, 0, 10]) });
    expect(await countFile(join(folder, "a.ts"))).toEqual({ language: "Binary", files: 1, lines: 0, bytes: 4 });
  });

  test("has the bytes of its characters", async () => {
    const folder = folderWith({ "ü.md": "Größe 日本\n" });
    expect(await countFile(join(folder, "ü.md"))).toMatchObject({ language: "Markdown", bytes: 15 });
  });
});

describe("a folder", () => {
  test("is counted at any depth, by language", async () => {
    const folder = folderWith({
      "a.ts": "1\n2\n",
      "b/c.ts": "1\n",
      "b/日本 語/🙂.py": "x = 1\n",
      "b/logo.png": new Uint8Array([0x89, 0]),
    });
    expect(await count(folder)).toEqual({
      languages: {
        TypeScript: { files: 2, lines: 3, bytes: 6 },
        Python: { files: 1, lines: 1, bytes: 6 },
        Binary: { files: 1, lines: 0, bytes: 2 },
      },
      unreadable: { count: 0, paths: [] },
    });
  });

  test("is counted without .git at any depth and without what is left out", async () => {
    const folder = folderWith({
      "a.ts": "",
      ".git/b.ts": "",
      "sub/.git/c.ts": "",
      "dist/d.ts": "",
      "sub/dist/e.ts": "",
    });
    const { languages } = await count(folder, [join(folder, "dist")]);
    expect(languages["TypeScript"]?.files).toBe(2);
  });

  test("is counted without following links, so a link to itself is no loop", async () => {
    const folder = folderWith({ "a.ts": "1\n", "deep/b.ts": "1\n" });
    symlinkSync(folder, join(folder, "deep", "loop"));
    symlinkSync(join(folder, "a.ts"), join(folder, "link.ts"));
    symlinkSync(join(folder, "nowhere"), join(folder, "broken.ts"));
    const { languages, unreadable } = await count(folder);
    expect(languages["TypeScript"]?.files).toBe(2);
    expect(unreadable.count).toBe(0);
    expect((await look(folder)).folders).toEqual([{ name: "deep", files: 1, bytes: 2 }]);
  });

  test("names what cannot be read and counts the rest", async () => {
    const folder = folderWith({ "a.ts": "1\n", ".gitignore": "dist\n", "closed/b.ts": "1\n" });
    chmodSync(folder, 0o755);
    chmodSync(join(folder, ".gitignore"), 0);
    chmodSync(join(folder, "closed"), 0);
    const [counted, seen] = await asOrdinaryUser(() => Promise.all([count(folder), look(folder)]));
    chmodSync(join(folder, "closed"), 0o755);
    expect(counted.languages).toEqual({ TypeScript: { files: 1, lines: 1, bytes: 2 } });
    expect(counted.unreadable.count).toBe(2);
    expect(counted.unreadable.paths.toSorted()).toEqual([".gitignore", "closed"]);
    expect(seen).toMatchObject({ folders: [{ name: "closed", files: 0, bytes: 0 }], evidence: [] });
  });

  test("that is gone counts as nothing", async () => {
    expect(await count(join(folderWith({}), "gone"))).toEqual({ languages: {}, unreadable: { count: 0, paths: [] } });
  });

  test("is not counted on when its worker has to stop", async () => {
    const stop = new AbortController();
    stop.abort(new Error("the herd is closing"));
    await expect(count(folderWith({ "a.ts": "" }), [], stop.signal)).rejects.toThrow("the herd is closing");
  });
});

describe("a look at a folder", () => {
  test("shows its folders, biggest first, its loose files and the evidence", async () => {
    const folder = folderWith({
      ".gitignore": "dist\n",
      "README.md": "# x\n",
      "small/a": "1",
      "big/a/b": "12345",
      "big/c": "1",
      ".herd/store/x": "1234567890",
    });
    mkdirSync(join(folder, "empty"));
    expect(await look(folder, [join(folder, ".herd")])).toEqual({
      folders: [
        { name: "big", files: 2, bytes: 6 },
        { name: "small", files: 1, bytes: 1 },
        { name: "empty", files: 0, bytes: 0 },
      ],
      smaller: { folders: 0, files: 0, bytes: 0 },
      loose: { files: 2, bytes: 9 },
      evidence: [".gitignore"],
    });
  });

  test("lists two hundred folders and sums up the others", async () => {
    const folder = folderWith(Object.fromEntries(Array.from({ length: 203 }, (_, n) => [`folder-${n}/a`, "1"])));
    const seen = await look(folder);
    expect(seen.folders).toHaveLength(200);
    expect(seen.smaller).toEqual({ folders: 3, files: 3, bytes: 3 });
  });

  test("knows folders that look generated, the herd's own aside", async () => {
    const folder = folderWith({ "src/a": "", "node_modules/a": "", "dist/a": "", ".herd/a": "", target: "a file" });
    expect(await generatedFolders(folder, join(folder, ".herd"))).toEqual(["dist", "node_modules"]);
  });
});
