import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createTestHerd, type TestHerd } from "pi-herd/testing";
import { asks, does, rowsOf } from "./support.ts";

/** Sessions whose files a backend keeps. */

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "herd-sessions-")));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
});

const at = (path: string) => join(root, path);
const assign = (t: TestHerd, request: object) =>
  t.owner.subagent({ action: "assign", task: "again", ...request }) as Promise<any>;

describe("a session of a process", () => {
  /** Session files as a backend keeps them, in a folder of its own. */
  async function processes() {
    await mkdir(at("work"), { recursive: true });
    const folder = at("backend/2026");
    await mkdir(folder, { recursive: true });
    const t = await createTestHerd({ agents: { does, asks }, cwd: at("work"), sessionFolders: [at("backend")] });
    const script = t.scripted("does");
    const save = async (name: string, id: string) => {
      const lines = [
        { type: "session", id, cwd: at("work") },
        { type: "custom", customType: "pi-herd", data: { agentDefinition: "does" } },
      ];
      const path = join(folder, name);
      await writeFile(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      return path;
    };
    return { t, script, save };
  }

  test("is continued by its real path, whichever way it is named, and forked from exactly its source", async () => {
    const { t, script, save } = await processes();
    const id = randomUUID();
    const path = await save(`2026_${id}.jsonl`, id);
    await symlink(path, at("work/link.jsonl"));
    for (const reference of [id, path, "./link.jsonl"]) {
      const answer = await assign(t, { session: reference, label: "one" });
      expect(answer).toMatchObject({ ok: true, session_id: id });
      const run = await script.run("one");
      expect(run.order("start")).toMatchObject({ sessionId: id, session: { continues: path } });
      await run.turn();
      await run.settle("done");
      await t.result();
    }
    await assign(t, { agent: "does", fork: id, label: "copy" });
    const { session, sessionId } = (await script.run("copy")).order("start");
    expect(session).toEqual({ forks: path });
    expect(sessionId).not.toBe(id);
    await assign(t, { agent: "does", label: "fresh" });
    expect((await script.run("fresh")).order("start")).not.toHaveProperty("session");
  });

  test("whose id two files have is ambiguous by its id, and plain by its path", async () => {
    const { t, script, save } = await processes();
    const id = randomUUID();
    const path = await save(`a_${id}.jsonl`, id);
    await save(`b_${id}.jsonl`, id);
    for (const request of [{ session: id }, { agent: "does", fork: id }]) {
      const { error } = await assign(t, request);
      expect(error).toMatchObject({ category: "invalid_request" });
      expect(error.message).toContain("2 saved sessions");
    }
    expect(script.runs).toEqual([]);
    expect(await assign(t, { session: path })).toMatchObject({ ok: true });
    // The other file of the same id is the same session: it stays busy, whatever its path says.
    const { error } = await assign(t, { session: at(`backend/2026/b_${id}.jsonl`) });
    expect(error).toMatchObject({ category: "worker_busy" });
    expect(script.runs).toHaveLength(1);
  });

  test("that two live runs stand for is ambiguous", async () => {
    const { t, script, save } = await processes();
    const [one, two] = [randomUUID(), randomUUID()];
    const first = await save("first.jsonl", one);
    const second = await save("second.jsonl", two);
    await assign(t, { session: first, label: "first" });
    await assign(t, { session: second, label: "second" });
    await save("first.jsonl", two);
    const before = await rowsOf(t);
    expect((await assign(t, { session: first })).error).toMatchObject({ category: "target_ambiguous" });
    expect(await rowsOf(t)).toBe(before);
    expect(script.runs).toHaveLength(2);
  });

  test("is busy while its worker works, also by a path that its backend has told since", async () => {
    const { t, script, save } = await processes();
    await assign(t, { agent: "does", label: "one" });
    const run = await script.run("one");
    const path = await save("told.jsonl", run.order("start").sessionId);
    await run.identify(run.order("start").sessionId, { sessionPath: path });
    await symlink(path, at("work/link.jsonl"));
    await run.turn();
    expect((await t.owner.subagent({ action: "list" })).workers).toMatchObject([{ pi_session_path: path }]);
    const before = await rowsOf(t);
    for (const session of [path, "./link.jsonl", run.order("start").sessionId]) {
      expect((await assign(t, { session })).error).toMatchObject({ category: "worker_busy" });
    }
    expect(await rowsOf(t)).toBe(before);
    await run.settle("done");
    await t.result();
    expect(await assign(t, { session: path, label: "one" })).toMatchObject({ ok: true });
  });

  test("without a file cannot be forked or continued yet, and an unrelated one that is gone does no harm", async () => {
    const { t, script, save } = await processes();
    await assign(t, { agent: "does", label: "one" });
    const run = await script.run("one");
    const { sessionId } = run.order("start");
    const { error } = await assign(t, { agent: "asks", fork: sessionId });
    expect(error).toMatchObject({ category: "invalid_request", field: "fork" });
    expect(error.message).toContain(sessionId);
    const id = randomUUID();
    const path = await save("x.jsonl", id);
    await assign(t, { session: path, label: "two" });
    await rm(path);
    const other = randomUUID();
    expect(await assign(t, { session: await save("y.jsonl", other), label: "three" })).toMatchObject({ ok: true });
    expect(script.runs.map(({ label }) => label)).toEqual(["one", "two", "three"]);
  });
});
