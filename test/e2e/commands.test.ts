import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { folderWith } from "./folder.ts";
import { herd, root, start, startHerd, until, type Ended, type Running } from "./herd-process.ts";

/** A program with workers of every kind; it opens the herd, says so, and closes it when its input ends. */
const program = `
  import { createHerd } from ${JSON.stringify(new URL("runtime/index.ts", `file://${root}/`).href)};
  const asks = {
    description: "Asks, then waits to be told more",
    run: async (task, worker) => {
      const answer = await worker.askOwner({ question: task + "?\\nOr not?" });
      return task + " " + answer + worker.steers().map(({ message }) => " " + message).join("");
    },
  };
  const agents = {
    asks,
    echo: { description: "Says its task", run: async (task) => task },
    parent: {
      description: "Has a child that asks",
      subagents: ["asks"],
      run: async (_task, worker) => {
        const child = await worker.assign({ agent: "asks", label: "child", task: "Child" });
        for await (const event of child) if (event.type === "result") return event.result.text;
      },
    },
  };
  const herd = await createHerd({ directory: process.argv[2], agents, tickMs: 0 });
  const ids = {};
  if (process.argv[3] === "begin") {
    const [me, you] = [herd.owner("me"), herd.owner("you", { workspace: "w" })];
    const assign = async (owner, request) => (ids[request.label] = await owner.assign(request)).requestId;
    await assign(me, { agent: "asks", label: "first", task: "Go" });
    await assign(me, { agent: "asks", label: "second", task: "Stay" });
    await assign(you, { agent: "asks", label: "second", task: "Rest" });
    await assign(me, { agent: "echo", label: "done", task: "All is well" });
    await assign(me, { agent: "parent", label: "parent", task: "Delegate" });
    const { workers } = await me.list();
    while ((await me.list()).workers.filter(({ question }) => question).length < 3) await new Promise(setImmediate);
    while ((await you.list()).workers[0].state !== "blocked") await new Promise(setImmediate);
    while ((await ids.done.status({ acknowledge: false })).result === undefined) await new Promise(setImmediate);
  }
  console.log("ready " + (ids.done?.requestId ?? "") + " " + (ids.first?.requestId ?? ""));
  process.stdin.on("end", () => herd.close()).resume();
`;

let folder: string;
let directory: string;
let ids: { done: string; first: string };

/** The program, once its herd is open. */
async function open(...args: string[]): Promise<Running & { ids: typeof ids }> {
  const running = start(process.execPath, [join(folder, "program.ts"), directory, ...args], folder, { stdin: "pipe" });
  const said = new Promise<string>((resolve, reject) => {
    running.child.stdout?.on("data", (text: string) => text.startsWith("ready") && resolve(text));
    void running.ended.then(({ stderr }) => reject(new Error(stderr)));
  });
  const [, done = "", first = ""] = (await said).trim().split(" ");
  return { ...running, ids: { done, first } };
}

async function end({ child, ended }: Running): Promise<void> {
  child.stdin?.end();
  expect(await ended).toMatchObject({ code: 0, stderr: "" });
}

const json = (ended: Ended) => JSON.parse(ended.stdout) as any;
const run = (...args: string[]) => herd([...args, "--directory", directory], folder);

describe.each(["while a program has the store", "while none has it"])("%s", (when) => {
  const isRunning = when === "while a program has the store";
  let running: Running;

  beforeEach(async () => {
    folder = folderWith({ "program.ts": program, "package.json": '{ "type": "module" }', "a.txt": "evidence" });
    directory = join(folder, "herd");
    const begun = await open("begin");
    ids = begun.ids;
    running = begun;
    if (!isRunning) await end(begun);
  });

  test("list shows owners, workers, questions and results, and what to do", async () => {
    const { code, stdout, stderr } = await run("list");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("me  1 result waits\n");
    expect(stdout).toMatch(/^ {2}first +blocked +asks: Go\?$/m);
    expect(stdout).toMatch(/^ {2}└─ child +blocked +asks: Child\?$/m);
    expect(stdout).toMatch(/^you\n {2}second +blocked +asks: Rest\?$/m);
    expect(stdout).toMatch(/^3 questions wait for an answer: node \S+ reply first "…" --directory \S+$/m);
    expect(stdout.includes("No program has this herd open")).toBe(!isRunning);
    const only = json(await run("list", "--owner", "you", "--json"));
    expect(only).toMatchObject({
      directory,
      running: isRunning,
      owners: [{ id: "you", workers: [{ label: "second" }] }],
    });
    expect((await run("list", "--owner", "nobody")).stdout).toContain("herd demo");
  });

  test("owners says how much each has open", async () => {
    expect((await run("owners")).stdout).toBe(
      "owner  workers  asking  results\nme           5       2        1\nyou          1       1        0\n",
    );
    expect(json(await run("owners", "--json"))).toMatchObject([
      { id: "me", asking: 2 },
      { id: "you", workspaces: ["w"] },
    ]);
  });

  test("result prints what there is, says what there is not, and takes nothing from its owner", async () => {
    for (let time = 0; time < 2; time++) {
      expect(await run("result", ids.done)).toMatchObject({ code: 0, stdout: "All is well\n", stderr: "" });
    }
    expect(json(await run("result", ids.done, "--json"))).toMatchObject({
      state: "completed",
      result: { text: "All is well" },
    });
    const asking = await run("result", ids.first);
    expect(asking).toMatchObject({ code: 1, stdout: "" });
    expect(asking.stderr).toMatch(/it asks: Go\?\nOr not\?\nNext: node \S+ reply first "…" --directory \S+$/m);
    expect(json(await run("owners", "--json"))).toMatchObject([{ id: "me", results: 1 }, { id: "you" }]);
    const unknown = await run("result", "nothing", "--json");
    expect(unknown.code).toBe(1);
    expect(json(unknown)).toMatchObject({ ok: false, error: { category: "target_not_found" } });
  });

  test("reply answers once, and the worker goes on with it", async () => {
    const replied = await run("reply", "first", "north");
    expect(replied).toMatchObject({ code: 0, stderr: "" });
    expect(replied.stdout).toMatch(isRunning ? /^Answered: "first" goes on\.$/m : /^Stored: .* opens .*herd\.$/m);
    const again = await run("reply", "first", "south");
    expect(again.code).toBe(1);
    expect(again.stderr).toMatch(/Next: /);
    if (!isRunning) running = await open();
    await until("the result", async () => (await run("result", ids.first)).stdout === "Go north\n");
    await end(running);
  });

  test("reply --ask answers exactly that question, and a second time says which reply won", async () => {
    const { owners } = json(await run("list", "--json"));
    const rows = owners.flatMap(({ workers }: { workers: object[] }) => workers);
    const ask = (label: string, owner: string) =>
      rows.find((row: any) => row.label === label && row.owner_session_id === owner)?.question.ask_id as string;
    const replied = await run("reply", "--ask", ask("second", "you"), "on Sunday", "--file", "a.txt", "--json");
    expect(json(replied)).toMatchObject({ ask_id: ask("second", "you"), label: "second", running: isRunning });
    const again = await run("reply", "--ask", ask("second", "you"), "on Monday");
    expect(again.code).toBe(1);
    expect(again.stderr).toContain("already answered");
    const child = rows.find((row: any) => row.label === "child").question.ask_id as string;
    const refused = await run("reply", "--ask", child, "x");
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('its parent "parent"');
    expect((await run("reply", "--ask", "nothing", "x")).stderr).toContain("herd list");
    expect((await run("reply", "--ask", ask("first", "me"), "x", "y")).code).toBe(2);
    expect((await run("reply", "first")).code).toBe(2);
  });

  test("steer and close act on one worker; a label of several needs its owner", async () => {
    const several = await run("close", "second");
    expect(several).toMatchObject({ code: 1, stdout: "" });
    expect(several.stderr).toContain("of me, you. Next: add --owner ID");
    expect((await run("close", "second", "--owner", "you")).stdout).toBe('Closed: "second".\n');
    expect(json(await run("list", "--json")).owners.map(({ id }: { id: string }) => id)).toEqual(["me"]);
    expect((await run("close", "ghost")).stderr).toContain('There is no worker "ghost"');
    expect((await run("close", "parent")).code).toBe(0);
    expect((await run("list")).stdout).not.toContain("child");
    const early = await run("steer", "first", "and hurry");
    expect(early).toMatchObject({ code: 1, stdout: "" });
    expect(early.stderr).toMatch(/waiting.*Next: /s);
  });

  test("verify, backup and doctor look at it as it is", async () => {
    expect(await run("verify")).toMatchObject({ code: 0, stderr: "" });
    expect((await run("verify")).stdout).toMatch(/ is whole: \d+ rows, 2 owners, 6 workers\.$/m);
    const copied = await run("backup", "copy");
    expect(copied).toMatchObject({ code: 0, stderr: "" });
    const there = await herd(["list", "-d", "copy"], folder);
    expect(there.stdout).toContain("asks: Go?");
    const onto = await run("backup", "herd");
    expect(onto).toMatchObject({ code: 1, stdout: "" });
    expect(onto.stderr).toContain("it is the herd's own folder");
    const doctor = await run("doctor");
    expect(doctor).toMatchObject({ code: 0, stderr: "" });
    expect(doctor.stdout).toMatch(/^ok +store +2 owners, 6 workers; /m);
    expect(doctor.stdout.includes("has had it open since")).toBe(isRunning);
  });

  test("watch shows what there is, then what happens", async () => {
    const watching = startHerd(["watch", "--json", "--directory", directory], folder);
    const lines: any[] = [];
    let rest = "";
    watching.child.stdout?.on("data", (text: string) => {
      const parts = (rest + text).split("\n");
      rest = parts.pop() as string;
      lines.push(...parts.map((line) => JSON.parse(line)));
    });
    const happened = (what: object) => until(JSON.stringify(what), () => lines.find((line) => matches(line, what)));
    await happened(isRunning ? { event: "list" } : { event: "not_running" });
    await run("reply", "first", "north");
    if (!isRunning) running = await open();
    // Opened just now, it may have gone on before anybody could watch it.
    if (isRunning) await happened({ event: "result", label: "first", status: "completed", owner: "me" });
    else await happened({ event: "list" });
    watching.child.kill("SIGINT");
    expect(await watching.ended).toMatchObject({ code: 130, stderr: "" });
  });
});

describe("a store", () => {
  beforeEach(() => {
    folder = folderWith({ "program.ts": program, "package.json": '{ "type": "module" }' });
    directory = join(folder, "herd");
  });

  test.each([
    ["list"],
    ["owners"],
    ["watch"],
    ["reply", "a", "b"],
    ["close", "a"],
    ["steer", "a", "b"],
    ["result", "r"],
    ["verify"],
    ["backup", "copy"],
  ])("that is not there is not made by %s, which says what to try", async (...command) => {
    const ended = await run(...command);
    expect(ended).toMatchObject({ code: 3, stdout: "" });
    expect(ended.stderr).toMatch(/There is no herd in .*Next: /);
    expect(existsSync(directory)).toBe(false);
  });

  test("that nothing is open in says what to try", async () => {
    const { stdout, code } = await runWithEmpty("list");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Nothing is open in .*herd demo\.$/m);
  });

  test("of a newer format is refused by every command, which names both formats", async () => {
    await runWithEmpty("list");
    const { levelStore } = await import("../../runtime/index.ts");
    const store = levelStore(directory);
    await store.open();
    await store.batch([{ type: "put", key: "m!format", value: "99" }], { sync: true });
    await store.close();
    for (const command of [["list"], ["reply", "a", "b"], ["backup", "copy"]]) {
      const ended = await run(...command);
      expect(ended.code).toBe(4);
      expect(ended.stderr).toMatch(/format 99, this version of pi-herd reads format 1.*Next: /s);
    }
    const verified = await run("verify");
    expect(verified.code).toBe(4);
    expect(verified.stdout).toContain("format 99");
    const doctor = await run("doctor");
    expect(doctor.code).toBe(4);
    expect(doctor.stdout).toMatch(/^WRONG +store .*format 99/m);
  });

  test("that a process has open and lets nobody reach is named with that process", async () => {
    const { createHerd } = await import("../../runtime/index.ts");
    const other = await createHerd({ directory, control: false, tickMs: 0 });
    const ended = await run("list");
    expect(ended).toMatchObject({ code: 3, stdout: "" });
    expect(ended.stderr).toContain(`process ${process.pid}`);
    await other.close();
  });

  test("whose rows do not fit is unhealthy, and verify names them", async () => {
    await runWithEmpty("list");
    const { levelStore } = await import("../../runtime/index.ts");
    const store = levelStore(directory);
    await store.open();
    await store.batch([{ type: "put", key: "l!w!ghost", value: '{"tree":"t","path":"p","runId":"r"}' }], {
      sync: true,
    });
    await store.close();
    const verified = await run("verify");
    expect(verified.code).toBe(4);
    expect(verified.stdout).toContain("l!w!ghost: The label belongs to run r, which has no worker.");
    expect(json(await run("verify", "--json"))).toMatchObject({ problems: [{ key: "l!w!ghost" }] });
  });

  test("in a folder that others can enter is no secret, and doctor says how to mend it", async () => {
    mkdirSync(directory, { mode: 0o755 });
    const ended = await run("doctor");
    expect(ended.code).toBe(4);
    expect(ended.stdout).toMatch(/^WRONG +folder .*other users/m);
    expect(ended.stdout).toContain("Next: chmod 700");
  });
});

describe("completion", () => {
  const missing = (shell: string) => spawnSync(shell, ["-c", "true"]).status !== 0;

  describe.each(["bash", "zsh", "fish"])("for %s", (shell) => {
    test("is a script that names the command", async () => {
      const { code, stdout, stderr } = await herd(["completion", shell], folderWith({}));
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain("herd");
    });

    test.skipIf(missing(shell))(`is one that the shell takes (needs ${shell})`, async () => {
      folder = folderWith({ script: (await herd(["completion", shell], folderWith({}))).stdout });
      expect(await start(shell, ["-n", "script"], folder).ended).toMatchObject({ code: 0, stderr: "" });
    });
  });

  test("offers commands, options, and the labels that ask", async () => {
    folder = folderWith({ "program.ts": program, "package.json": '{ "type": "module" }' });
    directory = join(folder, "herd");
    await end(await open("begin"));
    const offered = async (...words: string[]) =>
      (await herd(["complete", "--", ...words], folder)).stdout.split(/\s+/);
    expect(await offered("re")).toEqual(expect.arrayContaining(["reply", "result"]));
    expect(await offered("list", "--")).toEqual(expect.arrayContaining(["--json", "--directory"]));
    const labels = await offered("reply", "-d", directory, "");
    expect(labels).toEqual(expect.arrayContaining(["first", "second"]));
    expect(labels).not.toContain("done");
    expect(readFileSync(join(folder, "program.ts"), "utf8")).toBe(program);
  });
});

/** Runs a command on a store in which nothing is open. */
async function runWithEmpty(command: string): Promise<Ended> {
  await end(await open());
  return run(command);
}

function matches(line: Record<string, unknown>, what: object): boolean {
  return Object.entries(what).every(([key, value]) => line[key] === value);
}
