import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { reachHost } from "../../adapters/host/start.ts";
import { readKey } from "../../adapters/host/tokens.ts";
import { version } from "../../adapters/pi/version.ts";
import { leftBehind, refused, Root, serve } from "../support/pi/client.ts";
import { extension, piPlace, runHerd, runPi, until, type PiPlace } from "../support/pi/place.ts";
import { subagent, task } from "../support/pi/session.ts";

const agent = (fields: string) => `---\ndescription: a test's\n${fields}\n---\nYou work.\n`;

/** A place whose definitions load extensions of the test, one each. */
function placeWith(extensions: Record<string, string>, agents: Record<string, string> = {}): PiPlace {
  const place = piPlace({ agents });
  for (const [name, source] of Object.entries(extensions)) {
    const file = join(place.base, `${name}.ts`);
    writeFileSync(file, source);
    writeFileSync(join(place.agentDir, "agents", `${name}.md`), agent(`extensions: [${file}]`));
  }
  return place;
}

/** Once its host has stopped nothing is there any more. */
async function leavesNothing(place: PiPlace): Promise<void> {
  const stopped = await runHerd(place, ["stop"]);
  expect(stopped).toMatchObject({ code: 0, stderr: "" });
  expect(leftBehind(place)).toEqual([]);
}

const reach = (place: PiPlace) =>
  reachHost({ directory: place.herd, bearer: { role: "root", session: "one" }, version, env: place.env });

describe("a worker that cannot start", () => {
  test("is rolled back with what Pi said of it, and leaves nothing", async () => {
    const place = placeWith(
      { throws: `export default () => { throw new Error("thrown on purpose"); };` },
      {
        stranger: agent("model: nowhere/thing"),
        bare: agent("extensions: [/nowhere/missing.ts]"),
        clumsy: agent("skills: [./nowhere/SKILL.md, a-word]"),
        keyless: agent("model: anthropic/claude-sonnet-4-5"),
      },
    );
    serve(place, [], { ANTHROPIC_API_KEY: "" });
    const root = await Root.of(place);
    const expected = {
      throws: ["not_started", "thrown on purpose"],
      stranger: ["not_started", 'Model "nowhere/thing" not found'],
      bare: ["not_started", "Extension path does not exist: /nowhere/missing.ts"],
      clumsy: ["invalid_request", 'names skills that are not there: "./nowhere/SKILL.md"'],
      keyless: ["not_started", "no key for the model anthropic/claude-sonnet-4-5: run pi and /login"],
    };
    for (const [name, [reason, says]] of Object.entries(expected)) {
      const answer = await root.subagent({ action: "assign", agent: name, task: "x" });
      expect({ name, ...answer }).toMatchObject({
        name,
        ok: false,
        error: {
          reason,
          message: expect.stringContaining(says as string),
          nextAction: expect.stringMatching(/\w/),
          rollbackOccurred: true,
          details: { stage: "agent_start" },
        },
      });
    }
    expect((await root.subagent({ action: "list" })).workers).toEqual([]);
    // Updated or removed since the session said where it is: nothing begins.
    const gone = { pi: { node: process.execPath, cli: join(place.base, "nowhere", "cli.js") } };
    await root.here(gone);
    const found = await root.subagent({ action: "assign", agent: "scout", task: task("say found"), label: "found" });
    expect(found).toMatchObject({ ok: true });
    await root.subagent({ action: "close", label: "found" });
    await root.connection.close(0);
    await leavesNothing(place);
  });

  test("for want of any model says so, and leaves nothing", async () => {
    const settings = { defaultProvider: undefined, defaultModel: undefined };
    const place = piPlace({ extensions: [extension], settings });
    writeFileSync(join(place.agentDir, "auth.json"), "{}");
    serve(place);
    const root = await Root.of(place, "one", version, { model: undefined });
    expect(await root.subagent({ action: "assign", agent: "scout", task: "x" })).toMatchObject({
      ok: false,
      error: { reason: "not_started", message: expect.stringContaining("No model is chosen for this worker") },
    });
    await root.connection.close(0);
    await leavesNothing(place);
  });

  test("that hangs in its start uses up its budget, with the stage and one bounded look at what it said", async () => {
    const place = placeWith({
      hangs: `export default (pi) => {
        for (let n = 0; n < 5000; n++) process.stderr.write("line " + n + " of a start\\n");
        setInterval(() => {}, 1000);
        return new Promise(() => {});
      };`,
      lags: `export default (pi) => pi.on("session_start", () => new Promise(() => {}));`,
    });
    serve(place);
    const root = await Root.of(place);
    const answer = await root.subagent({ action: "assign", agent: "hangs", task: "x", timeoutMs: 5_001 });
    expect(answer).toMatchObject({
      ok: false,
      error: { category: "pane_not_ready", rollbackOccurred: true, details: { stage: "agent_result" } },
    });
    const { paneSnapshot } = answer.error.details;
    expect(paneSnapshot).toContain("line 4999 of a start");
    expect(paneSnapshot.split("\n").length).toBeLessThanOrEqual(40);
    expect((await root.subagent({ action: "list" })).workers).toEqual([]);
    await root.assign("lags", task("say done"), { agent: "lags" });
    // Ours comes first: what another extension still does at the start holds nothing up.
    await until(async () => (await root.worker("lags"))?.state === "settling", "the result");
    await root.subagent({ action: "close", label: "lags" });
    await root.connection.close(0);
    await leavesNothing(place);
  });
});

describe("a worker", () => {
  test("that floods its output with and without lines does its task, and costs the host no memory", async () => {
    const place = placeWith({
      floods: `export default (pi) => {
        const block = "x".repeat(1 << 18);
        const timer = setInterval(() => {
          for (const stream of [process.stdout, process.stderr]) {
            if (stream.writableLength < 1 << 20) stream.write(block);
            if (stream.writableLength < 1 << 20) stream.write("short\\n" + block + "\\n");
          }
        }, 1);
        pi.on("session_shutdown", () => clearInterval(timer));
      };`,
    });
    const host = serve(place);
    const root = await Root.of(place);
    const before = memoryOf(host.child.pid);
    const steps = task(`call bash {"command":"sleep 1"}`, "say done in spite of it");
    await root.assign("floods", steps, { agent: "floods" });
    await until(async () => (await root.worker("floods"))?.state === "settling", "the result");
    expect(memoryOf(host.child.pid) - before).toBeLessThan(150);
    await root.subagent({ action: "close", label: "floods" });
    await root.connection.close(0);
    await leavesNothing(place);
  });

  test.runIf(process.platform === "linux").each([
    ["", false],
    [" and its host", true],
  ])("that is killed%s leaves nothing running of what its tools started", async (_, andHost) => {
    const place = piPlace();
    const host = serve(place);
    let root = await Root.of(place);
    const loop = "touch began; while :; do sleep 0.05; done";
    await root.assign("busy", task(`call bash {"command":"${loop}"}`, "say went on"), { agent: "implementer" });
    await until(() => existsSync(join(place.cwd, "began")), "the command");
    const running = () => place.processes().filter(({ command }) => command.includes(loop));
    const before = running().map(({ pid }) => pid);
    expect(before.length).toBeGreaterThan(0);
    // A host that stands still cannot tidy up: the next one has to.
    if (andHost) host.child.kill("SIGSTOP");
    await place.cut(place.workers()[0]);
    if (andHost) {
      await place.cut(host.child.pid);
      serve(place);
      root = await Root.of(place);
    }
    await until(() => running().every(({ pid }) => !before.includes(pid)), "the end of the command");
    await until(async () => (await root.worker("busy"))?.state !== "unknown", "the worker");
    expect(await root.subagent({ action: "close", label: "busy" })).toMatchObject({ ok: true });
    await root.connection.close(0);
    await leavesNothing(place);
  });

  test("in a project that nobody trusts starts at once, without the project's extensions, and finds the right Node", async () => {
    const place = piPlace();
    // Whatever asks for node gets one that is too old.
    const bin = join(place.base, "bin");
    mkdirSync(bin);
    writeFileSync(join(bin, "node"), "#!/bin/sh\necho v12.0.0; exit 1\n");
    chmodSync(join(bin, "node"), 0o755);
    mkdirSync(join(place.cwd, ".pi"));
    const mark = join(place.base, "loaded");
    writeFileSync(join(place.cwd, ".pi", "settings.json"), JSON.stringify({ extensions: ["./loads.ts"] }));
    writeFileSync(
      join(place.cwd, ".pi", "loads.ts"),
      `import { writeFileSync } from "node:fs"; export default () => writeFileSync(${JSON.stringify(mark)}, "");`,
    );
    serve(place, [], { PATH: `${bin}:${place.env["PATH"]}` });
    const root = await Root.of(place);
    await root.here({ env: { ...place.env, PATH: `${bin}:${place.env["PATH"]}` } });
    const steps = task(`call bash {"command":"node --version > version.txt"}`, "say done");
    await root.assign("untrusting", steps);
    await until(async () => (await root.worker("untrusting"))?.state === "settling", "the result");
    expect(existsSync(mark)).toBe(false);
    expect(readFileSync(join(place.cwd, "version.txt"), "utf8").trim()).toBe(process.version);
    await root.here({ trusted: true });
    await root.assign("trusting", steps);
    expect(existsSync(mark)).toBe(true);
    for (const label of ["untrusting", "trusting"]) await root.subagent({ action: "close", label });
    await root.connection.close(0);
    await leavesNothing(place);
  });
});

describe("a host", () => {
  test("whose folder is a file is not started, and a session's model, herd serve and herd status say so", async () => {
    const place = piPlace();
    writeFileSync(place.herd, "a file");
    const says = /The folder of the background process, .*herd, cannot be used: .*Next: make room/s;
    const print = await runPi(place, [
      "-p",
      `SCRIPT\n${subagent({ action: "assign", agent: "scout", task: "x" })}\nsay it said {last}`,
    ]);
    expect(print.stdout).toMatch(says);
    expect(print.stderr).toMatch(says);
    // The reason does not pass by itself, so that nothing is waited for.
    expect(print.stderr.match(/^herd: /gm)).toHaveLength(1);
    for (const command of ["serve", "status", "stop"]) {
      const { code, stderr } = await runHerd(place, [command]);
      expect({ command, code, stderr }).toEqual({ command, code: 1, stderr: expect.stringMatching(says) });
      expect(stderr.trim().split("\n")).toHaveLength(1);
    }
    expect(place.processes()).toEqual([]);
  });

  test("whose key is damaged lets nobody in, and says which file to remove", async () => {
    const place = piPlace();
    mkdirSync(place.herd, { mode: 0o700 });
    writeFileSync(join(place.herd, "key"), "");
    for (const command of ["serve", "status"]) {
      const { code, stderr } = await runHerd(place, [command]);
      expect(code).toBe(1);
      expect(stderr).toMatch(/key is damaged: .* Next: end the background process if it runs, and remove .*key/s);
    }
    expect(place.processes()).toEqual([]);
  });

  test("whose socket path would be too long listens in the temporary folder, which is tidied up", async () => {
    const place = piPlace();
    const agentDir = join(place.base, "deep-".repeat(30), "agent");
    const deep = { ...place, herd: join(agentDir, "herd"), env: { ...place.env, PI_CODING_AGENT_DIR: agentDir } };
    const { connection } = await reach(deep);
    const [socket = ""] = readFileSync(join(deep.herd, "control"), "utf8").split("\n");
    expect(socket).toContain(join(tmpdir(), "pi-herd-"));
    expect(existsSync(socket)).toBe(true);
    await connection.close(0);
    await leavesNothing(deep);
    expect(existsSync(dirname(socket))).toBe(false);
  });

  test("of another protocol is not talked to: the session says what to do", async () => {
    const place = piPlace();
    mkdirSync(join(place.herd, "run"), { recursive: true, mode: 0o700 });
    const path = join(place.herd, "run", "herd.sock");
    const answer = { protocol: 99, pid: process.pid, version: "9.9.9", directory: place.herd, status: "open" };
    const impostor = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (data) => {
        const { id } = JSON.parse(data.toString("utf8").split("\n")[0] as string);
        socket.write(`${JSON.stringify({ jsonrpc: "2.0", id, result: answer })}\n`);
      });
    });
    await new Promise<void>((done) => impostor.listen(path, done));
    onTestFinished(() => void impostor.close());
    writeFileSync(join(place.herd, "control"), `${path}\n`);
    await readKey(place.herd);
    expect(await refused(reach(place))).toMatchObject({
      reason: "control_version",
      message: expect.stringContaining("is of another version of pi-herd"),
      nextAction: expect.stringContaining("herd.js stop"),
    });
    expect(place.processes()).toEqual([]);
  });

  test("that cannot be started says why, once and in one line", async () => {
    const place = piPlace();
    const { connection } = await reach(place);
    await connection.close(0);
    expect((await runHerd(place, ["stop"])).code).toBe(0);
    rmSync(join(place.herd, "store"), { recursive: true });
    writeFileSync(join(place.herd, "store"), "a file");
    const error = await refused(reach(place));
    expect(error).toMatchObject({
      reason: "host_not_started",
      message: expect.stringMatching(/did not start: .*store/),
      nextAction: expect.stringContaining("herd.js doctor"),
    });
    expect(error.message.split("Next:")).toHaveLength(2);
    await until(() => leftBehind(place).length === 0, "the end of the start");
  });
});

const mountPoint = mkdtempSync(join(tmpdir(), "herd-pi-disk-"));
const mayMount = mount("size=1m") && unmount();
afterAll(() => rmSync(mountPoint, { recursive: true, force: true }));

function mount(options: string): boolean {
  if (process.platform !== "linux") return false;
  return spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", mountPoint]).status === 0;
}

function unmount(): boolean {
  return spawnSync("umount", [mountPoint]).status === 0;
}

describe.skipIf(!mayMount)("a host on a disk of its own (needs root on Linux, to mount a tmpfs)", () => {
  test("that is full or read-only refuses with what to do, and goes on once there is room", async () => {
    expect(mount("size=24m,mode=0700")).toBe(true);
    const place = piPlace();
    const agentDir = join(mountPoint, "agent");
    onTestFinished(async () => {
      await place.end();
      unmount();
    });
    mkdirSync(agentDir);
    for (const file of ["settings.json", "auth.json"]) {
      writeFileSync(join(agentDir, file), readFileSync(join(place.agentDir, file)));
    }
    const onDisk = {
      ...place,
      agentDir,
      herd: join(agentDir, "herd"),
      env: { ...place.env, PI_CODING_AGENT_DIR: agentDir },
    };
    let { connection } = await reach(onDisk);
    let root = await Root.of(onDisk);
    const filler = join(mountPoint, "filler");
    await fill(filler);
    const big = (label: string) => ({ action: "assign", agent: "scout", label, task: "x".repeat(100_000) });
    const answers = [];
    for (const label of ["one", "two"]) {
      answers.push(
        await root.subagent(big(label)).catch((error: Error) => ({ ok: false, error: { message: error.message } })),
      );
    }
    for (const answer of answers) {
      expect(answer.ok).toBe(false);
      expect(answer.error.message).toMatch(/Next: /);
    }
    // A store that takes no more writes is no reason to stay; the next host says why it cannot start.
    await until(() => place.processes().length === 0, "the end of the host");
    expect(await refused(reach(onDisk))).toMatchObject({
      reason: "host_not_started",
      message: expect.stringContaining("No space left on device"),
    });
    await rm(filler);
    ({ connection } = await reach(onDisk));
    root = await Root.of(onDisk);
    await root.assign("after", task("say done"), { agent: "scout" });
    await until(async () => (await root.worker("after"))?.state === "settling", "the result");
    expect((await root.subagent({ action: "close", label: "after" })).ok).toBe(true);
    await root.connection.close(0);
    await connection.close(0);
    await leavesNothing(onDisk);

    expect(mount("remount,ro")).toBe(true);
    expect(await refused(reach(onDisk))).toMatchObject({
      reason: "host_not_started",
      message: expect.stringMatching(/read-only/i),
    });
    const served = await runHerd(onDisk, ["serve"]);
    expect(served.code).toBe(1);
    expect(served.stderr).toMatch(/read-only.*Next: /is);
    expect(place.processes()).toEqual([]);
  });
});

/** Leaves no block of the disk free. */
async function fill(file: string): Promise<void> {
  for (const size of [1024 * 1024, 64 * 1024, 4096]) {
    const block = Buffer.alloc(size);
    for (;;) {
      try {
        await writeFile(file, block, { flag: "a" });
      } catch {
        break;
      }
    }
  }
}

/** In megabytes. */
function memoryOf(pid: number | undefined): number {
  const [, kilobytes = "0"] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}
