import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createHerd } from "../index.ts";

test("a session file tells the assignment, a JSON object a line, for its owner's eyes only", async () => {
  const directory = await mkdtemp(join(tmpdir(), "herd-sessions-"));
  const agents = {
    it: {
      description: "x",
      run: async (task: string, worker: { askOwner(a: object): Promise<string> }) =>
        `${task} ${await worker.askOwner({ question: "Sure?" })}`,
    },
  };
  const open = () => createHerd({ directory, agents: agents as never, tickMs: 0 });
  const herd = await open();
  const run = await (herd.owner("me") as any).assign({ agent: "it", task: "go" });
  const path = join(directory, "sessions", `${run.sessionId}.jsonl`);
  await run.next();
  await herd.close();
  const linesOf = async () =>
    (await readFile(path, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  expect((await linesOf()).map(({ type }) => type)).toEqual(["session", "managed", "task", "question"]);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  // A lost file is made again from the store.
  await rm(path);
  const again = await open();
  await again.owner("me").reply({ label: "it", message: "yes" });
  await (await again.assignment(run.requestId)).result();
  await again.close();
  const lines = await linesOf();
  expect(lines[0]).toMatchObject({ type: "session", id: run.sessionId, cwd: process.cwd() });
  expect(lines.slice(1)).toMatchObject([
    { type: "managed", agentDefinition: "it" },
    { type: "task", text: "go", requestId: run.requestId },
    { type: "question", text: "Sure?" },
    { type: "answer", text: "yes" },
    { type: "result", status: "completed", text: "go yes" },
  ]);
  expect((await readdir(join(directory, "sessions"))).every((name) => name.endsWith(".jsonl"))).toBe(true);
  await rm(directory, { recursive: true, force: true });
});
