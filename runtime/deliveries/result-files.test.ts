import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ResultFiles } from "./result-files.ts";

let directory: string;
let path: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "herd-results-"));
  path = join(directory, "results", "one.txt");
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
});

const files = ({ passive = false } = {}) => new ResultFiles(directory, passive);
const modeOf = async (at: string) => (await stat(at)).mode & 0o777;

describe("a result's text", () => {
  test("is saved byte for byte, for its owner alone", async () => {
    const text = "\uFEFFeins\r\n\u001b[31mzwei\u001b[0m\0 😀";
    expect(files().save("one", text)).toEqual({ path });
    expect(await readFile(path)).toEqual(Buffer.from(text));
    expect([await modeOf(join(directory, "results")), await modeOf(path)]).toEqual([0o700, 0o600]);
  });

  test("is saved once, and left alone by later processes", async () => {
    const first = files();
    first.save("one", "text");
    await writeFile(path, "TEXT");
    expect(first.save("one", "text")).toEqual({ path });
    expect(files().save("one", "text")).toEqual({ path });
    expect(await readFile(path, "utf8")).toBe("TEXT");
  });

  test("whose writing was cut short is saved again, with its mode", async () => {
    await mkdir(join(directory, "results"));
    await writeFile(path, "te", { mode: 0o644 });
    expect(files().save("one", "text")).toEqual({ path });
    expect(await readFile(path, "utf8")).toBe("text");
    expect(await modeOf(path)).toBe(0o600);
  });

  test("never goes through a link that stands in its place", async () => {
    await mkdir(join(directory, "results"));
    await writeFile(join(directory, "other"), "mine");
    await symlink(join(directory, "other"), path);
    expect(files().save("one", "text")).toEqual({ path });
    expect(await readFile(join(directory, "other"), "utf8")).toBe("mine");
    expect(await readFile(path, "utf8")).toBe("text");
  });

  test("that cannot be saved says why, and is saved once that is over", async () => {
    await writeFile(join(directory, "results"), "in the way");
    const kept = files();
    expect(kept.save("one", "text")).toEqual({ error: expect.stringMatching(/ENOTDIR/) });
    await rm(join(directory, "results"));
    expect(kept.save("one", "text")).toEqual({ path });
  });

  test("cannot be saved in a store that is gone, which does not appear again", async () => {
    await rm(directory, { recursive: true });
    expect(files().save("one", "text")).toEqual({ error: expect.stringMatching(/ENOENT/) });
    await expect(stat(directory)).rejects.toThrow("ENOENT");
  });

  test("has no file in a store without a folder", async () => {
    const nowhere = new ResultFiles(undefined, false);
    expect(nowhere.save("one", "text")).toEqual({});
    await expect(nowhere.remove("one")).resolves.toBeUndefined();
  });

  test("is only looked for by a herd that changes nothing", async () => {
    expect(files({ passive: true }).save("one", "text")).toEqual({ error: "the store is open for reading only" });
    expect(await readdir(directory)).toEqual([]);
    files().save("one", "text");
    expect(files({ passive: true }).save("one", "text")).toEqual({ path });
  });

  test("goes with its request, and can be saved again by whoever still knows it", async () => {
    const kept = files();
    kept.save("one", "text");
    kept.save("two", "text");
    await kept.remove("one");
    await kept.remove("never");
    expect(await readdir(join(directory, "results"))).toEqual(["two.txt"]);
    expect(kept.save("one", "text")).toEqual({ path });
    expect(await readFile(path, "utf8")).toBe("text");
  });

  test("that cannot be removed is said to be left, and keeps nothing else from going", async () => {
    await mkdir(path, { recursive: true });
    const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
    await files().remove("one");
    expect(await warned).toMatchObject({ name: "HerdResultFileWarning", message: expect.stringContaining(path) });
  });

  test("is looked up again when too many were saved since, and found", async () => {
    const kept = files();
    for (let i = 0; i < 1_030; i++) kept.save(`r${i}`, "text");
    await rm(join(directory, "results", "r0.txt"));
    await rm(join(directory, "results", "r1029.txt"));
    kept.save("r0", "text");
    kept.save("r1029", "text");
    const found = new Set(await readdir(join(directory, "results")));
    expect([found.has("r0.txt"), found.has("r1029.txt")]).toEqual([true, false]);
  });
});
