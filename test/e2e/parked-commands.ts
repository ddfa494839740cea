import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import { begunDesk, Desk, end, json } from "./desk.ts";
import { herd, until, type Running } from "./herd-process.ts";

type Entry = Record<string, any>;

/** The commands that visit subjects and answer people, while a program has the herd open or while none has. */
export function testParkedCommands(isRunning: boolean): void {
  let begun: Awaited<ReturnType<typeof begunDesk>> | undefined;
  let desk: Desk;
  let running: Running;
  const run = (...args: string[]) => desk.run(...args);
  const parked = async (): Promise<Entry[]> => json(await run("parked", "--json"));
  const find = async (what: string): Promise<Entry> =>
    (await parked()).find(({ label, question }) => label === what || question === what) as Entry;
  /** Of what is parked when a test begins: each has a copy of the same store. */
  let first: Entry[] | undefined;
  const idOf = async (what: string): Promise<string> => {
    first ??= await parked();
    return first.find(({ label }) => label === what)?.["id"];
  };
  /** Waits until nothing goes on that a program has to do; opened for it if there is none. */
  const settled = async (what: string, status: string): Promise<Entry> => {
    if (!isRunning) running = await desk.open();
    const there = await until(what, async () => {
      const entry = await find(what);
      return entry?.["status"] === status && entry;
    });
    if (!isRunning) await end(running);
    return there;
  };

  afterAll(() => begun?.remove());
  beforeEach(async () => {
    begun ??= await begunDesk("parked");
    desk = new Desk(begun.directory);
    if (isRunning) running = await desk.open();
  });

  test("parked says until when an ask waits and for what, and speaks the public contract to programs", async () => {
    const { stdout, stderr } = await run("parked");
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^\S+ +asking +sizes +2199-04-01T00:00:00Z +Which size\? \(one of "S", "M"\)$/m);
    expect(stdout).toMatch(/^\S+ +asking +below +20\S+Z +Deep\?$/m);
    expect(stdout).toMatch(/^\S+ +asking +person +20\S+Z +Who signs\? \(a person\)$/m);
    expect(stdout).toMatch(/^\S+ +finished +echo +Done so far$/m);
    expect(await find("sizes")).toMatchObject({
      to: "caller",
      answer_format: "select",
      format_payload: { options: ["S", "M"] },
      expiry_at: "2199-04-01T00:00:00.000Z",
      on_expiry: "kill",
    });
    expect(await find("sizes")).not.toHaveProperty("expires_at");
  });

  test("resume answers, and prints what is asked next and how to answer it, or says that it is stored", async () => {
    const size = await idOf("sizes");
    const resumed = await run("resume", size, '"M"');
    expect(resumed).toMatchObject({ code: 0, stderr: "" });
    expect(resumed.stdout).toMatch(
      isRunning
        ? /^"sizes" asks: Which name\?\nNext: node \S+ resume \S+ "…" --directory \S+\n"sizes" asks: May it wait\? \(a person: true or false\)\nNext: node \S+ answer \S+ true --directory \S+\n$/
        : /^Stored: "sizes" goes on with it when a program that runs it opens \S+herd\.\n$/,
    );
    const name = await settled("Which name?", "asking");
    const wait = await find("May it wait?");
    expect((await run("resume", size, '"S"')).stderr).toMatch(/herd\.js parked --directory \S+ shows what is/);
    const named = await run("resume", name["id"], "Ada Lovelace", "--json");
    expect(json(named)).toMatchObject({ action: "resumed", cancelled: [], running: isRunning });
    expect(json(named)).toMatchObject(
      isRunning ? { kind: "parked", suspended: { caller_interaction_ids: [] } } : { kind: "none" },
    );
    expect(await run("answer", wait["id"], "true")).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(isRunning ? /^Answered: "sizes" goes on\.$/m : /^Stored: "sizes" goes on/),
    });
    const { id } = await settled("sizes", "finished");
    expect(await run("resume", id)).toMatchObject({ code: 0, stdout: '"M" "Ada Lovelace" true\n', stderr: "" });
    expect((await run("take", id)).stderr).toMatch(/herd\.js parked --directory \S+ shows what is/);
  });

  test("resume prints the result that the run comes to, and a failure is the command's", async () => {
    const deep = await run("resume", await idOf("below"), "42", "--json");
    expect(deep.code).toBe(0);
    expect(json(deep)).toMatchObject(isRunning ? { kind: "result", result: "42" } : { kind: "none" });
    const failed = await run("resume", await idOf("fails"), "go");
    expect(failed.code).toBe(isRunning ? 1 : 0);
    const failure = 'The run "fails" failed: worker_error: no\\u001b[2J way. Next: ';
    expect(failed.stderr.includes(failure)).toBe(isRunning);
    if (isRunning) return;
    const { id } = await settled("fails", "failed");
    const taken = await run("take", id);
    expect(taken).toMatchObject({ code: 1, stdout: "" });
    expect(taken.stderr).toContain(failure);
    expect((await find("above"))["result"]).toBe("42");
  });

  test("resume and answer say how to write an answer, and change nothing for one that does not fit", async () => {
    const before = await parked();
    const size = await idOf("sizes");
    const bare = await run("resume", size, "M");
    expect(bare).toMatchObject({ code: 2, stdout: "" });
    expect(bare.stderr).toMatch(/must be JSON, one of "S", "M"; M is none\. Next: .* resume \S+ .*'"M"'$/m);
    expect((await run("resume", size, '"L"')).stderr).toContain("must be one of");
    expect((await run("resume", size, "--json")).code).toBe(1);
    const person = await idOf("person");
    expect((await run("resume", person, "Ada")).stderr).toMatch(
      /herd\.js answer \S+\.\d+ "…" --directory \S+ answers it\.$/m,
    );
    expect((await run("answer", size, "M")).stderr).toMatch(
      /herd\.js resume \S+\.\d+ "…" --directory \S+ answers it\.$/m,
    );
    expect(json(await run("answer", "nothing", "M", "--json"))).toMatchObject({
      ok: false,
      error: { category: "target_not_found" },
    });
    expect((await run("resume", await idOf("echo"), "x")).stderr).toContain("it takes no answer");
    expect((await run("resume", size, '"M"', "--subject", "shop?order=8")).stderr).toMatch(
      /herd\.js parked --directory \S+ shows/,
    );
    expect(await parked()).toEqual(before);
  });

  test("door run goes through the door in a file by its jq programs, and refuses a bad one by its field", async () => {
    const door = (contract: object) =>
      writeFileSync(
        join(desk.folder, "door.json"),
        JSON.stringify({ subject: { scope: "shop", keys: { order: "7" } }, target: "script", contract }),
      );
    const size = await idOf("sizes");
    const resumes = `[$parked[] | select(.id == "${size}")][0] | { id, payload: "M" }`;
    door({ resume_expr: resumes, start_expr: "null" });
    const ran = await run("door", "run", "door.json", "--input", '{ "size": "M" }', "--json");
    expect({ stderr: ran.stderr, code: ran.code }).toEqual({ stderr: "", code: 0 });
    expect(json(ran)).toMatchObject({ action: "resumed", cancelled: [], running: isRunning });
    door({ start_expr: "{ a: }" });
    const bad = await run("door", "run", "door.json");
    expect([bad.code, bad.stderr]).toEqual([1, expect.stringContaining("startExpr")]);
    expect((await run("door", "run", "missing.json")).code).toBe(2);
    expect((await run("door", "run", "door.json", "--input", "{")).code).toBe(2);
    expect((await run("door", "list")).stdout).toMatch(/^No door is saved in /);
  });

  test("inbox shows what people are asked and never what programs are, and answer answers it once", async () => {
    const { stdout, stderr } = await run("inbox");
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^\S+ +person +20\S+Z +Who signs\? \(a person\)$/m);
    expect(stdout).toMatch(/^Next: node \S+ answer \S+ "…" --directory \S+$/m);
    expect(stdout).not.toContain("Which size?");
    const [entry] = json(await run("inbox", "--json"));
    expect(entry).toMatchObject({
      id: await idOf("person"),
      status: "asking",
      to: "user",
      answer_format: "text",
      agent: "script",
      owner: { scope: "shop", keys: { order: "9" } },
    });
    const answered = await run("answer", entry.id, "Ada", "--id", "a-1", "--json");
    expect(json(answered)).toMatchObject({ ask_id: entry.id, label: "person", running: isRunning });
    expect(json(await run("answer", entry.id, "Ada", "--id", "a-1", "--json"))).toMatchObject({ ask_id: entry.id });
    expect((await run("answer", entry.id, "Bob")).stderr).toContain("already answered");
    expect((await settled("person", "finished"))["result"]).toBe('"Ada"');
    expect((await run("inbox")).stdout).toMatch(/^No person is asked anything in /);
  });

  test("cancel ends runs of several subjects with what waits for them, all that are named or none", async () => {
    const before = await parked();
    const [size, deep, done] = [await idOf("sizes"), await idOf("below"), await idOf("echo")];
    const refused = await run("cancel", size, "nothing", deep);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("Nothing is parked under nothing (any more)");
    expect(await parked()).toEqual(before);
    const cancelled = await run("cancel", size, deep, size, done);
    expect(cancelled).toMatchObject({ code: 0, stderr: "" });
    expect(cancelled.stdout).toBe(
      'Cancelled: "sizes", and every run that waits for it.\n' +
        'Cancelled: "below", and every run that waits for it.\n' +
        'Dropped: the outcome of "echo".\n',
    );
    expect((await parked()).map(({ label }) => label).toSorted()).toEqual(["fails", "person"]);
    const rest = await run("cancel", await idOf("fails"), await idOf("person"), "--json");
    expect(json(rest)).toEqual({ action: "none", kind: "none", cancelled: expect.any(Array) });
    expect(json(rest).cancelled).toHaveLength(2);
    expect(json(await run("owners", "--json"))).toEqual([]);
  });

  test("completion offers the entries that a command can act on", async () => {
    const ids = { size: await idOf("sizes"), person: await idOf("person"), done: await idOf("echo") };
    const offered = async (command: string) => {
      const { stdout } = await herd(["complete", "--", command, "-d", desk.directory, ""], desk.folder);
      const words = stdout.split(/\s+/);
      return Object.entries(ids).flatMap(([name, id]) => (words.includes(id) ? name : []));
    };
    expect(await offered("take")).toEqual(["done"]);
    expect(await offered("resume")).toEqual(["size", "done"]);
    expect(await offered("cancel")).toEqual(["size", "person", "done"]);
    expect(await offered("answer")).toEqual(["person"]);
  });
}
