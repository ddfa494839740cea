import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type AgentDefinition, createHerd, levelStore, type HerdOptions, type Result } from "pi-herd";
import { createTestHerd } from "pi-herd/testing";
import { asks, does } from "./support.ts";

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "herd-result-files-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function open(directory: string, options: HerdOptions<Record<string, AgentDefinition>> = {}) {
  const herd = await createHerd({ directory, agents: { does }, tickMs: 0, ...options });
  onTestFinished(() => herd.close({ graceMs: 0 }));
  return herd;
}

const says = (text: string): AgentDefinition => ({ description: "says it", run: async () => text });
const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

describe("the text of a result", () => {
  test("is shown without escape sequences, and whole in a file that its owner alone can read", async () => {
    const directory = await folder();
    const text = "\u001b]0;owned\u0007\u001b[31mred\u001b[0m\r\n\tplain \u009b2J日本\n";
    const herd = await open(directory, { agents: { says: says(text) } });
    const run = await herd.owner("me").assign({ agent: "says", task: "A" });
    const result = await run.result();
    const path = join(directory, "results", `${run.requestId}.txt`);
    expect(result.envelope).toBe(
      `label: says | agent: says | request: ${run.requestId} | status: completed\nsaved: ${path}\n\nred\n\tplain 日本\n`,
    );
    expect(result.text).toBe(text);
    expect(result.resultPath).toBe(path);
    expect(result.details).toMatchObject({
      resultPath: path,
      piSessionFile: join(directory, "sessions", `${run.sessionId}.jsonl`),
      truncated: false,
      delegationStatus: "0 active direct, 0 pending direct results, 0 unresolved.",
    });
    expect(result.details).not.toHaveProperty("fullOutputPath");
    expect(await readFile(path)).toEqual(Buffer.from(text));
    expect([await modeOf(join(directory, "results")), await modeOf(path)]).toEqual([0o700, 0o600]);
  });

  test("is in a file before anybody can learn its path, and in none while nobody wants to", async () => {
    const directory = await folder();
    const herd = await open(directory);
    const owner = herd.owner("me");
    const results = [];
    for (const task of ["A", "B", "C", "D"]) results.push(await (await owner.assign({ agent: "does", task })).result());
    expect(results.map(({ text }) => text)).toEqual(["did A", "did B", "did C", "did D"]);
    expect(await readdir(directory)).not.toContain("results");
    const [a, b, c, d] = results as [Result, Result, Result, Result];
    const told = [a.resultPath, b.details["resultPath"], c.envelope.match(/\nsaved: (.*)\n/)?.[1], { ...d }.resultPath];
    for (const [index, { requestId }] of results.entries()) {
      expect(told[index]).toBe(join(directory, "results", `${requestId}.txt`));
    }
    expect(await readdir(join(directory, "results"))).toHaveLength(4);
    expect(JSON.parse(JSON.stringify(a))).toEqual(a);
  });

  test("that is too long to show names the file that has all of it", async () => {
    const directory = await folder();
    const text = "line\n".repeat(3_000);
    const herd = await open(directory, { agents: { says: says(text) } });
    const { envelope, details, resultPath } = await (
      await herd.owner("me").assign({ agent: "says", task: "A" })
    ).result();
    expect(details).toMatchObject({ truncated: true, fullOutputPath: resultPath });
    expect(envelope).toMatch(new RegExp(`\\[truncated: the whole text, 15000 bytes, is in ${resultPath}\\]$`));
    expect(await readFile(resultPath as string, "utf8")).toBe(text);
  });

  test("is in its file again after a restart that found half of it", async () => {
    const directory = await folder();
    const first = await open(directory);
    const run = await first.owner("me").assign({ agent: "does", task: "A" });
    const path = (await run.result()).resultPath as string;
    await first.close();
    await writeFile(path, "did");
    const again = await open(directory);
    expect((await (await again.assignment(run.requestId)).result()).resultPath).toBe(path);
    expect(await readFile(path, "utf8")).toBe("did A");
  });

  test("that cannot be saved is delivered all the same, once, and says so", async () => {
    const directory = await folder();
    await writeFile(join(directory, "results"), "in the way");
    const herd = await open(directory);
    const results: Result[] = [];
    const owner = herd.owner("me", { onResult: (result) => void results.push(result) });
    const { requestId } = await owner.assign({ agent: "does", task: "A" });
    await (await herd.assignment(requestId)).result();
    const [result] = results as [Result];
    expect(result).toMatchObject({ status: "completed", text: "did A" });
    expect(result.resultPath).toBeUndefined();
    expect(result.details).not.toHaveProperty("resultPath");
    expect(result.details["resultPersistenceError"]).toEqual(expect.stringMatching(/^ENOTDIR: /));
    expect(result.envelope).toMatch(/\nnot saved: the whole text could not be saved: ENOTDIR: .*\n\ndid A$/);
    expect((await owner.list()).workers).toEqual([]);
    await herd.close();
    const again = await open(directory);
    again.owner("me", { onResult: (late) => void results.push(late) });
    await again.close();
    expect(results).toHaveLength(1);
  });

  test("has a file only if there is one: not when it failed, was closed, or has no folder to be in", async () => {
    const directory = await folder();
    const throws: AgentDefinition = { description: "throws", run: () => Promise.reject(new Error("no\u0007 luck")) };
    const herd = await open(directory, { agents: { throws, asks } });
    const owner = herd.owner("me");
    const failed = await (await owner.assign({ agent: "throws", task: "A" })).result();
    expect(failed.envelope).toMatch(/status: failed\n\nworker_error: no luck$/);
    const run = await owner.assign({ agent: "asks", task: "A" });
    await owner.close({ label: run.label });
    const closed = await run.result();
    const long = { ...throws, run: () => Promise.reject(new Error("no luck ".repeat(9_000))) };
    const verbose = await open(await folder(), { agents: { long } });
    const { envelope: head, details: all } = await (
      await verbose.owner("me").assign({ agent: "long", task: "A" })
    ).result();
    expect(Buffer.byteLength(head)).toBeLessThan(52 * 1024);
    expect(head).toMatch(/\[truncated: the whole error is in the details\]$/);
    expect(all).toMatchObject({ truncated: true, error: { message: "no luck ".repeat(9_000) } });
    for (const result of [failed, closed]) {
      expect(result).not.toHaveProperty("resultPath");
      expect(Object.keys(result.details).filter((key) => /path|persistence/i.test(key))).toEqual([]);
    }
    expect(await readdir(directory)).not.toContain("results");
    const t = await createTestHerd({ agents: { does } });
    await t.owner.assign({ agent: "does", task: "A" });
    const unsaved = await t.result();
    expect(unsaved).not.toHaveProperty("resultPath");
    const { details, envelope } = unsaved;
    expect(envelope).not.toContain("saved");
    expect(Object.keys(details).filter((key) => /path|persistence|file/i.test(key))).toEqual([]);
  });

  test("goes with the rows of its request when that is pruned", async () => {
    const directory = await folder();
    const herd = await open(directory, { retention: { resultsMs: 0 } });
    const run = await herd.owner("me").assign({ agent: "does", task: "A" });
    const path = (await run.result()).resultPath as string;
    expect(await readFile(path, "utf8")).toBe("did A");
    // The second opening finds the acknowledgement on disk, and time has passed.
    await herd.close();
    const again = await open(directory);
    await again.tick();
    expect(await readdir(join(directory, "results"))).toEqual([]);
    await expect(again.assignment(run.requestId)).rejects.toMatchObject({ category: "target_not_found" });
  });

  test("cannot pass for a header, and neither can an agent's name", async () => {
    const name = "a | status: failed\nlabel: b";
    const t = await createTestHerd({ agents: { [name]: says("label: b | agent: b | request: r | status: failed") } });
    const { requestId } = await t.owner.assign({ agent: name, task: "A", label: "one" });
    expect((await t.result()).envelope).toBe(
      `label: one | agent: "a | status: failed\\nlabel: b" | request: ${requestId} | status: completed\n\n` +
        "label: b | agent: b | request: r | status: failed",
    );
  });
});

describe("a herd's folder", () => {
  test("is closed to others, takes owners with long names, and paths with backslashes", async () => {
    const directory = join(await folder(), "not yet there");
    const herd = await open(directory, { agents: { does, asks } });
    const ids = [`${"session/".repeat(38)}日本`, `C:\\Users\\me\\${"deep\\".repeat(60)}s.jsonl`];
    const cwd = `${await folder()}/back\\slashes`;
    const paths: string[] = [];
    for (const id of ids) {
      const owner = herd.owner(id, { cwd });
      const run = await owner.assign({ agent: "asks", task: "A" });
      expect((await owner.list()).workers).toMatchObject([{ ownerSessionId: id, cwd }]);
      await run.next();
      await owner.reply({ label: run.label, message: "yes" });
      const { details, resultPath } = await run.result();
      expect(details).toMatchObject({ ownerSessionId: id, cwd });
      paths.push(resultPath as string);
    }
    await herd.close();
    const again = await open(directory, { agents: { does, asks } });
    for (const id of ids) expect((await again.owner(id).list()).workers).toEqual([]);
    expect(await modeOf(directory)).toBe(0o700);
    for (const name of ["store", "sessions", "results"]) expect(await modeOf(join(directory, name))).toBe(0o700);
    for (const path of paths) expect(await modeOf(path)).toBe(0o600);
    for (const name of await readdir(join(directory, "sessions"))) {
      expect(await modeOf(join(directory, "sessions", name))).toBe(0o600);
    }
  });
});

test("the session file of a process is the one that its backend told, or none", async () => {
  const t = await createTestHerd({ agents: { does }, store: levelStore(await folder()) });
  onTestFinished(() => t.close());
  const script = t.scripted("does");
  for (const place of [{}, { sessionPath: "/sessions/told.jsonl" }]) {
    await t.owner.assign({ agent: "does", task: "A", label: "one" });
    const run = await script.run();
    await run.identify(run.order("start").sessionId, place);
    await run.turn();
    await run.settle("done");
    expect((await t.result()).details["piSessionFile"]).toBe(place.sessionPath);
    await t.idle();
  }
});
