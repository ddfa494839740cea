import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type AgentDefinition, createHerd, type Herd } from "pi-herd";
import { createTestHerd, memoryStore } from "pi-herd/testing";
import { WorkerContext } from "../../machines/vocabulary.ts";
import { asks, does } from "./support.ts";

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "herd-folders-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function open(directory: string, agents: Record<string, AgentDefinition> = { asks, does }): Promise<Herd> {
  const herd = await createHerd({ directory, agents, tickMs: 0 });
  onTestFinished(() => herd.close({ graceMs: 0 }));
  return herd;
}

describe("a one-shot worker in a folder", () => {
  test("accepts once, gives one result that names its session, and goes while the session stays", async () => {
    const directory = await folder();
    const herd = await open(directory);
    const results: unknown[] = [];
    const owner = herd.owner("me", { onResult: (result) => results.push(result) });
    const request = { id: "once", agent: "does", task: "A" };
    const run = await owner.assign(request);
    expect((await owner.assign(request)).requestId).toBe(run.requestId);
    const { details } = await run.result();
    expect(details["piSessionId"]).toBe(run.sessionId);
    expect((await owner.list()).workers).toEqual([]);
    await herd.close();
    expect(await readdir(join(directory, "sessions"))).toEqual([`${run.sessionId}.jsonl`]);
    const again = await open(directory);
    const reopened = again.owner("me", { onResult: (result) => results.push(result) });
    expect((await reopened.list()).workers).toEqual([]);
    await again.close();
    expect(results).toHaveLength(1);
    expect((await stat(join(directory, "sessions", `${run.sessionId}.jsonl`))).isFile()).toBe(true);
  });

  test("stands once it was accepted, though its session file cannot be written and listeners throw", async () => {
    const directory = await folder();
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, "sessions"), "in the way");
    const herd = await open(directory);
    const warnings: string[] = [];
    const note = (warning: Error) => void warnings.push(warning.message);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    for (const event of ["state", "question", "result"] as const) {
      herd.on(event, () => {
        throw new Error("a listener broke");
      });
    }
    const owner = herd.owner("me");
    const answer = await owner.subagent({ action: "assign", agent: "asks", task: "A" });
    expect(answer).toMatchObject({ ok: true, action: "assign", label: "asks" });
    const run = await herd.assignment(answer.request_id);
    await run.next();
    await owner.reply({ label: "asks", message: "yes" });
    expect((await run.result()).text).toBe("A: yes");
    await herd.close();
    expect(warnings).toContainEqual(expect.stringContaining("session files cannot be written"));
    expect(warnings).toContainEqual(expect.stringContaining('a listener for "question" threw: a listener broke'));
  });
});

describe("records", () => {
  test("hold no field beyond their schema, and a store of an older format is refused", async () => {
    const store = memoryStore();
    const lead: AgentDefinition = {
      description: "delegates",
      subagents: ["asks"],
      run: async (task, worker) => {
        const part = await worker.assign({ agent: "asks", task, onQuestion: worker.escalate });
        return (await part.result()).text;
      },
    };
    const t = await createTestHerd({ agents: { asks, does, lead }, store });
    await t.owner.assign({ agent: "lead", task: "A" });
    await t.owner.assign({ agent: "asks", task: "B", deadlineMs: 60_000, metadata: { a: 1 } });
    await t.herd.owner("nobody there").assign({ agent: "does", task: "C" });
    await t.idle();
    const rows = await store.range({ gte: "a!", lt: "a~" });
    const workers = rows.map(([, text]) => JSON.parse(text)).filter(({ machine }) => machine === "worker");
    expect(workers).toHaveLength(4);
    for (const row of workers) {
      expect(Object.keys(row).toSorted()).toEqual(["context", "machine", "value", "version"]);
      // Parsing drops what the schema does not know.
      expect(row.context).toEqual(WorkerContext.parse(row.context));
    }
    await t.close();
    await store.open();
    const format = Number(store.get("m!format"));
    await store.batch([{ type: "put", key: "m!format", value: String(format - 1) }], { sync: true });
    await store.close();
    await expect(createTestHerd({ agents: { does }, store })).rejects.toThrow(
      new RegExp(`The store has format ${format - 1}, this version of pi-herd reads format ${format}\\. Next: `),
    );
  });
});
