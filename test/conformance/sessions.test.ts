import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readFile, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { levelStore, type AgentDefinition } from "pi-herd";
import { createTestHerd, type TestHerd } from "pi-herd/testing";
import { asks, does, refusalOf, rowsOf } from "./support.ts";

/** Sessions of functions, kept in the store and in files of their own. */

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "herd-sessions-")));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
});

const at = (path: string) => join(root, path);

/** Gives back what its history holds, a word a line, then its task. */
const remembers: AgentDefinition = {
  description: "remembers",
  run: async (task, worker) => [...worker.history.map(wordOf), task].join(", "),
};

function wordOf(line: object): string {
  const { type, text } = line as { type: string; text?: unknown };
  return `${type} ${typeof text === "string" ? text : ""}`.trim();
}

async function onDisk(agents: Record<string, AgentDefinition> = { remembers, asks, does }) {
  await mkdir(at("work"), { recursive: true });
  const t = await createTestHerd({ agents, store: levelStore(at("store")), cwd: at("work") });
  onTestFinished(() => t.close());
  return t;
}

const assign = (t: TestHerd, request: object) =>
  t.owner.subagent({ action: "assign", task: "again", ...request }) as Promise<any>;
const fileOf = (id: string) => at(`store/sessions/${id}.jsonl`);

/** A session whose work is done and told. */
async function finished(t: TestHerd, task = "first", agent = "remembers") {
  const run = await t.owner.assign({ agent, task });
  await t.result();
  await t.idle();
  return run;
}

describe("a saved session", () => {
  test("goes on as a new run with its history, under the same id and in the same file", async () => {
    const t = await onDisk();
    const first = await finished(t);
    const again = await t.owner.assign({ session: first.sessionId, task: "second" });
    expect(again.sessionId).toBe(first.sessionId);
    expect(again.requestId).not.toBe(first.requestId);
    expect((await t.result()).text).toBe("task first, result first, second");
    await t.owner.assign({ session: first.sessionId, task: "third" });
    expect((await t.result()).text).toBe(
      "task first, result first, task second, result task first, result first, second, third",
    );
    await t.herd.close();
    const lines = (await readFile(fileOf(first.sessionId), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const assignment = ["task", "result"];
    const types = ["session", "managed", ...assignment, ...assignment, ...assignment];
    expect(lines.map(({ type }) => type)).toEqual(types);
    expect((await stat(fileOf(first.sessionId))).mode & 0o777).toBe(0o600);
  });

  test.each<[string, (id: string) => string | Promise<string>]>([
    ["its full id", (id) => id],
    ["its path", fileOf],
    ["its path, relative to the working directory", (id) => `../store/sessions/${id}.jsonl`],
    [
      "another path that leads there",
      async (id) => {
        await symlink(at("store"), at("linked"));
        return at(`linked/sessions/${id}.jsonl`);
      },
    ],
  ])("is found by %s, also before its file was written", async (_, referenceOf) => {
    const t = await onDisk();
    const { sessionId } = await finished(t);
    expect(await assign(t, { session: await referenceOf(sessionId) })).toMatchObject({
      ok: true,
      session_id: sessionId,
    });
    expect((await t.result()).text).toBe("task first, result first, again");
  });

  test("is found below the home folder", async () => {
    const t = await onDisk();
    const { sessionId } = await finished(t);
    await t.owner.assign({ session: fileOf(sessionId), task: "written" });
    await t.result();
    const home = await mkdtemp(join(homedir(), ".herd-test-"));
    onTestFinished(() => rm(home, { recursive: true, force: true }));
    await symlink(fileOf(sessionId), join(home, "s.jsonl"));
    const reference = `~${join(home, "s.jsonl").slice(homedir().length)}`;
    expect(await assign(t, { session: reference })).toMatchObject({ ok: true, session_id: sessionId });
  });

  test("survives the end of the process, and a file that was lost is made again from the store", async () => {
    const t = await onDisk();
    const { sessionId } = await finished(t);
    await t.crash();
    await rm(fileOf(sessionId), { force: true });
    expect(await assign(t, { session: fileOf(sessionId) })).toMatchObject({ ok: true });
    expect((await t.result()).text).toBe("task first, result first, again");
  });

  test("of a store without files goes on by its id", async () => {
    const t = await createTestHerd({ agents: { remembers } });
    const { sessionId } = await finished(t);
    await t.owner.assign({ session: sessionId, task: "again" });
    expect((await t.result()).text).toBe("task first, result first, again");
  });

  test("holds questions, answers and steers as well", async () => {
    const t = await onDisk();
    const run = await t.owner.assign({ agent: "asks", task: "first" });
    await (await t.question()).reply("yes");
    await t.result();
    await t.owner.assign({ agent: "remembers", task: "copy", fork: run.sessionId });
    expect((await t.result()).text).toBe("task first, question May I do first?, answer yes, result first: yes, copy");
  });

  test("follows the present definition of its agent", async () => {
    const t = await onDisk();
    const { sessionId } = await finished(t);
    await t.crash({ agents: { remembers: { ...remembers, run: async () => "the new code" } } });
    await t.owner.assign({ session: sessionId, task: "again" });
    expect((await t.result()).text).toBe("the new code");
  });
});

describe("a reference", () => {
  const bad: [string, (t: TestHerd) => string | Promise<string>, RegExp][] = [
    ["that is a prefix of an id", async (t) => (await finished(t)).sessionId.slice(0, 8), /prefixes are not allowed/],
    ["to an id that nobody has", () => randomUUID(), /There is no saved session/],
    ["to a file that is not there", () => "./gone.jsonl", /cannot be found/],
    ["to a folder", () => "./", /not a regular file/],
    [
      "below a file",
      async () => (await writeFile(at("work/plain"), ""), "./plain/s.jsonl"),
      /cannot be found: ENOTDIR/,
    ],
    ["to something else", async () => (await writeFile(at("work/x.jsonl"), "hello\n"), "./x.jsonl"), /cannot be read/],
    [
      "to a file without the header of a session",
      async () => (await writeFile(at("work/x.jsonl"), '{"type":"message"}\n'), "./x.jsonl"),
      /does not begin with the header/,
    ],
  ];

  test.each(
    bad.flatMap(([what, reference, message]) =>
      (["session", "fork"] as const).map((field) => ({ what, reference, message, field })),
    ),
  )("$what is refused for $field by name, and nothing is created", async ({ reference, message, field }) => {
    const t = await onDisk();
    const given = await reference(t);
    const before = await rowsOf(t);
    const answer = await assign(t, { [field]: given, ...(field === "fork" && { agent: "does" }) });
    expect(answer).toMatchObject({ ok: false, error: { category: "invalid_request", field, rollbackOccurred: false } });
    expect(answer.error.message).toMatch(message);
    expect(await rowsOf(t)).toBe(before);
  });

  test("to a session of unclear origin is refused: no agent, two agents, one that is no name, no folder, a folder that is gone", async () => {
    const t = await onDisk();
    const header = { type: "session", id: randomUUID(), cwd: at("work") };
    const managed = (agentDefinition: unknown) => ({ type: "managed", agentDefinition });
    const files: [object[], RegExp][] = [
      [[header], /was not made by a worker/],
      [[header, managed("does"), managed("asks")], /does not say plainly/],
      [[header, managed(7)], /does not say plainly/],
      [[{ ...header, cwd: " " }, managed("does")], /does not say where it worked/],
      [[{ type: "session", id: header.id }, managed("does")], /does not say where it worked/],
      [[{ ...header, cwd: at("gone") }, managed("does")], /which is gone/],
    ];
    const before = await rowsOf(t);
    for (const [lines, message] of files) {
      await writeFile(at("work/s.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      const { error } = await assign(t, { session: "s.jsonl" });
      expect(error).toMatchObject({ category: "invalid_request", field: "session" });
      expect(error.message).toMatch(message);
    }
    expect(await rowsOf(t)).toBe(before);
  });

  test("to a session of another program takes its agent from equal entries, whatever else stands there", async () => {
    const t = await onDisk();
    const id = randomUUID();
    const lines = [
      { type: "session", id, cwd: at("work") },
      { type: "managed", agentDefinition: "remembers" },
      { type: "custom", customType: "something-else", data: { agentDefinition: "asks" } },
      { type: "task", text: "theirs" },
      { type: "custom", customType: "pi-herd", data: { agentDefinition: "remembers" } },
    ];
    await writeFile(at("work/s.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
    expect(await assign(t, { session: "./s.jsonl" })).toMatchObject({ ok: true, label: "remembers", session_id: id });
    expect((await t.result()).text).toBe("custom, task theirs, custom, again");
    // From now on its lines stand here, in a file that says once whose it is.
    await t.herd.close();
    const written = (await readFile(fileOf(id), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(written.filter(({ type }) => type === "managed")).toHaveLength(1);
  });
});

test("a history that is too large for a function is refused with the bytes and the limit", async () => {
  const t = await onDisk();
  const lines = [
    { type: "session", id: randomUUID(), cwd: at("work") },
    { type: "managed", agentDefinition: "remembers" },
    { type: "task", text: "x".repeat(4 * 1024 * 1024) },
  ];
  await writeFile(at("work/s.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  for (const request of [{ session: "./s.jsonl" }, { agent: "does", fork: "./s.jsonl" }]) {
    const { error } = await assign(t, request);
    expect(error).toMatchObject({ category: "invalid_request", reason: "session_too_large" });
    expect(error.details).toMatchObject({ limit: 4 * 1024 * 1024 });
  }
});

describe("resuming", () => {
  test("one's own session is refused, and a fork advised", async () => {
    const t = await onDisk();
    const { sessionId } = await finished(t);
    const self = t.herd.owner(sessionId, { cwd: at("work") });
    const error = await refusalOf(self.assign({ session: sessionId, task: "again" }));
    expect(error).toMatchObject({ category: "invalid_request", reason: "own_session" });
    expect(error.nextAction).toContain("fork");
  });

  test("in another folder than its own is refused, and the same folder by another path is not", async () => {
    const t = await onDisk();
    const { sessionId } = await finished(t);
    await symlink(at("work"), at("same"));
    await mkdir(at("other"));
    expect((await assign(t, { session: sessionId, cwd: "../other" })).error).toMatchObject({
      category: "invalid_request",
      field: "cwd",
    });
    expect(await assign(t, { session: sessionId, cwd: at("same") })).toMatchObject({ ok: true });
  });

  test("is refused when its agent is gone, disabled or not the caller's to start", async () => {
    const t = await onDisk();
    const { sessionId } = await finished(t);
    await t.crash({ agents: { does } });
    expect((await assign(t, { session: sessionId })).error).toMatchObject({ reason: "unknown_agent" });
    await t.crash({ agents: { remembers: { ...remembers, enabled: false } } });
    expect((await assign(t, { session: sessionId })).error).toMatchObject({ reason: "disabled_agent" });
    const lead: AgentDefinition = {
      description: "leads",
      subagents: ["does"],
      run: async (task, worker) => (await worker.subagent({ action: "assign", session: task, task: "x" })).error.reason,
    };
    await t.crash({ agents: { remembers, does, lead } });
    await t.owner.assign({ agent: "lead", task: sessionId });
    expect((await t.result()).text).toBe("not_allowed");
  });
});

describe("a session in use", () => {
  test("is busy for a second assign, which leaves nothing behind", async () => {
    const t = await onDisk();
    const { sessionId } = await finished(t, "first", "does");
    await t.crash({ agents: { does: asks } });
    await t.owner.assign({ session: sessionId, task: "second" });
    const question = await t.question();
    const before = await rowsOf(t);
    expect((await assign(t, { session: sessionId })).error).toMatchObject({ category: "worker_busy" });
    expect(await rowsOf(t)).toBe(before);
    await question.reply("yes");
    expect((await t.result()).text).toBe("second: yes");
    await t.idle();
    expect((await t.owner.list()).workers).toEqual([]);
    expect(await assign(t, { session: sessionId })).toMatchObject({ ok: true });
  });

  test("by id and by path at the same moment is given once", async () => {
    const t = await onDisk();
    const { sessionId } = await finished(t, "first", "does");
    await t.crash({ agents: { does: asks } });
    const answers = await Promise.all([assign(t, { session: sessionId }), assign(t, { session: fileOf(sessionId) })]);
    expect(answers.map(({ ok }) => ok).toSorted()).toEqual([false, true]);
    expect(answers.find(({ ok }) => !ok).error).toMatchObject({ category: "worker_busy" });
    expect((await t.owner.list()).workers).toHaveLength(1);
  });

  test("by another owner is not found by this one", async () => {
    const t = await onDisk();
    const run = await t.owner.assign({ agent: "asks", task: "first" });
    await t.question();
    const other = t.herd.owner("somebody");
    expect(await refusalOf(other.assign({ session: run.sessionId, task: "x" }))).toMatchObject({
      category: "target_not_found",
    });
  });

  test("by a ready worker takes the task itself; what would change it is refused", async () => {
    const t = await onDisk();
    const run = await t.owner.assign({ agent: "remembers", task: "first", reusable: true });
    await t.result();
    const session = run.sessionId;
    expect((await assign(t, { session, label: "other" })).error).toMatchObject({ category: "target_not_found" });
    expect((await assign(t, { session, reusable: false })).error).toMatchObject({
      category: "invalid_request",
      field: "reusable",
    });
    expect(await assign(t, { session, reusable: true, label: "remembers" })).toMatchObject({
      ok: true,
      label: "remembers",
      session_id: session,
    });
    expect((await t.result()).text).toBe("task first, result first, again");
    expect((await t.owner.list()).workers).toMatchObject([{ label: "remembers", state: "ready" }]);
  });

  test("by a finished worker whose result nobody took is busy", async () => {
    const t = await onDisk();
    const other = t.herd.owner("somebody", { cwd: at("work") });
    const run = await other.assign({ agent: "does", task: "first" });
    await t.idle();
    const error = await refusalOf(other.assign({ session: run.sessionId, task: "x" }));
    expect(error).toMatchObject({ category: "worker_busy", reason: "session_busy" });
    await run.result();
    await t.idle();
    expect((await other.assign({ session: run.sessionId, task: "x" })).sessionId).toBe(run.sessionId);
  });
});

describe("a fork", () => {
  test("begins with a copy under an id of its own, and leaves its source byte for byte as it was", async () => {
    const t = await onDisk();
    const run = await t.owner.assign({ agent: "asks", task: "first" });
    await t.question();
    await t.idle();
    await t.owner.assign({ agent: "remembers", fork: fileOf(run.sessionId), task: "copy" });
    const source = await readFile(fileOf(run.sessionId), "utf8");
    const forked = await t.result();
    expect(forked.text).toBe("task first, question May I do first?, copy");
    expect(forked.details["piSessionId"]).not.toBe(run.sessionId);
    expect(await readFile(fileOf(run.sessionId), "utf8")).toBe(source);
    await t.owner.reply({ label: "asks", message: "yes" });
    expect((await t.result()).text).toBe("first: yes");
    // What the source does afterwards is not the copy's.
    await t.owner.assign({ session: forked.details["piSessionId"] as string, task: "more" });
    expect((await t.result()).text).not.toContain("answer");
  });

  test("works where its owner works, not where its source did, and belongs to its own agent", async () => {
    const t = await onDisk();
    const { sessionId } = await finished(t);
    await mkdir(at("elsewhere"));
    await t.owner.assign({ agent: "does", fork: sessionId, task: "copy", cwd: "../elsewhere", reusable: true });
    await t.result();
    expect((await t.owner.list()).workers).toMatchObject([{ agentDefinition: "does", cwd: at("elsewhere") }]);
    const forked = (await t.owner.list()).workers[0]?.piSessionId ?? "";
    await t.owner.close({ label: "does" });
    expect(await assign(t, { session: forked })).toMatchObject({ ok: true, label: "does" });
  });

  test("is never made of the caller's own session by itself", async () => {
    const t = await onDisk();
    const { sessionId } = await finished(t);
    const self = t.herd.owner(sessionId, { cwd: at("work") });
    const run = await self.assign({ agent: "remembers", task: "alone" });
    expect((await run.result()).text).toBe("alone");
    const copy = await self.assign({ agent: "remembers", task: "copy", fork: sessionId });
    expect((await copy.result()).text).toBe("task first, result first, copy");
  });
});
