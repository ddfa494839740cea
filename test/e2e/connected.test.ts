import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { connectHerd, HerdError, type Herd, type Question } from "../../runtime/index.ts";
import { folderWith } from "./folder.ts";
import { herd, root, start, until, type Running } from "./herd-process.ts";

const entry = JSON.stringify(new URL("runtime/index.ts", `file://${root}/`).href);

/** Has the herd open, until it is killed. */
const program = `
  import { createHerd } from ${entry};
  const asks = { description: "Asks", run: async (task, worker) => task + " " + (await worker.askOwner({ question: "Which?" })) };
  await createHerd({ directory: process.argv[2], agents: { asks }, tickMs: 0 });
  console.log("ready");
  setInterval(() => undefined, 1_000);
`;

/** Receives for an owner, and never gets over the first question. */
const client = `
  import { connectHerd } from ${entry};
  const herd = await connectHerd({ directory: process.argv[2] });
  const onQuestion = ({ attempt }) => (console.log("ready " + attempt), new Promise(() => undefined));
  await herd.owner("me", { onQuestion }).list();
`;

/** Has the herd open and only waits. */
const waits = `
  import { createHerd } from ${entry};
  const asks = { description: "Asks", run: async (task, worker) => task + " " + (await worker.askOwner({ question: "Which?" })) };
  const herd = await createHerd({ directory: process.argv[2], agents: { asks } });
  herd.on("unheard", () => undefined);
  herd.on("state", ({ to }) => to === "blocked" && console.log("asks"));
  const run = await herd.owner("me").assign({ agent: "asks", label: "a", task: "Take" });
  console.log((await run.result()).text);
  await herd.close();
`;

/** Has the herd open and waits for nothing but a visit, whose run nothing else keeps the process alive for. */
const visits = `
  import { setTimeout } from "node:timers/promises";
  import { createHerd } from ${entry};
  const slow = { description: "Waits", run: (task) => setTimeout(300, task + " done", { ref: false }) };
  const herd = await createHerd({ directory: process.argv[2], agents: { slow } });
  const subject = { scope: "shop", keys: { order: "7" } };
  console.log((await herd.visit({ subject, start: { agent: "slow", task: "A" } })).result);
  const door = await herd.door({ subject, target: "slow" });
  console.log((await door.visit({ task: "B" })).result);
  await herd.visit({ subject, start: { agent: "slow", task: "C" }, waits: false });
`;

let folder: string;
let directory: string;
beforeEach(() => {
  folder = folderWith({
    "program.ts": program,
    "client.ts": client,
    "waits.ts": waits,
    "visits.ts": visits,
    "package.json": '{ "type": "module" }',
  });
  directory = join(folder, "herd");
});

/** A process of ours, once it is ready. */
async function ready(file: string): Promise<Running> {
  const running = start(process.execPath, [join(folder, file), directory], folder);
  await new Promise<void>((resolve, reject) => {
    running.child.stdout?.on("data", (text: string) => text.startsWith("ready") && resolve());
    void running.ended.then(({ stderr }) => reject(new Error(`it ended: ${stderr}`)));
  });
  return running;
}

async function killed({ child, ended }: Running): Promise<void> {
  child.kill("SIGKILL");
  expect(await ended).toMatchObject({ signal: "SIGKILL" });
}

async function connected(): Promise<Herd> {
  const herd = await connectHerd({ directory });
  onTestFinished(() => herd.close());
  return herd;
}

test("a program that is killed leaves its clients an error that says what to do, and nothing is lost or done twice", async () => {
  const first = await ready("program.ts");
  const herd = await connected();
  const run = await herd.owner("me").assign({ id: "a", agent: "asks", task: "Take" });
  await run.next();
  const waiting = run.result().catch((error: unknown) => error);
  await killed(first);
  expect(await waiting).toBeInstanceOf(HerdError);
  expect(await waiting).toMatchObject({
    reason: "connection_lost",
    nextAction: expect.stringContaining("connect again"),
  });
  expect(herd.status).toBe("closed");
  await expect(connectHerd({ directory })).rejects.toMatchObject({ reason: "not_running" });

  // The socket that it left behind is replaced.
  await ready("program.ts");
  const again = await connected();
  const same = await again.owner("me").assign({ id: "a", agent: "asks", task: "Take" });
  expect(same.requestId).toBe(run.requestId);
  await again.owner("me").reply({ label: same.label, message: "this" });
  expect((await same.result()).text).toBe("Take this");
  expect((await again.owner("me").list()).workers).toEqual([]);
});

test("a client that is killed while it has a question gives it back", async () => {
  await ready("program.ts");
  const herd = await connected();
  const run = await herd.owner("me").assign({ agent: "asks", task: "Take" });
  const other = await ready("client.ts");
  await killed(other);
  const question = Promise.withResolvers<Question>();
  herd.owner("me", { onQuestion: question.resolve, replace: true });
  const { attempt, reply } = await question.promise;
  expect(attempt).toBe(2);
  await reply("that");
  expect((await run.result()).text).toBe("Take that");
});

test("a program that waits for a result stays alive until somebody else has answered, and then ends by itself", async () => {
  const waits = start(process.execPath, [join(folder, "waits.ts"), directory], folder);
  let said = "";
  waits.child.stdout?.on("data", (text: string) => (said += text));
  await until("the question", () => said.includes("asks"));
  expect(await herd(["reply", "a", "this", "--directory", directory], folder)).toMatchObject({ code: 0, stderr: "" });
  expect(await waits.ended).toMatchObject({ code: 0, stdout: "asks\nTake this\n", stderr: "" });
});

test("a program that waits for a visit stays alive until its run has come to something, and then ends by itself", async () => {
  const { ended } = start(process.execPath, [join(folder, "visits.ts"), directory], folder);
  expect(await ended).toMatchObject({ code: 0, stdout: "A done\nB done\n", stderr: "" });
});
