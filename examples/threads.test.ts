import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createHerd } from "pi-herd";
import { backendContract } from "pi-herd/contracts";
import { memoryStore } from "pi-herd/testing";
import { threads } from "./threads.ts";

backendContract("threads", async () => {
  const folder = await mkdtemp(join(tmpdir(), "herd-threads-"));
  // A thread that is done once a file says so.
  const program = `
    import { existsSync } from "node:fs";
    import { parentPort, workerData } from "node:worker_threads";
    parentPort.on("message", () => {
      const timer = setInterval(() => {
        if (!existsSync(${JSON.stringify(folder)} + "/" + workerData.runId)) return;
        clearInterval(timer);
        parentPort.postMessage({ type: "done", text: "done" });
      }, 5);
    });`;
  return {
    factory: threads(new URL(`data:text/javascript,${encodeURIComponent(program)}`)),
    finish: (runId) => writeFile(join(folder, runId), ""),
    dispose: () => rm(folder, { recursive: true, force: true }),
  };
});

async function herdOn(program: string | URL) {
  const folder = await mkdtemp(join(tmpdir(), "herd-threads-"));
  await writeFile(join(folder, "doer.md"), "---\nname: doer\ndescription: Does things\n---\n");
  const url = new URL(program, import.meta.url);
  const herd = await createHerd({ store: memoryStore(), definitions: [folder], backends: [threads(url)] });
  onTestFinished(async () => {
    await herd.close();
    await rm(folder, { recursive: true, force: true });
  });
  return herd.owner("ada");
}

test("a thread asks its owner, goes on with the answer and ends with a result", async () => {
  const owner = await herdOn("./threads-worker.ts");
  const run = await owner.assign({ agent: "doer", task: "sweep" });
  const told: string[] = [];
  for await (const event of run) {
    if (event.type === "question") {
      told.push(event.question.question);
      await event.question.reply("with a broom");
    } else told.push(event.result.text);
  }
  expect(told).toEqual(["How do I do this: sweep?", "Done with a broom."]);
});

test("a reusable thread takes its next task, and is gone when it was closed", async () => {
  const owner = await herdOn("./threads-worker.ts");
  const first = await owner.assign({ agent: "doer", task: "sweep", label: "one", reusable: true });
  await owner.reply({ askId: await askOf(first), message: "now" });
  expect((await first.result()).text).toBe("Done now.");
  const second = await owner.assign({ label: "one", task: "dust", wait: true });
  await owner.reply({ askId: await askOf(second), message: "later" });
  expect((await second.result()).text).toBe("Done later.");
  await owner.close({ label: "one" });
  expect((await owner.list()).workers).toEqual([]);
});

test("a thread that throws ends its assignment as failed", async () => {
  const owner = await herdOn(`data:text/javascript,${encodeURIComponent('throw new Error("no broom")')}`);
  const run = await owner.assign({ agent: "doer", task: "sweep" });
  expect(await run.result()).toMatchObject({ status: "failed", error: { code: "thread_error", message: "no broom" } });
});

test("a thread that ends by itself and has no session loses its assignment", async () => {
  const program = `import { parentPort } from "node:worker_threads";
    parentPort.on("message", () => process.exit());`;
  const owner = await herdOn(`data:text/javascript,${encodeURIComponent(program)}`);
  const run = await owner.assign({ agent: "doer", task: "sweep" });
  expect(await run.result()).toMatchObject({ status: "failed", error: { code: "worker_lost" } });
});

async function askOf(run: Awaited<ReturnType<Awaited<ReturnType<typeof herdOn>>["assign"]>>): Promise<string> {
  const event = await run.next();
  if (event.type !== "question") throw new Error("it did not ask");
  return event.question.askId;
}
