import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { connected, folder, hello, open, refusal, rude, until } from "../../test/support/control.ts";
import { connectHerd, createHerd, type Question, type Result } from "../index.ts";

const message = (fields: object) => `${JSON.stringify({ jsonrpc: "2.0", ...fields })}\n`;

/** Something that listens where a herd would, and does what a test wants it to do. */
async function impostor(serve: (socket: Socket, directory: string) => void): Promise<string> {
  const directory = folder();
  const path = join(directory, "s");
  const server = createServer((socket) =>
    serve(
      socket.on("error", () => undefined),
      directory,
    ),
  ).listen(path);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  writeFileSync(join(directory, "control"), `${path}\n`);
  return directory;
}

const welcome = (directory: string) =>
  message({ id: 0, result: { protocol: 1, pid: 1, version: "x", directory, status: "open" } });

describe("what a herd hears on its socket", () => {
  test.each([
    ["a cancellation of nothing", message({ method: "$/cancelRequest" })],
    ["a cancellation of null", message({ method: "$/cancelRequest", params: null })],
    ["parameters by place", hello + message({ id: 1, method: "herd/owners", params: [1] })],
  ])("%s ends that connection and nothing else", async (_, text) => {
    const { herd, directory } = await open();
    const { socket, said } = await rude(directory);
    socket.write(text);
    await said;
    expect(await (await connected(directory)).owners()).toEqual([]);
    expect(herd.status).toBe("open");
  });
});

describe("an acknowledgement", () => {
  test("of a handler that has just resolved is not lost by closing the client", async () => {
    const { herd: server, directory } = await open();
    for (let round = 0; round < 5; round++) {
      const client = await connectHerd({ directory });
      const got = Promise.withResolvers<Result>();
      const owner = client.owner(`me-${round}`, { onResult: (result) => got.resolve(result) });
      await owner.assign({ agent: "echo", task: "A" });
      await got.promise;
      await client.close();
      expect((await server.owner(`me-${round}`).list()).workers).toEqual([]);
    }
  });

  test("of a result that a client has is not lost by closing the herd", async () => {
    const directory = folder();
    const { herd: server } = await open({ directory });
    const client = await connected(directory);
    const runs = await Promise.all(
      Array.from({ length: 20 }, (_, n) => client.owner("me").assign({ agent: "echo", task: `${n}` })),
    );
    await Promise.all(runs.map((run) => run.result()));
    await server.close();
    const { herd } = await open({ directory });
    expect((await herd.owner("me").list()).workers).toEqual([]);
  });
});

describe("much at once", () => {
  test("comes through, to a receiver and to whoever calls", { timeout: 60_000 }, async () => {
    // Each is twice as long as JSON.
    const text = '"'.repeat(4_000_000);
    const { directory } = await open({
      agents: { big: { description: "Says much", run: async () => text } },
    });
    const client = await connected(directory);
    const owner = client.owner("me");
    const runs = [];
    for (let n = 0; n < 12; n++) runs.push(await owner.assign({ agent: "big", task: `${n}` }));
    await until(async () => (await client.owners())[0]?.results === runs.length);
    const came: Result[] = [];
    const receiving = await connected(directory);
    await new Promise<void>((allCame) => {
      receiving.owner("me", { onResult: (result) => void (came.push(result) === runs.length && allCame()) });
    });
    expect(new Set(came.map((result) => result.text.length))).toEqual(new Set([text.length]));
  });
});

describe("a herd that is closing", () => {
  test("is not connected to, and whoever waits gets the next one", async () => {
    const directory = folder();
    const stopping = Promise.withResolvers<void>();
    const first = await createHerd({
      directory,
      tickMs: 0,
      agents: { slow: { description: "Stops late", run: () => stopping.promise.then(() => "late") } },
    });
    await first.owner("me").assign({ agent: "slow", task: "A" });
    const closing = first.close();
    expect(await refusal(connectHerd({ directory }))).toMatchObject({
      reason: "not_running",
      message: expect.stringContaining("is closing it"),
    });
    const coming = connectHerd({ directory, waitForHerdMs: 20_000 });
    stopping.resolve();
    await closing;
    await open({ directory });
    const next = await coming;
    expect(next.status).toBe("open");
    await next.close();
  });
});

describe("a process that listens and is no good", () => {
  test("hangs up instead of saying hello: it is not running", async () => {
    const directory = await impostor((socket) => socket.destroy());
    expect(await refusal(connectHerd({ directory }))).toMatchObject({ reason: "not_running" });
  });

  test("hangs up right after hello: every call says so, and closing does not hang", async () => {
    const directory = await impostor((socket, folderOfIt) => {
      socket.once("data", () => socket.end(welcome(folderOfIt)));
    });
    const client = await connectHerd({ directory }).catch((error: unknown) => error);
    const reason = client instanceof Error ? (client as { reason?: string }).reason : undefined;
    if (reason === undefined) {
      await (client as Awaited<ReturnType<typeof connectHerd>>).close();
    }
    expect([undefined, "not_running"]).toContain(reason);
  });

  test("does not answer any more: waiting can be given up, and closing has an end", async () => {
    const directory = await impostor((socket, folderOfIt) => {
      socket.once("data", () => socket.write(welcome(folderOfIt)));
    });
    const client = await connectHerd({ directory });
    const pending = refusal(client.assignment("a"));
    await client.close({ graceMs: 50 });
    expect(await pending).toMatchObject({ reason: "herd_closed" });
  });
});

test("a stopped process lets whoever waits for it give up", async () => {
  const directory = folder();
  const program = join(directory, "program.ts");
  const entry = JSON.stringify(new URL("../index.ts", import.meta.url).href);
  writeFileSync(
    program,
    `import { createHerd } from ${entry};
     const asks = { description: "Asks", run: (_task, worker) => worker.askOwner({ question: "Which?" }) };
     await createHerd({ directory: ${JSON.stringify(join(directory, "herd"))}, agents: { asks } });
     console.log("ready");
     setInterval(() => undefined, 1_000);`,
  );
  const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  const client = await connectHerd({ directory: join(directory, "herd") });
  const run = await client.owner("me").assign({ agent: "asks", task: "A" });
  await run.next();
  child.kill("SIGSTOP");
  const stop = new AbortController();
  const waiting = run.result({ signal: stop.signal });
  const reason = new Error("enough");
  stop.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  await client.close({ graceMs: 50 });
  expect(client.status).toBe("closed");
});

test("the files of a reply through a handle are looked up where its owner works", async () => {
  const { directory } = await open();
  const there = folder();
  writeFileSync(join(there, "a.txt"), "A");
  const client = await connected(directory);
  const run = await client.owner("me", { cwd: there }).assign({ agent: "greeter", task: "Hello" });
  for await (const event of run) if (event.type === "question") await event.question.reply("Ada", { files: ["a.txt"] });
  expect((await run.status()).state).toBe("completed");
});

test("a receiver that takes over gets what the one before it never got over", async () => {
  const { directory } = await open();
  const first = await connected(directory);
  const second = await connected(directory);
  const hangs = Promise.withResolvers<Question>();
  const owner = first.owner("me", {
    onQuestion: (question) => (hangs.resolve(question), new Promise(() => undefined)),
  });
  await owner.assign({ agent: "greeter", task: "Hello" });
  const { askId } = await hangs.promise;
  const came: Question[] = [];
  second.owner("me", { onQuestion: (question) => void came.push(question), replace: true });
  await until(async () => {
    await second.tick();
    return came.length > 0;
  });
  expect(came[0]?.askId).toBe(askId);
  await first.close({ graceMs: 0 });
});
