import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type AgentDefinition, createHerd, type Herd, HerdError, type Worker } from "pi-herd";
import { createTestHerd } from "pi-herd/testing";

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "herd-programs-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("a doorman in a terminal", () => {
  const program = `
    import { createInterface } from "node:readline/promises";
    import { createHerd } from ${JSON.stringify(new URL("../../runtime/index.ts", import.meta.url).href)};

    const doorman = {
      description: "Welcomes a guest by name",
      run: async (task, worker) => {
        const guest = await worker.askOwner({ question: "Who is at the door?" });
        return task + ", " + guest + "!";
      },
    };
    const herd = await createHerd({ directory: process.argv[2], agents: { doorman } });
    const evening = await herd.owner("house").assign({ id: "tonight", agent: "doorman", task: "Good evening" });
    console.log("assignment " + evening.requestId);
    const terminal = createInterface({ input: process.stdin, output: process.stdout });
    for await (const event of evening) {
      if (event.type === "result") console.log("> " + event.result.text);
      else await event.question.reply(await terminal.question(event.question.question + "\\n"));
    }
    terminal.close();
    await herd.close();
  `;

  /** The program in a process of its own, with what it has written so far. */
  class Running {
    text = "";
    readonly #child: ChildProcess;
    #arrivals: (() => void)[] = [];

    constructor(file: string, directory: string) {
      this.#child = spawn(process.execPath, [file, directory], { stdio: ["pipe", "pipe", "inherit"] });
      onTestFinished(() => void this.#child.kill("SIGKILL"));
      this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
        this.text += text;
        for (const arrive of this.#arrivals.splice(0)) arrive();
      });
    }

    async shows(text: string): Promise<void> {
      while (!this.text.includes(text)) await new Promise<void>((resolve) => this.#arrivals.push(resolve));
    }

    type(line: string): void {
      this.#child.stdin?.write(`${line}\n`);
    }

    kill(): void {
      this.#child.kill("SIGKILL");
    }

    async ended(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
      const { exitCode: code, signalCode: signal } = this.#child;
      if (code === null && signal === null) await once(this.#child, "close");
      return { code: this.#child.exitCode, signal: this.#child.signalCode };
    }

    get assignment(): string | undefined {
      return /^assignment (\S+)$/m.exec(this.text)?.[1];
    }

    get results(): number {
      return this.text.match(/^> /gm)?.length ?? 0;
    }
  }

  test("killed while it asks and run again asks the same again and ends with one result", async () => {
    const home = await folder();
    const file = join(home, "doorman.mjs");
    await writeFile(file, program);
    const directory = join(home, "herd");

    const first = new Running(file, directory);
    await first.shows("Who is at the door?");
    first.kill();
    expect(await first.ended()).toEqual({ code: null, signal: "SIGKILL" });

    const second = new Running(file, directory);
    await second.shows("Who is at the door?");
    second.type("Ada");
    expect(await second.ended()).toEqual({ code: 0, signal: null });
    expect(second.text).toContain("> Good evening, Ada!");

    // The work is done: nobody is asked, and the same assignment tells its result.
    const third = new Running(file, directory);
    expect(await third.ended()).toEqual({ code: 0, signal: null });
    expect(third.text).not.toContain("Who is at the door?");
    expect(third.text).toContain("> Good evening, Ada!");
    expect([first, second, third].map(({ results }) => results)).toEqual([0, 1, 1]);
    expect(new Set([first, second, third].map(({ assignment }) => assignment)).size).toBe(1);
    expect(first.assignment).toBeDefined();
  });
});

test("a fan-out answers by policy, escalates the rest, and inspects no more at once than it may", async () => {
  const inspected = { now: 0, most: 0 };
  const inspector: AgentDefinition = {
    description: "Inspects one file",
    concurrency: 2,
    run: async (file, worker) => {
      const size = await worker.step("measure", async () => {
        inspected.most = Math.max(inspected.most, ++inspected.now);
        for (let turns = 0; turns < 5; turns++) await turn();
        inspected.now--;
        return file.length;
      });
      const about = file.endsWith(".css") ? "which colours" : "may it break its callers";
      return `${file} (${size}): ${await worker.askOwner({ question: `${file}: ${about}?` })}`;
    },
  };
  const release: AgentDefinition = {
    description: "Inspects all files of a release",
    subagents: ["inspector"],
    run: async (task, worker) => {
      const inspections = await Promise.all(
        task.split(" ").map((file) =>
          worker.assign({
            agent: "inspector",
            name: file,
            task: file,
            onQuestion: (question) =>
              question.question.includes("colours") ? question.reply("the house's") : worker.escalate(question),
          }),
        ),
      );
      const results = await Promise.all(inspections.map((inspection) => inspection.result()));
      return results.map(({ text }) => text).join("\n");
    },
  };
  const t = await createTestHerd({ agents: { inspector, release } });
  await t.owner.assign({ agent: "release", task: "api.ts page.css cli.ts print.css core.ts" });
  const asked: string[] = [];
  for (let questions = 0; questions < 3; questions++) {
    const { askId, question } = await t.question();
    asked.push(question);
    await t.crash();
    await t.owner.reply({ askId, message: question.startsWith("cli") ? "no" : "yes" });
  }
  expect((await t.result()).text.split("\n")).toEqual([
    "api.ts (6): yes",
    "page.css (8): the house's",
    "cli.ts (6): no",
    "print.css (9): the house's",
    "core.ts (7): yes",
  ]);
  expect(asked.toSorted()).toEqual(["api.ts", "cli.ts", "core.ts"].map((file) => `${file}: may it break its callers?`));
  expect(inspected).toEqual({ now: 0, most: 2 });
});

describe("a web service", () => {
  const accountant: AgentDefinition = {
    description: "Writes a report",
    run: async (task, worker) => {
      const quarter = await worker.askOwner({ question: "For which quarter?" });
      return worker.step("write", () => `${task} for ${quarter}`);
    },
  };
  type Answer = { status: number; body: any };

  async function answer(herd: Herd, request: IncomingMessage): Promise<Answer> {
    const { headers, method, url = "/" } = request;
    const key = headers["idempotency-key"] as string;
    const user = herd.owner(`user ${headers["x-user"] as string}`);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
    const [, id = "", part] = /^\/reports(?:\/([^/]+)(\/answer)?)?$/.exec(url) ?? [];
    if (method === "POST" && id === "") {
      const { requestId } = await user.assign({ id: key, agent: "accountant", task: body.task });
      return { status: 202, body: { id: requestId } };
    }
    if (method === "GET") return { status: 200, body: await (await herd.assignment(id)).status() };
    if (part !== undefined) return { status: 200, body: await user.reply({ ...body, id: key }) };
    return { status: 404, body: {} };
  }

  function refused(error: unknown): Answer {
    if (!(error instanceof HerdError)) return { status: 500, body: String(error) };
    const statuses: Record<string, number> = { invalid_request: 400, target_not_found: 404, worker_busy: 409 };
    return { status: statuses[error.category] ?? 503, body: error };
  }

  /** The service on a folder, at a port of its own. */
  async function serve(directory: string) {
    const herd = await createHerd({ directory, agents: { accountant }, tickMs: 0 });
    const server = createServer((request, response) => {
      void answer(herd, request)
        .catch(refused)
        .then(({ status, body }) => response.writeHead(status).end(JSON.stringify(body)));
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const { port } = server.address() as AddressInfo;
    const stop = async () => {
      server.closeAllConnections();
      server.close();
      await herd.close();
    };
    onTestFinished(stop);
    const call = async (method: string, path: string, key = "", body?: object, user = "ada"): Promise<Answer> => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { "x-user": user, "idempotency-key": key },
        ...(body && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json() };
    };
    const until = async (path: string, field: string) => {
      for (;;) {
        const { body } = await call("GET", path);
        if (body[field] !== undefined) return body;
      }
    };
    return { call, until, stop };
  }

  test("takes a report once, answers once, and goes on after a restart in the middle", async () => {
    const directory = join(await folder(), "herd");
    const before = await serve(directory);
    const accepted = await before.call("POST", "/reports", "k1", { task: "Sales" });
    expect(accepted).toEqual({ status: 202, body: { id: expect.any(String) } });
    expect(await before.call("POST", "/reports", "k1", { task: "Sales" })).toEqual(accepted);
    expect(await before.call("POST", "/reports", "k1", { task: "Costs" })).toMatchObject({
      status: 400,
      body: { reason: "id_reused" },
    });
    const report = `/reports/${accepted.body.id}`;
    const { question } = await before.until(report, "question");
    expect(question.question).toBe("For which quarter?");
    await before.stop();

    const after = await serve(directory);
    expect((await after.until(report, "question")).question.askId).toBe(question.askId);
    expect(await after.call("POST", "/reports", "k1", { task: "Sales" })).toEqual(accepted);
    const reply = { askId: question.askId, message: "Q3" };
    expect((await after.call("POST", `${report}/answer`, "r1", reply, "eve")).status).toBe(404);
    const first = await after.call("POST", `${report}/answer`, "r1", reply);
    expect(first).toMatchObject({ status: 200, body: { askId: question.askId } });
    expect(await after.call("POST", `${report}/answer`, "r1", reply)).toEqual(first);
    expect(await after.call("POST", `${report}/answer`, "r2", { ...reply, message: "Q4" })).toMatchObject({
      status: 409,
      body: { reason: "already_answered", ids: { replyId: "r1" } },
    });
    const ended = await after.until(report, "result");
    expect(ended).toMatchObject({ state: "completed", result: { text: "Sales for Q3" } });
    expect((await after.call("GET", "/reports/unknown")).status).toBe(404);
  });
});

describe("a mailer", () => {
  /** Sends one mail a step; the process may be made to stand still just before the n-th. */
  function mailer(standsStillAt: number) {
    const sent: string[] = [];
    const { promise: standing, resolve: stand } = Promise.withResolvers<void>();
    let stood = false;
    const invite: AgentDefinition = {
      description: "Invites the guests",
      run: async (task, worker) => {
        const guests = Number(await worker.askOwner({ question: `${task}: how many?` }));
        for (let guest = 1; guest <= guests; guest++) {
          if (guest === standsStillAt && !stood) {
            stood = true;
            stand();
            await new Promise(() => undefined);
          }
          await worker.step(`invite ${guest}`, () => void sent.push(`guest ${guest}`));
        }
        return `${guests} invited`;
      },
    };
    return { sent, standing, invite };
  }

  test.each([1, 2, 7, 12])("asks once and sends once, though it is killed at mail %i", async (mail) => {
    const { sent, standing, invite } = mailer(mail);
    const t = await createTestHerd({ agents: { invite }, now: "2026-12-24T08:00:00Z" });
    const run = await t.owner.assign({ agent: "invite", task: "New Year's Eve" });
    const { askId, question } = await t.question();
    expect(question).toBe("New Year's Eve: how many?");
    await t.crash();
    await t.clock.advance("24h");
    await t.owner.reply({ askId, message: "12" });
    await standing;
    expect(sent).toHaveLength(mail - 1);
    await t.crash();
    expect(await t.result()).toMatchObject({ requestId: run.requestId, text: "12 invited" });
    await t.idle();
    await t.crash();
    await t.idle();
    expect(sent).toEqual(Array.from({ length: 12 }, (_, index) => `guest ${index + 1}`));
    expect(t.owner.questions).toHaveLength(1);
    expect(t.owner.results).toHaveLength(1);
    expect((await t.herd.assignment(run.requestId).then((again) => again.result())).text).toBe("12 invited");
  });
});

describe("a migration", () => {
  const booking = (done: string[]): AgentDefinition => ({
    description: "Books what was counted",
    run: async (task, worker) => {
      const rows = await worker.step("count", () => (done.push("count"), task.split(" ").length));
      const answer = await worker.askOwner({ name: "book?", question: `Book ${rows} rows?` });
      if (answer !== "yes") return "nothing booked";
      return worker.step("book", () => (done.push("book"), `${rows} booked`));
    },
  });

  test("to a renamed agent with a new step takes over the open run, which does the new step when it gets there", async () => {
    const done: string[] = [];
    const t = await createTestHerd({ agents: { bookkeeper: booking(done) } });
    const run = await t.owner.assign({ agent: "bookkeeper", task: "a b c" });
    const { askId } = await t.question();
    const audited: AgentDefinition = {
      description: "Books what was counted and checked",
      formerly: ["bookkeeper"],
      run: async (task, worker) => {
        const rows = await worker.step("count", () => (done.push("count again"), task.length));
        await worker.step("check", () => void done.push(`check ${rows}`));
        const answer = await worker.askOwner({ name: "book?", question: `Book ${rows} checked rows?` });
        return worker.step("book", () => (done.push("book"), `${rows} booked, ${answer}`));
      },
    };
    await t.crash({ agents: { auditor: audited } });
    await t.owner.reply({ askId, message: "yes" });
    expect(await t.result()).toMatchObject({ requestId: run.requestId, agent: "bookkeeper", text: "3 booked, yes" });
    expect(done).toEqual(["count", "check 3", "book"]);
    expect(t.owner.questions).toHaveLength(1);
  });

  test("that does not fit holds the run and shows why, until a program comes that does", async () => {
    const done: string[] = [];
    const t = await createTestHerd({ agents: { bookkeeper: booking(done) } });
    const run = await t.owner.assign({ agent: "bookkeeper", task: "a b c" });
    const { askId } = await t.question();
    await t.crash({ agents: { other: { description: "x", run: async () => "x" } } });
    const held: string[] = [];
    t.herd.on("held", (event) => held.push(`${event.label}: ${event.diagnostic}`));
    // The reply is taken, and kept.
    await t.owner.reply({ askId, message: "yes" });
    await t.idle();
    expect(held).toEqual([expect.stringMatching(/^bookkeeper: Agent "bookkeeper" is not defined .*Next: /)]);
    const status = await (await t.herd.assignment(run.requestId)).status();
    expect(`bookkeeper: ${status.diagnostic}`).toBe(held[0]);
    expect((await t.owner.list()).workers).toMatchObject([{ state: "blocked", diagnostic: status.diagnostic }]);
    expect(t.owner.results).toEqual([]);
    await t.crash({ agents: { ledger: { ...booking(done), formerly: ["bookkeeper"] } } });
    expect((await t.result()).text).toBe("3 booked");
    expect(done).toEqual(["count", "book"]);
  });
});

describe("instances that share one herd", () => {
  test("an instance without agents assigns to the one that has them, by connecting to its folder", async () => {
    const directory = await folder();
    const host = await createHerd({
      directory,
      agents: { invoice: { description: "Writes an invoice", run: async (month: string) => `Invoice of ${month}` } },
    });
    onTestFinished(() => host.close());
    const instance = join(directory, "instance.ts");
    await writeFile(
      instance,
      `import { connectHerd } from ${JSON.stringify(new URL("../../runtime/index.ts", import.meta.url).href)};
       const herd = await connectHerd({ directory: ${JSON.stringify(directory)} });
       const run = await herd.owner("customer-9").assign({ id: "may", agent: "invoice", task: "May" });
       console.log((await run.result()).text);
       await herd.close();`,
    );
    const child = spawn(process.execPath, [instance], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (part: string) => (text += part));
    expect(await once(child, "close")).toEqual([0, null]);
    expect(text).toBe("Invoice of May\n");
    expect((await host.owner("customer-9").list()).workers).toEqual([]);
  });
});

describe("a chat bot whose threads are owners", () => {
  const waiter = {
    description: "Takes an order",
    run: async (wish: string, worker: Worker) =>
      `One ${wish} with ${await worker.askOwner({ question: `What goes with the ${wish}?` })}.`,
  };

  /** The bot over a chat that keeps what is posted, once for each key. */
  async function bot(directory: string, posted: Map<string, string>) {
    const herd = await createHerd({ directory, agents: { waiter } });
    onTestFinished(() => herd.close());
    const post = (thread: string | undefined, text: string, key: string) => void posted.set(`${thread} ${key}`, text);
    herd.receive(
      { scope: "chat" },
      {
        onQuestion: ({ owner, question, askId }) => post(owner.keys?.["thread"], question, askId),
        onResult: ({ owner, text, requestId }) => post(owner.keys?.["thread"], text, requestId),
      },
    );
    return {
      herd,
      /** Somebody wrote: that answers what is asked in this thread, or orders something. */
      hear: async (thread: string, text: string) => {
        const owner = herd.owner({ scope: "chat", keys: { thread } });
        const asking = (await owner.parked()).find(({ status }) => status === "asking");
        if (asking) await owner.reply({ askId: asking.id, message: text });
        else await owner.assign({ agent: "waiter", task: text });
      },
    };
  }

  test("keeps threads apart, answers in the right one after a restart, and posts each thing once", async () => {
    const directory = await folder();
    const posted = new Map<string, string>();
    const said = (thread: string) => [...posted].filter(([key]) => key.startsWith(thread)).map(([, text]) => text);
    const first = await bot(directory, posted);
    await first.hear("t1", "tea");
    await first.hear("t2", "toast");
    while (posted.size < 2) await turn();
    await first.herd.close();

    const second = await bot(directory, posted);
    await second.hear("t2", "jam");
    while (posted.size < 3) await turn();
    await second.hear("t1", "milk");
    while (posted.size < 4) await turn();
    expect(said("t1")).toEqual(["What goes with the tea?", "One tea with milk."]);
    expect(said("t2")).toEqual(["What goes with the toast?", "One toast with jam."]);
  });
});
