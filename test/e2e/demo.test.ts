import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createHerd } from "../../runtime/index.ts";
import { folderWith, keptFolderWith } from "./folder.ts";
import { herd, herdFile, root, shell, start, startHerd, workersStarted, type Ended } from "./herd-process.ts";
import { hasTmux, Terminal } from "./terminal.ts";

const project = {
  ".gitignore": "dist\n",
  "src/index.ts": "one\ntwo\n",
  "dist/index.js": "one\n",
  "docs/ä ö.md": "# one\r\n",
};

/** Long enough to count that a signal arrives meanwhile. */
const bigProject = Object.fromEntries(
  Array.from({ length: 10_000 }, (_, n) => [`folder-${n % 20}/file-${n}.ts`, "one\ntwo\n"]),
);
const BIG_TOTAL = /^ {2}total +10,000 +20,000 +80,000$/m;

const assignmentIn = ({ stdout, stderr }: Ended) => /\(assignment ([\w-]+)\)/.exec(stderr + stdout)?.[1];
const tablesIn = (...runs: Ended[]) =>
  runs
    .map(({ stdout }) => stdout)
    .join("")
    .match(/^Census of /gm)?.length ?? 0;
const commandIn = ({ stdout }: Ended) => stdout.trimEnd().split("\n").at(-1)?.trim() ?? "";

describe("herd demo without a terminal", () => {
  test("leaves the question parked, and the command that it names answers it", async () => {
    const folder = folderWith(project);
    const parked = await herd(["demo"], folder);
    expect(parked).toMatchObject({ code: 0, signal: null });
    expect(parked.stdout).toContain('The worker "census" asks:');
    expect(parked.stdout).toMatch(/^ +dist +1 +4 B +looks generated: build output$/m);
    expect(commandIn(parked)).toMatch(/^node .*herd\.js demo \. --directory \.herd --answer "dist"$/);

    const answered = await shell(commandIn(parked), folder);
    expect(answered).toMatchObject({ code: 0, signal: null });
    expect(assignmentIn(answered)).toBe(assignmentIn(parked));
    expect(answered.stdout).toMatch(/^ {2}TypeScript +1 +2 +8$/m);
    expect(answered.stdout).toMatch(/^ {2}total +3 +4 +20$/m);
    expect(answered.stdout).toContain("Left out: dist (1 file, 4 B).");
    expect(tablesIn(parked, answered)).toBe(1);
  });

  test("run again says what is waiting and starts no second census", async () => {
    const folder = folderWith(project);
    const first = await herd(["demo"], folder);
    const second = await herd(["demo"], folder);
    expect(second.code).toBe(0);
    expect(second.stdout).toBe(first.stdout);
    expect(second.stderr).toContain("goes on");
  });

  test("given the answer beforehand goes through, and the next run begins a new census", async () => {
    const folder = folderWith(project);
    const first = await herd(["demo", ".", "--answer", "dist, dits"], folder);
    expect(first.code).toBe(0);
    expect(first.stdout).toContain("No such folder, so not left out: dits.");
    expect(tablesIn(first)).toBe(1);
    const second = await herd(["demo", ".", "--answer", ""], folder);
    expect(second.stdout).toContain("Left out: nothing.");
    expect(assignmentIn(second)).not.toBe(assignmentIn(first));
  });

  test("keeps the censuses of two folders apart in one store", async () => {
    const folder = folderWith({ "one/src/a.ts": "1\n", "two/src/a.ts": "1\n2\n" });
    await herd(["demo", "one"], folder);
    const two = await herd(["demo", "two", "--answer", "none"], folder);
    const one = await herd(["demo", "one", "--answer", "none"], folder);
    expect(two.stdout).toContain(`Census of ${join(folder, "two")}\n`);
    expect(one.stdout).toContain(`Census of ${join(folder, "one")}\n`);
    expect(tablesIn(one, two)).toBe(2);
  });

  test("by npm start names npm start", async () => {
    const directory = join(folderWith({}), "store");
    const parked = await start("npm", ["start", "--", "--directory", directory], root).ended;
    expect(parked.code).toBe(0);
    // What else it proposes is what lies there: built output, a store of an earlier start.
    const [, proposed = ""] = /--answer "(.*)"$/.exec(commandIn(parked)) ?? [];
    expect(proposed.split(" ")).toContain("node_modules");
    expect(commandIn(parked)).toBe(`npm start -- --directory ${directory} --answer "${proposed}"`);
    const answered = await shell(commandIn(parked), root);
    expect(answered.code).toBe(0);
    expect(assignmentIn(answered)).toBe(assignmentIn(parked));
    expect(answered.stdout).toMatch(/Left out: .*node_modules/);
  });
});

describe("herd demo that is stopped while it counts", () => {
  /** Nobody writes into it but the herds, whose store goes with each test. */
  let folder: string;
  let remove: () => void;

  beforeAll(() => void ({ folder, remove } = keptFolderWith(bigProject)));
  afterEach(() => rmSync(join(folder, ".herd"), { recursive: true, force: true }));
  afterAll(() => remove());

  test("by kill -9 goes on with the same assignment and ends with one result", async () => {
    const first = startHerd(["demo", ".", "--answer", "none"], folder);
    await workersStarted(5, join(folder, ".herd"));
    first.child.kill("SIGKILL");
    const killed = await first.ended;
    expect(killed).toMatchObject({ signal: "SIGKILL", stdout: "" });
    // The answer is in the store by now: nobody has to give it again.
    const second = await herd(["demo"], folder);
    expect(second.code).toBe(0);
    expect(assignmentIn(second)).toBe(assignmentIn(killed));
    expect(second.stdout).toMatch(BIG_TOTAL);
    expect(tablesIn(second)).toBe(1);
  });

  test("by kill -9 at random moments ends with one result", async () => {
    const moments = Array.from({ length: 4 }, () => Math.round(Math.random() * 900));
    const runs: Ended[] = [];
    for (const moment of moments) {
      const { child, ended } = startHerd(["demo", ".", "--answer", "none"], folder);
      await Promise.race([pause(moment), ended]);
      child.kill("SIGKILL");
      runs.push(await ended);
      if (tablesIn(...runs) > 0) break;
    }
    if (tablesIn(...runs) === 0) runs.push(await herd(["demo", ".", "--answer", "none"], folder));
    const assignments = new Set(runs.map(assignmentIn).filter((id) => id !== undefined));
    // The moments are only compared so that a failure shows them.
    expect({ moments, tables: tablesIn(...runs), assignments: assignments.size }).toEqual({
      moments,
      tables: 1,
      assignments: 1,
    });
    expect(runs.at(-1)?.stdout).toMatch(BIG_TOTAL);
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("by %s closes in order and says how to go on", async (signal, code) => {
    const first = startHerd(["demo", ".", "--answer", "none"], folder);
    await workersStarted(3, join(folder, ".herd"));
    first.child.kill(signal);
    const stopped = await first.ended;
    expect(stopped).toMatchObject({ code, stdout: "" });
    expect(stopped.stderr).toContain(`Stopped by ${signal}; nothing is lost.`);
    expect(existsSync(join(folder, ".herd", "holder.json"))).toBe(false);
    const command = /To go on: (.*)/.exec(stopped.stderr)?.[1] ?? "";
    const second = await shell(command, folder);
    expect(second.code).toBe(0);
    expect(assignmentIn(second)).toBe(assignmentIn(stopped));
    expect(second.stdout).toMatch(BIG_TOTAL);
  });
});

describe("herd refuses", () => {
  test.each([
    ["a folder that does not exist", "gone", "gone does not exist"],
    ["a file", ".gitignore", ".gitignore is not a folder"],
  ])("%s, and creates nothing", async (_what, name, message) => {
    const folder = folderWith(project);
    const { code, stdout, stderr } = await herd(["demo", name], folder);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain(`${message}, so it cannot be counted. Next: `);
    expect(existsSync(join(folder, ".herd"))).toBe(false);
  });

  test.skipIf(process.platform === "win32")("a folder that this user cannot read, and creates nothing", async () => {
    const folder = folderWith({ "closed/a.ts": "1\n" });
    chmodSync(join(folder, "closed"), 0);
    chmodSync(folder, 0o777);
    // Permissions stop no root.
    const ordinary = process.getuid?.() === 0 ? { uid: 65_534 } : {};
    const { code, stderr } = await start(process.execPath, [herdFile, "demo", "closed"], folder, ordinary).ended;
    expect(code).toBe(1);
    expect(stderr).toContain("closed cannot be read by this user, so it cannot be counted. Next: ");
    expect(existsSync(join(folder, ".herd"))).toBe(false);
  });

  test("its own store as the folder", async () => {
    const { code, stderr } = await herd(["demo", ".", "--directory", "."], folderWith(project));
    expect(code).toBe(1);
    expect(stderr).toContain("belongs to the herd's own store");
  });

  test("a store that another process has, and names that process", async () => {
    const folder = folderWith(project);
    const holder = await createHerd({ directory: join(folder, ".herd") });
    const { code, stderr } = await herd(["demo"], folder);
    await holder.close();
    expect(code).toBe(3);
    expect(stderr).toContain(`is in use by process ${process.pid} `);
    expect((await herd(["demo"], folder)).code).toBe(0);
  });

  test.each([
    ["an unknown command", ["dmo"], "Did you mean demo?"],
    ["an unknown option", ["demo", "--answr", "x"], "Did you mean --answer?"],
    ["too many arguments", ["demo", "a", "b"], "too many arguments"],
    ["no command at all", [], "Usage: herd"],
  ])("%s as a usage error", async (_what, args, message) => {
    const folder = folderWith({});
    const { code, stderr } = await herd(args, folder);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(existsSync(join(folder, ".herd"))).toBe(false);
  });
});

describe("herd", () => {
  test("tells its version and its help", async () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
    expect(await herd(["--version"], root)).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
    const help = await herd(["demo", "--help"], root);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    expect(help.stdout).toContain('herd demo . --answer "dist"');
  });

  const [oldNode, oldVersion] = findOldNode() ?? [];
  test.skipIf(oldNode === undefined)("on an older Node says first which is needed and which this is", async () => {
    const { code, stdout, stderr } = await start(oldNode as string, [herdFile, "demo"], root).ended;
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr.split("\n")[0]).toBe(`herd needs Node 22.19 or newer, and this is Node ${oldVersion} (${oldNode}).`);
  });
});

/** Where tmux is missing these tests are skipped, unless it has to be there: then they fail. */
const noTerminal = !hasTmux && process.env["HERD_E2E"] !== "required";

describe("herd demo in a terminal", () => {
  test.skipIf(noTerminal)("shows the workers, asks, and shows the table", async () => {
    const folder = folderWith(project);
    const terminal = new Terminal(["demo"], folder);
    const asking = await terminal.shows("Leave out [dist]:");
    expect(asking).toMatch(/^census +blocked +asks: Which folders do I leave out/m);
    terminal.type("src docs", "Enter");
    const done = await terminal.shows("exit code 0");
    expect(done).toMatch(/^ {2}JavaScript +1 +1 +4$/m);
    expect(done).toContain("Left out: src (1 file, 8 B), docs (1 file, 7 B).");
    expect(done.match(/Census of /g)).toHaveLength(1);
  });

  test.skipIf(noTerminal)("takes the suggestion when only Enter is pressed", async () => {
    const terminal = new Terminal(["demo"], folderWith(project));
    await terminal.shows("Leave out [dist]:");
    terminal.type("", "Enter");
    expect(await terminal.shows("exit code 0")).toContain("Left out: dist");
  });

  test.skipIf(noTerminal)("ends at Ctrl-C and at Ctrl-D with the question still open", async () => {
    const folder = folderWith(project);
    const first = new Terminal(["demo"], folder);
    await first.shows("Leave out [dist]:");
    first.type("", "C-c");
    expect(await first.shows("exit code 130")).toContain("Stopped by SIGINT; nothing is lost.");
    const second = new Terminal(["demo"], folder);
    await second.shows("Leave out [dist]:");
    second.type("", "C-d");
    expect(await second.shows("exit code 0")).toContain("The question waits in the store");
    const answered = await herd(["demo", "--answer", "dist"], folder);
    expect(answered.stderr).toContain("goes on");
    expect(tablesIn(answered)).toBe(1);
  });

  test.skipIf(noTerminal)("keeps others out while it asks; killed there, the census goes on elsewhere", async () => {
    const folder = folderWith(project);
    const terminal = new Terminal(["demo"], folder);
    await terminal.shows("Leave out [dist]:");
    const { pid } = JSON.parse(readFileSync(join(folder, ".herd", "holder.json"), "utf8")) as { pid: number };
    const other = await herd(["demo"], folder);
    expect(other.code).toBe(3);
    expect(other.stderr).toContain(`is in use by process ${pid} `);
    process.kill(pid, "SIGKILL");
    await terminal.shows("exit code 137");
    const answered = await herd(["demo", "--answer", "dist"], folder);
    expect(answered).toMatchObject({ code: 0 });
    expect(answered.stderr).toContain("goes on");
    expect(tablesIn(answered)).toBe(1);
  });
});

/** A Node on this machine that is too old, with its version. */
function findOldNode(): [path: string, version: string] | undefined {
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
    const path = join(folder, "node");
    if (folder.includes("node_modules") || !existsSync(path)) continue;
    const version = spawnSync(path, ["--version"], { encoding: "utf8" }).stdout?.trim().slice(1);
    const [major = 0, minor = 0] = (version ?? "").split(".").map(Number);
    if (major > 0 && (major < 22 || (major === 22 && minor < 19))) return [path, version as string];
  }
  return undefined;
}
