import { afterAll, beforeEach, expect, test } from "vitest";
import { begunDesk, Desk, end, json, type Ids } from "./desk.ts";
import { commandsIn, pasted } from "../support/pasted.ts";
import { herd, startHerd, until, type Running } from "./herd-process.ts";

/** Every command on a herd in which something of every kind is open, while a program has it open or while none has. */
export function testCommands(isRunning: boolean): void {
  /** Made once; each test has a copy of it. */
  let begun: Awaited<ReturnType<typeof begunDesk>> | undefined;
  let ids: Ids;
  let desk: Desk;
  let running: Running;
  const run = (...args: string[]) => desk.run(...args);

  afterAll(() => begun?.remove());
  beforeEach(async () => {
    begun ??= await begunDesk();
    ids = begun.ids;
    desk = new Desk(begun.directory);
    if (isRunning) running = await desk.open();
  });

  test("list shows owners, workers, questions and results, and what to do", async () => {
    const { code, stdout, stderr } = await run("list");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("me  1 result waits\n");
    expect(stdout).toMatch(/^ {2}first +blocked +asks: Go\?$/m);
    expect(stdout).toMatch(/^ {2}└─ child +blocked +asks: Child\?$/m);
    expect(stdout).toMatch(/^ {2}done +settling +All is well$/m);
    expect(stdout).toMatch(/^A result waits for its owner; to see it: node \S+ result \S{21} --directory \S+$/m);
    const [shows = ""] = commandsIn(stdout).filter((command) => / result /.test(command));
    expect(await run(...pasted(shows).slice(2, 4))).toMatchObject({ code: 0, stdout: "All is well\n" });
    expect(stdout).toMatch(/^you\n {2}second +blocked +asks: Rest\?$/m);
    expect(stdout).toMatch(/^3 questions wait for an answer: node \S+ reply first "…" --directory \S+$/m);
    expect(stdout.includes("No program has this herd open")).toBe(!isRunning);
    const only = json(await run("list", "--owner", "you", "--json"));
    expect(only).toMatchObject({
      directory: desk.directory,
      running: isRunning,
      owners: [{ id: "you", workers: [{ label: "second" }] }],
    });
    expect((await run("list", "--owner", "nobody")).stdout).toMatch(/herd\.js demo /);
  });

  test("inbox and answer name the commands for what workers ask their owners", async () => {
    const inbox = await run("inbox");
    expect(inbox.stdout).toMatch(/^No person is asked anything in .*\nNext: node \S+ list --directory \S+$/m);
    const answer = await run("answer", "first", "go on");
    expect(answer).toMatchObject({ code: 1, stdout: "" });
    expect(answer.stderr).toMatch(/^"first" asks its owner, not a person\. Next: answer it with: /);
    const [reply = ""] = commandsIn(answer.stderr);
    expect(pasted(reply).slice(2)).toEqual(["reply", "first", "go on", "--directory", desk.directory]);
    for (const [command, others] of Object.entries({
      reply: ["inbox", "answer"],
      answer: ["inbox", "reply"],
      inbox: ["answer", "reply"],
    })) {
      const { stdout } = await run(command, "--help");
      for (const other of others) expect(stdout).toContain(`herd ${other}`);
    }
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

  test("parked shows what waits on a subject, and take gives an outcome once", async () => {
    const { stdout, stderr } = await run("parked", "--subject", "me");
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^\S+ +asking +first +Go\?$/m);
    expect(stdout).toMatch(/^\S+ +finished +done +All is well$/m);
    expect(stdout).not.toContain("Rest?");
    const all = json(await run("parked", "--json"));
    expect(all).toHaveLength(4);
    expect(all).toContainEqual(
      expect.objectContaining({ status: "asking", label: "first", asked_by: ["asks"], answer_format: "text" }),
    );
    const asking = all.find(({ label }: { label: string }) => label === "first").id as string;
    expect(await run("take", ids.done)).toMatchObject({ code: 0, stdout: "All is well\n", stderr: "" });
    const again = await run("take", ids.done);
    expect(again).toMatchObject({ code: 1, stdout: "" });
    expect(again.stderr).toMatch(/herd\.js parked --directory \S+ shows what is/);
    expect((await run("take", asking)).stderr).toContain("no outcome to take");
    expect((await run("parked", "--subject", "shop?order")).code).toBe(2);
    expect(json(await run("parked", "--subject", "shop?order=7", "--json"))).toEqual([]);
  });

  test("reply answers once, and the worker goes on with it", async () => {
    const replied = await run("reply", "first", "north");
    expect(replied).toMatchObject({ code: 0, stderr: "" });
    expect(replied.stdout).toMatch(isRunning ? /^Answered: "first" goes on\.$/m : /^Stored: .* opens .*herd\.$/m);
    const again = await run("reply", "first", "south");
    expect(again.code).toBe(1);
    expect(again.stderr).toMatch(/Next: /);
    if (!isRunning) running = await desk.open();
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
    expect((await run("reply", "--ask", "nothing", "x")).stderr).toMatch(/herd\.js list --directory \S+ shows/);
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
    const there = await herd(["list", "-d", "copy"], desk.folder);
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
    const watching = startHerd(["watch", "--json", "--directory", desk.directory], desk.folder);
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
    if (!isRunning) running = await desk.open();
    // Opened just now, it may have gone on before anybody could watch it.
    if (isRunning) await happened({ event: "result", label: "first", status: "completed", owner: "me" });
    else await happened({ event: "list" });
    watching.child.kill("SIGINT");
    expect(await watching.ended).toMatchObject({ code: 130, stderr: "" });
  });
}

function matches(line: Record<string, unknown>, what: object): boolean {
  return Object.entries(what).every(([key, value]) => line[key] === value);
}
