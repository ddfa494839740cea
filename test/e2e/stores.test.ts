import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { createHerd } from "../../runtime/index.ts";
import { Desk, end, json } from "./desk.ts";
import { folderWith } from "./folder.ts";
import { herd, start, startHerd, until } from "./herd-process.ts";

describe("a store", () => {
  let desk: Desk;
  const run = (...args: string[]) => desk.run(...args);
  /** Runs a command once there is a store in which nothing is open. */
  const runWithEmpty = async (command: string) => {
    await end(await desk.open());
    return run(command);
  };
  beforeEach(() => void (desk = new Desk()));

  test.each([
    ["list"],
    ["owners"],
    ["watch"],
    ["reply", "a", "b"],
    ["close", "a"],
    ["steer", "a", "b"],
    ["result", "r"],
    ["resume", "r", "x"],
    ["cancel", "r"],
    ["inbox"],
    ["answer", "r", "x"],
    ["verify"],
    ["backup", "copy"],
  ])("that is not there is not made by %s, which says what to try", async (...command) => {
    const ended = await run(...command);
    expect(ended).toMatchObject({ code: 3, stdout: "" });
    expect(ended.stderr).toMatch(/There is no herd in .*Next: /);
    expect(existsSync(desk.directory)).toBe(false);
  });

  test("that nothing is open in says what to try", async () => {
    const { stdout, code } = await runWithEmpty("list");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Nothing is open in .*herd\.js demo first\.$/m);
  });

  test("of a newer format is refused by every command, which names both formats", async () => {
    await runWithEmpty("list");
    const { levelStore } = await import("../../runtime/index.ts");
    const store = levelStore(desk.directory);
    await store.open();
    await store.batch([{ type: "put", key: "m!format", value: "99" }], { sync: true });
    await store.close();
    for (const command of [["list"], ["reply", "a", "b"], ["backup", "copy"], ["verify"]]) {
      const ended = await run(...command);
      expect(ended.code).toBe(4);
      expect(ended.stderr).toMatch(/format 99, this version of pi-herd reads format 1.*Next: /s);
    }
    const doctor = await run("doctor");
    expect(doctor.code).toBe(4);
    expect(doctor.stdout).toMatch(/^WRONG +store .*format 99/m);
  });

  test("that a process has open and lets nobody reach is named with that process", async () => {
    const other = await createHerd({ directory: desk.directory, control: false, tickMs: 0 });
    const ended = await run("list");
    expect(ended).toMatchObject({ code: 3, stdout: "" });
    expect(ended.stderr).toContain(`process ${process.pid}`);
    await other.close();
  });

  test("whose rows do not fit is unhealthy, and verify names them", async () => {
    await runWithEmpty("list");
    const { levelStore } = await import("../../runtime/index.ts");
    const store = levelStore(desk.directory);
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
    mkdirSync(desk.directory, { mode: 0o755 });
    const ended = await run("doctor");
    expect(ended.code).toBe(4);
    expect(ended.stdout).toMatch(/^WRONG +folder .*other users/m);
    expect(ended.stdout).toContain("Next: chmod 700");
  });
});

describe("a program that is closing its herd", () => {
  test("is waited for by whoever reads or writes meanwhile", async () => {
    const desk = new Desk();
    await end(await desk.open("begin"));
    const herd = await createHerd({
      directory: desk.directory,
      tickMs: 0,
      agents: { stubborn: { description: "Does not stop", run: () => new Promise<string>(() => undefined) } },
    });
    await herd.owner("other").assign({ agent: "stubborn", task: "A" });
    const closing = herd.close({ graceMs: 2_000 });
    const [listed, replied] = await Promise.all([desk.run("list"), desk.run("reply", "first", "north")]);
    await closing;
    expect(listed).toMatchObject({ code: 0, stderr: "" });
    expect(replied).toMatchObject({ code: 0, stderr: "" });
    expect(replied.stdout).toContain("Stored");
  });
});

describe("herd watch", () => {
  test("ends at Ctrl-C while no program has the herd, and leaves the store alone until then", async () => {
    const desk = new Desk();
    await end(await desk.open("begin"));
    const watches = [0, 1].map(() => startHerd(["watch", "--directory", desk.directory], desk.folder));
    const said = ["", ""];
    for (const [index, { child }] of watches.entries()) {
      child.stdout?.on("data", (text: string) => (said[index] += text));
    }
    await until("both", () => said.every((text) => text.includes("No program has this herd open")));
    // LevelDB names its files anew at every opening.
    const files = readdirSync(join(desk.directory, "store")).join();
    await desk.run("verify");
    expect(readdirSync(join(desk.directory, "store")).join()).toBe(files);
    for (const { child } of watches) child.kill("SIGINT");
    for (const { ended } of watches) expect(await ended).toMatchObject({ code: 130, stderr: "" });
  });
});

test("a failed outcome fails the command that takes it, after it is taken", async () => {
  const desk = new Desk();
  const fail = async () => {
    throw new Error("the printer is on fire");
  };
  const herd = await createHerd({
    directory: desk.directory,
    tickMs: 0,
    agents: { fails: { description: "Fails", run: fail } },
  });
  const { requestId } = await herd.owner({ scope: "shop", keys: { order: "7" } }).assign({ agent: "fails", task: "A" });
  const asked = ["--subject", "shop?order=7"];
  await until("its end", async () => json(await desk.run("parked", ...asked, "--json")).length > 0);
  const taken = await desk.run("take", requestId, ...asked);
  expect(taken).toMatchObject({ code: 1, stdout: "" });
  expect(taken.stderr).toContain("the printer is on fire");
  expect(json(await desk.run("parked", ...asked, "--json"))).toEqual([]);
  await herd.close();
});

test("a label in two workspaces of one owner is told apart by its workspace", async () => {
  const desk = new Desk();
  const agents = { asks: { description: "Asks", run: async () => new Promise<string>(() => undefined) } };
  const herd = await createHerd({ directory: desk.directory, tickMs: 0, agents });
  for (const workspace of ["east", "west"]) {
    await herd.owner("me", { workspace }).assign({ agent: "asks", label: "twin", task: workspace });
  }
  const both = await desk.run("close", "twin");
  expect(both.code).toBe(1);
  expect(both.stderr).toContain("in the workspaces east, west. Next: add --workspace NAME");
  expect((await desk.run("close", "twin", "--workspace", "west")).stdout).toBe('Closed: "twin".\n');
  expect((await herd.owner("me", { workspace: "east" }).list()).workers).toHaveLength(1);
  await herd.close({ graceMs: 0 });
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
      const folder = folderWith({ script: (await herd(["completion", shell], folderWith({}))).stdout });
      expect(await start(shell, ["-n", "script"], folder).ended).toMatchObject({ code: 0, stderr: "" });
    });
  });

  test("offers commands, options, and the labels that ask", async () => {
    const desk = new Desk();
    await end(await desk.open("begin"));
    const offered = async (...words: string[]) =>
      (await herd(["complete", "--", ...words], desk.folder)).stdout.split(/\s+/);
    expect(await offered("re")).toEqual(expect.arrayContaining(["reply", "result"]));
    expect(await offered("list", "--")).toEqual(expect.arrayContaining(["--json", "--directory"]));
    const labels = await offered("reply", "-d", desk.directory, "");
    expect(labels).toEqual(expect.arrayContaining(["first", "second"]));
    expect(labels).not.toContain("done");
  });
});
