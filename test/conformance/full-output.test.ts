import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { createHerd, levelStore, toolText } from "pi-herd";
import { createTestHerd } from "pi-herd/testing";
import { does, herdOnDisk } from "./support.ts";

/** So many that a list of them is longer than a model sees. */
const many = Object.fromEntries(Array.from({ length: 2_100 }, (_, index) => [`does-${index}`, does]));
const list = { action: "list" } as const;

describe("a list that is longer than a model sees of it", () => {
  test("is saved whole in a file of its user's alone, which the answer and its text name", async () => {
    const t = await herdOnDisk({ agents: many });
    const answer = await t.owner.subagent(list);
    const path = answer.full_output_path as string;
    expect(dirname(path)).toBe(join(t.store.directory as string, "outputs"));
    const whole = await readFile(path, "utf8");
    for (const name of Object.keys(many)) expect(whole).toContain(`- ${name}`);
    const text = toolText(answer);
    expect(text).toMatch(/\n\n\[truncated: all \d+ lines are in .*\]$/);
    expect(text).toContain(path);
    expect(whole.startsWith(text.slice(0, text.indexOf("\n\n[truncated")))).toBe(true);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
  });

  test("leaves no more than the 16 newest files", async () => {
    const t = await herdOnDisk({ agents: many });
    const paths: string[] = [];
    for (let count = 0; count < 18; count++) paths.push((await t.owner.subagent(list)).full_output_path);
    const kept = await readdir(join(t.store.directory as string, "outputs"));
    expect(kept).toHaveLength(16);
    expect(new Set(paths).size).toBe(18);
  });

  test("is answered all the same when it cannot be saved, and says why", async () => {
    const t = await herdOnDisk({ agents: many });
    const folder = join(t.store.directory as string, "outputs");
    await writeFile(folder, "in the way");
    const answer = await t.owner.subagent(list);
    expect(answer).toMatchObject({ ok: true, full_output_error: expect.stringContaining("ENOTDIR") });
    expect(answer.full_output_path).toBeUndefined();
    expect(toolText(answer)).toContain("could not be saved as text");
    await rm(folder);
    expect((await t.owner.subagent(list)).full_output_path).toBeDefined();
  });

  test("has no file without a disk, nor in a herd that only reads", async () => {
    const t = await createTestHerd({ agents: many });
    expect(Object.keys(await t.owner.subagent(list))).toEqual(["ok", "workers", "agent_definitions"]);
    const stored = await herdOnDisk({ agents: many });
    const directory = stored.store.directory as string;
    await stored.close();
    const reader = await createHerd({ agents: many, store: levelStore(directory), passive: true });
    const answer = await reader.owner("me").subagent(list);
    await reader.close();
    expect(answer).not.toHaveProperty("full_output_path");
    expect(await readdir(directory)).not.toContain("outputs");
  });
});

test("a short list has no file", async () => {
  const t = await herdOnDisk({ agents: { does } });
  expect(await t.owner.subagent(list)).not.toHaveProperty("full_output_path");
  expect(await readdir(t.store.directory as string)).not.toContain("outputs");
});
