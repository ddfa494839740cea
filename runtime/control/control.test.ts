import type { HerdInstance } from "../herd-instance.ts";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { connected, folder, hello, open, refusal, rude, socketOf, until } from "../../test/support/control.ts";
import { connectHerd, HerdError, type Question, type Result, type Worker } from "../index.ts";
import { MAX_MESSAGE_BYTES } from "./wire.ts";

describe("a herd of another process", () => {
  test("takes an assignment, tells its question, takes the reply, and gives the one result", async () => {
    const { directory } = await open();
    const herd = await connected(directory);
    expect(herd.status).toBe("open");
    const run = await herd.owner("me").assign({ id: "hello", agent: "greeter", task: "Hello", metadata: { a: [1] } });
    const told: string[] = [];
    const replies: unknown[] = [];
    for await (const event of run) {
      if (event.type === "question") {
        const { askId, question, reply } = event.question;
        told.push(question);
        replies.push(await reply("Ada", { id: "r1" }), await reply("Ada", { id: "r1" }), await refusal(reply("Bob")));
        replies.push(askId);
      } else told.push(event.result.text, JSON.stringify(event.result.metadata));
    }
    const askId = replies.pop();
    expect(replies[0]).toMatchObject({ askId, assignmentRequestId: run.requestId });
    expect(replies[1]).toEqual(replies[0]);
    expect(replies[2]).toMatchObject({ reason: "already_answered" });
    expect(told).toEqual(["Whom?", "Hello, Ada!", '{"a":[1]}']);
    const again = await herd.owner("me").assign({ id: "hello", agent: "greeter", task: "Hello", metadata: { a: [1] } });
    expect(again).toMatchObject({ requestId: run.requestId, label: run.label, sessionId: run.sessionId });
    expect((await again.result()).resultPath).toBe(join(directory, "results", `${run.requestId}.txt`));
    expect((await (await herd.assignment(run.requestId)).result()).text).toBe("Hello, Ada!");
  });

  test("acknowledges a result once the client has it, and not before", async () => {
    const { herd: server, directory } = await open();
    const herd = await connected(directory);
    const run = await herd.owner("me").assign({ agent: "echo", task: "A" });
    const looked = await until(async () => (await run.status({ acknowledge: false })).result);
    expect(looked?.text).toBe("A");
    expect((await server.owner("me").list()).workers).toMatchObject([{ state: "settling" }]);
    await run.result();
    await herd.close();
    expect((await server.owner("me").list()).workers).toEqual([]);
  });

  test("can have its owner's receiver at a client, which detaches and takes over", async () => {
    const { herd: server, directory } = await open();
    const first = await connected(directory);
    const second = await connected(directory);
    const questions: Question[] = [];
    const answered = Promise.withResolvers<Result>();
    const owner = first.owner("me", { onQuestion: (question) => void questions.push(question) });
    await owner.assign({ agent: "greeter", task: "Hello" });
    await until(() => questions[0]);
    expect(await refusal(second.owner("me", { onQuestion: () => undefined }).list())).toMatchObject({
      reason: "receiver_exists",
    });
    owner.detach();
    second.owner("me", { onResult: (result) => answered.resolve(result), replace: true });
    await questions[0]?.reply("Ada");
    expect((await answered.promise).text).toBe("Hello, Ada!");
    await until(async () => (await server.owner("me").list()).workers.length === 0);
  });

  test("has a handler that throws tried again, and its delivery wait when the client goes", async () => {
    const { herd: server, directory } = await open();
    const undelivered: string[] = [];
    server.on("undelivered", ({ error }) => void undelivered.push(String(error)));
    const herd = await connected(directory);
    herd.owner("me", {
      onResult: () => {
        throw new Error("not now");
      },
    });
    await herd.owner("me").assign({ agent: "echo", task: "A" });
    await until(() => undelivered[0]);
    expect(undelivered[0]).toContain("not now");
    await herd.close();
    const other = await connected(directory);
    const came = Promise.withResolvers<Result>();
    // The first client's place is free.
    other.owner("me", { onResult: (result) => came.resolve(result) });
    expect(await came.promise).toMatchObject({ text: "A" });
  });

  test("tells its events, until they are no longer listened to", async () => {
    const { directory } = await open();
    const herd = await connected(directory);
    const states: string[] = [];
    const stop = herd.on("state", ({ label, to }) => void states.push(`${label} ${to}`));
    const asked = Promise.withResolvers<Question>();
    herd.on("question", (question) => asked.resolve(question));
    const run = await herd.owner("me").assign({ agent: "parent", task: "A" });
    const question = await asked.promise;
    await until(() => states.includes("greeter blocked"));
    stop();
    const before = states.length;
    await (
      await run.next()
    ).type;
    await herd.owner("me").reply({ label: run.label, message: "Ada" });
    expect((await run.result()).text).toBe("Hi, Ada!");
    expect(states).toHaveLength(before);
    expect(question.label).toBe("greeter");
  });

  test("lists, steers, closes and speaks the tools' JSON as it does in its own process", async () => {
    const { herd: server, directory } = await open();
    const herd = await connected(directory);
    const owner = herd.owner({ scope: "order", keys: { number: "7" } });
    const run = await owner.assign({ agent: "greeter", task: "Hello", label: "g" });
    await run.next();
    const rows = (await owner.list()).workers;
    expect(rows).toMatchObject([{ label: "g", state: "blocked", question: { question: "Whom?" } }]);
    const here = server.owner({ scope: "order", keys: { number: "7" } });
    expect((await here.list()).workers).toEqual(rows);
    expect(await owner.subagent({ action: "list" })).toMatchObject({ ok: true, workers: [{ label: "g" }] });
    expect(await owner.subagent({ action: "nap" })).toMatchObject({
      ok: false,
      error: { category: "invalid_request" },
    });
    expect(await refusal(owner.steer({ label: "g", message: "Be kind" }))).toMatchObject({ reason: "already_waiting" });
    expect(await herd.owners()).toMatchObject([
      { scope: "order", keys: { number: "7" }, workers: 1, asking: 1, results: 0, workspaces: ["order?number=7"] },
    ]);
    expect(await owner.close({ label: "g" })).toEqual({ label: "g" });
    expect((await run.result()).status).toBe("closed");
    expect(await herd.owners()).toEqual([]);
    await herd.tick(new Date(Date.now() + 1_000));
  });

  test("lists what is parked on a subject, and takes it once", async () => {
    const { herd: server, directory } = await open();
    const herd = await connected(directory);
    const subject = { scope: "shop", keys: { order: "7" } };
    const run = await herd.owner(subject).assign({ agent: "echo", task: "A" });
    await until(async () => (await herd.parked(subject)).length > 0);
    expect(await herd.parked(subject)).toEqual(await server.owner(subject).parked());
    expect(await herd.owner(subject).parked()).toMatchObject([{ id: run.requestId, status: "finished", result: "A" }]);
    expect(await refusal(herd.take(subject, "nothing"))).toMatchObject({ reason: "entry_gone" });
    expect(await herd.take(subject, run.requestId)).toMatchObject({ text: "A" });
    expect(await herd.take(subject)).toBeUndefined();
    expect(await refusal(herd.parked({ scope: "shop", keys: {} }))).toMatchObject({ reason: "bad_owner" });
  });

  test("is visited, with waiting for what the run comes to or without", async () => {
    const { directory } = await open();
    const herd = await connected(directory);
    const subject = { scope: "shop", keys: { order: "7" } };
    const asking = await herd.visit({ subject, start: { agent: "greeter", task: "Hello" } });
    expect(asking).toMatchObject({ action: "started", kind: "asks", asks: [{ question: "Whom?" }] });
    const resume = [{ id: asking.asks?.[0]?.id ?? "", payload: "Ada" }];
    const told = await herd.visit({ subject, resume, waits: false });
    expect(told).toEqual({ action: "resumed", kind: "none", cancelled: [], requestId: asking.requestId });
    await until(async () => (await herd.parked(subject))[0]?.status === "finished");
    const take = asking.requestId ?? "";
    expect(await herd.visit({ subject, take })).toMatchObject({ kind: "result", result: "Hello, Ada!" });
    expect(await refusal(herd.visit({ subject, waits: 1 } as never))).toMatchObject({ field: "waits" });
  });

  test("looks files up where the client is", async () => {
    const { directory } = await open();
    const herd = await connected(directory);
    const there = folder();
    writeFileSync(join(there, "a.txt"), "A");
    const run = await herd.owner("me", { cwd: there }).assign({ agent: "where", task: "A", files: ["a.txt"] });
    expect((await run.result()).text).toBe(join(there, "a.txt"));
  });

  test("stops waiting on a signal, and nothing else", async () => {
    const { directory } = await open();
    const herd = await connected(directory);
    const run = await herd.owner("me").assign({ agent: "greeter", task: "Hello" });
    const reason = new Error("enough");
    const stop = new AbortController();
    const waiting = run.result({ signal: stop.signal });
    stop.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(herd.owner("me").assign({ agent: "echo", task: "A", signal: stop.signal })).rejects.toBe(reason);
    expect((await run.status()).state).toMatch(/working|blocked/);
    expect(await refusal(herd.owner("me").assign(undefined as never))).toMatchObject({ category: "invalid_request" });
  });

  test("serves ten clients at once, each its own answers", async () => {
    const { directory } = await open();
    const clients = await Promise.all(Array.from({ length: 10 }, () => connected(directory)));
    const texts = await Promise.all(
      clients.map(async (client, number) => {
        const runs = await Promise.all(
          Array.from({ length: 5 }, (_, n) =>
            client.owner(`o${number}`).assign({ agent: "echo", task: `${number}.${n}` }),
          ),
        );
        return Promise.all(runs.map(async (run) => (await run.result()).text));
      }),
    );
    expect(texts).toEqual(clients.map((_, number) => Array.from({ length: 5 }, (__, n) => `${number}.${n}`)));
  });

  test("tells a client that is one too many so, and serves the others", async () => {
    const { directory } = await open();
    const first = await connected(directory);
    const path = socketOf(directory);
    const idle = Array.from({ length: 255 }, () => connect(path));
    onTestFinished(() => idle.forEach((socket) => socket.destroy()));
    await Promise.all(idle.map((socket) => once(socket, "connect")));
    expect(await refusal(connectHerd({ directory }))).toMatchObject({ reason: "overloaded", retryAfterMs: 1_000 });
    expect(await first.owners()).toEqual([]);
    idle[0]?.destroy();
    const next = await until(() => connectHerd({ directory }).catch(() => undefined));
    await next?.close();
  });

  test("refuses what it is given wrong, with the field and the rule", async () => {
    const { directory } = await open();
    const herd = await connected(directory);
    expect(await refusal(herd.owner("me").assign({ agent: "none", task: "A" }))).toMatchObject({
      reason: "unknown_agent",
    });
    expect(await refusal(herd.assignment("nothing"))).toMatchObject({ reason: "target_not_found" });
    expect(await refusal(connectHerd({ directory: "" }))).toMatchObject({
      reason: "invalid_field",
      field: "directory",
    });
    expect(await refusal(connectHerd({ directry: directory } as never))).toMatchObject({ field: "directry" });
    expect(() => herd.owner(" ")).toThrow(HerdError);
  });

  test("refuses a message that is too long before it is sent, and goes on", async () => {
    const { directory } = await open();
    const herd = await connected(directory);
    const long = "x".repeat(MAX_MESSAGE_BYTES);
    expect(await refusal(herd.owner("me").assign({ agent: "echo", task: long }))).toMatchObject({
      reason: "message_too_large",
    });
    expect((await herd.owner("me").list()).workers).toEqual([]);
  });
});

describe("the end of a connection", () => {
  test("closing the client leaves the herd and its work alone", async () => {
    const { herd: server, directory } = await open();
    const herd = await connected(directory);
    const run = await herd.owner("me").assign({ agent: "greeter", task: "Hello" });
    await herd.close();
    expect(herd.status).toBe("closed");
    expect(await refusal(herd.owner("me").list())).toMatchObject({ reason: "herd_closed" });
    await server
      .owner("me")
      .reply({ label: run.label, message: "Ada" })
      .catch(() => undefined);
    expect(server.status).toBe("open");
  });

  test("closing the herd tells every client, whoever waits hears why, and the socket is gone", async () => {
    const { herd: server, directory } = await open();
    const herd = await connected(directory);
    const run = await herd.owner("me").assign({ agent: "greeter", task: "Hello" });
    const waiting = refusal(run.result());
    await run.next();
    await server.close({ graceMs: 0 });
    expect((await waiting).reason).toMatch(/herd_closed|connection_lost/);
    await until(() => herd.status === "closed");
    expect(await refusal(herd.owner("me").list())).toMatchObject({
      reason: "connection_lost",
      nextAction: expect.stringContaining("connect again"),
    });
    expect(existsSync(join(directory, "control"))).toBe(false);
    expect(await refusal(connectHerd({ directory }))).toMatchObject({ reason: "not_running" });
  });

  test("that was not asked for is said once to a client that only listens", async () => {
    const { herd: server, directory } = await open();
    const herd = await connected(directory);
    herd.owner("me", { onResult: () => undefined });
    await herd.owners();
    const warned = new Promise<Error>((done) => process.once("warning", done));
    await server.close({ graceMs: 0 });
    expect((await warned).message).toMatch(/is gone.*Next: connect again.*hear nothing more/);
  });

  test("that has not begun yet can be waited for", async () => {
    const directory = folder();
    const coming = connectHerd({ directory, waitForHerdMs: 10_000 });
    await open({ directory });
    const herd = await coming;
    expect(herd.status).toBe("open");
    await herd.close();
  });

  test("is told instead to whoever wants to know, and not after closing", async () => {
    const { herd: server, directory } = await open();
    const told: HerdError[] = [];
    const onDisconnect = (error: HerdError) => void told.push(error);
    const closed = await connectHerd({ directory, onDisconnect });
    await closed.close();
    await connectHerd({ directory, onDisconnect });
    await server.close({ graceMs: 0 });
    await until(() => told.length > 0);
    expect(told).toMatchObject([{ reason: "connection_lost" }]);
  });

  test("a client that vanishes in the middle of a call loses nothing of it", async () => {
    const { herd: server, directory } = await open();
    const { socket } = await rude(directory);
    const assign = { jsonrpc: "2.0", id: 1, method: "owner/assign" };
    const params = { owner: { id: "me" }, cwd: directory, request: { id: "a", agent: "echo", task: "A" } };
    socket.write(`${hello}${JSON.stringify({ ...assign, params })}\n`);
    await until(async () => (await server.owners()).length === 1);
    socket.destroy();
    const herd = await connected(directory);
    const run = await herd.owner("me").assign({ id: "a", agent: "echo", task: "A" });
    expect((await run.result()).text).toBe("A");
  });

  test("a client that vanishes while a visit or a tool of its waits leaves the outcome on the subject", async () => {
    const held = Promise.withResolvers<void>();
    const slow = {
      description: "Asks, then waits",
      run: async (_task: string, worker: Worker) => {
        const answer = await worker.ask({ question: "Go on?" });
        await held.promise;
        return answer;
      },
    };
    const { herd: server, directory } = await open({ agents: { slow } });
    const subject = { scope: "shop", keys: { order: "7" } };
    const subjects = ["7", "8"].map((order) => ({ scope: "shop", keys: { order } }));
    const ids: string[] = [];
    for (const each of subjects) {
      const { asks } = await server.visit({ subject: each, start: { agent: "slow", task: "A" } });
      ids.push(asks?.[0]?.id ?? "");
    }
    const { socket } = await rude(directory);
    const [visited = "", resumed = ""] = ids;
    const request = { subject, resume: [{ id: visited, payload: "A" }] };
    const visit = { method: "herd/visit", params: { cwd: directory, request } };
    const owner = { id: "shop?order=8", ...subjects[1] };
    const input = { interaction_id: resumed, payload: "B" };
    const tool = { method: "owner/parkedTool", params: { owner, cwd: directory, name: "resume_parked", input } };
    socket.write(
      `${hello}${[visit, tool].map((call, id) => `${JSON.stringify({ jsonrpc: "2.0", id: id + 1, ...call })}\n`).join("")}`,
    );
    const statuses = async () =>
      (await Promise.all(subjects.map((each) => server.parked(each)))).map(([entry]) => entry?.status);
    await until(async () => (await statuses()).join() === "running,running");
    socket.destroy();
    // Until the other end has noticed.
    const { visits } = (server as HerdInstance).engine;
    const trees = ids.map((id) => (server as HerdInstance).engine.request(id.split(".")[0] ?? "")?.tree ?? "");
    await until(() => !trees.some((tree) => visits.watches(tree)));
    held.resolve();
    await until(async () => (await statuses()).every((status) => status !== "running"));
    expect(await statuses()).toEqual(["finished", "finished"]);
  });
});
