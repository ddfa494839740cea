import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { HostStatus } from "../../adapters/host/shapes.ts";
import { reachHost } from "../../adapters/host/start.ts";
import { readKey, tokenFor } from "../../adapters/host/tokens.ts";
import { version } from "../../adapters/pi/version.ts";
import { connectHerd } from "../../runtime/index.ts";
import { Connection } from "../../runtime/client.ts";
import { client, leftBehind, refused, Root, runNode, serve, statusOf } from "../support/pi/client.ts";
import { piPlace, runHerd, until, type PiPlace } from "../support/pi/place.ts";
import { task } from "../support/pi/session.ts";

const asking = task('call ask_owner {"question":"Which colour is secret?"}', "say It became {last}");
/** Stays at its turn until a file is there. */
const atWork = (begun: string, go: string) =>
  task(`call bash {"command":"touch ${begun}; until test -e ${go}; do sleep 0.05; done"}`, "say worked");
const has = (place: PiPlace, name: string) => existsSync(join(place.cwd, name));

describe("one host", () => {
  test("serves a folder: of two starts the other leaves at once and silently, and its workers are left alone", async () => {
    const place = piPlace();
    const both = [serve(place, ["--leave-after", "60"]), serve(place, ["--leave-after", "60"])];
    const first = await Promise.race(both.map(async (each) => ({ each, ...(await each.ended) })));
    expect(first).toMatchObject({ code: 0, stdout: "", stderr: "" });
    const other = both.find((each) => each !== first.each);
    const root = await Root.of(place);
    expect(root.connection.welcome.pid).toBe(other?.child.pid);
    await root.assign("asker", asking);
    await until(async () => (await root.worker("asker"))?.state === "blocked", "the question");
    const workers = place.workers();
    const third = await serve(place).ended;
    expect(third).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(place.workers()).toEqual(workers);
    expect((await statusOf(place)).workers).toBe(1);

    // Its session is gone, and it stays for the worker; with nobody left to care for it leaves nothing.
    await root.connection.close(1_000);
    expect(await statusOf(place)).toMatchObject({ roots: 0, workers: 1, pid: other?.child.pid });
    const again = await Root.of(place);
    expect(await again.subagent({ action: "close", label: "asker" })).toMatchObject({ ok: true });
    await again.connection.close(1_000);
    const stopped = await runHerd(place, ["stop"]);
    expect(stopped.stdout).toMatch(/^Process \d+ has ended/);
    expect(leftBehind(place)).toEqual([]);
  });

  test("is started by whoever needs it first, tells one session of itself once for ever, and leaves when nobody needs it", async () => {
    const place = piPlace();
    const visitor = (session: string) => ({
      directory: place.herd,
      bearer: { role: "root", session } as const,
      version,
      env: place.env,
    });
    const [one, two] = await Promise.all([reachHost(visitor("one")), reachHost(visitor("two"))]);
    expect(one.connection.welcome.pid).toBe(two.connection.welcome.pid);
    await until(() => place.processes().length === 1, "the end of the second start");
    await Promise.all([one.connection.close(0), two.connection.close(0)]);
    const roots = [await Root.of(place, "three"), await Root.of(place, "four")];
    // Both have said already that they are here.
    const told = existsSync(join(place.herd, "told"));
    expect(told).toBe(true);
    expect(await roots[1]?.here()).toMatchObject({ isNews: false });
    for (const { connection } of roots) await connection.close(0);
    expect((await runHerd(place, ["stop", "--json"])).code).toBe(0);

    const short = serve(place, ["--leave-after", "0.3"]);
    const later = await Root.of(place, "five");
    const connected = Date.now();
    await later.connection.close(0);
    const news = await client(place, { role: "root", session: "six" });
    // Connected for longer than nobody may need it.
    await until(() => Date.now() > connected + 1_000);
    expect((await statusOf(place)).clients).toBe(2);
    const herd = await connectHerd({ directory: place.herd });
    const subject = { scope: "yearly", keys: { of: "count" } };
    const door = { kind: "schedule", name: "yearly", cron: "0 0 1 1 *", subject, target: "scout" } as const;
    const saved = await herd.door({ ...door, defaults: "count" });
    await news.close(0);
    await herd.close();
    const due = Date.now();
    await until(() => Date.now() > due + 1_000);
    expect(short.child.exitCode).toBeNull();
    expect(saved.name).toBe("yearly");
    const again = await connectHerd({ directory: place.herd });
    const [door0] = await again.doors();
    await door0?.remove();
    await again.close();
    expect(await short.ended).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(leftBehind(place)).toEqual([]);
  });

  test("is seen and ended from a shell", async () => {
    const place = piPlace();
    const none = await runHerd(place, ["status"]);
    expect(none).toMatchObject({ code: 0, stderr: "" });
    expect(none.stdout).toMatch(/^No background process runs for .*herd; the Pi extension starts one/);
    expect(JSON.parse((await runHerd(place, ["stop", "--json"])).stdout)).toEqual({
      stopped: false,
      directory: place.herd,
    });
    const host = serve(place);
    await client(place, { role: "root", session: "one" });
    const { pid } = host.child;
    expect((await runHerd(place, ["status"])).stdout).toContain(`Process ${pid} serves ${place.herd} since `);
    const status = JSON.parse((await runHerd(place, ["status", "--json"])).stdout) as HostStatus;
    expect(status).toMatchObject({ pid, version, directory: place.herd, workers: 0, dialogs: [], replacing: false });
    expect(JSON.parse((await runHerd(place, ["stop", "--json"])).stdout)).toEqual({
      stopped: true,
      pid,
      directory: place.herd,
      sessions: 0,
    });
    expect(await host.ended).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(leftBehind(place)).toEqual([]);
  });
});

/** A host of another version: the command as it is, told another number. */
function older(place: PiPlace, than: string): string {
  const main = fileURLToPath(new URL("../../adapters/cli/main.ts", import.meta.url));
  const script = join(place.base, "herd.js");
  writeFileSync(
    script,
    `import { main } from ${JSON.stringify(main)};\nawait main(process.argv.slice(2), "${than}");\n`,
  );
  writeFileSync(join(place.base, "package.json"), `{ "type": "module" }`);
  return script;
}

describe("a host of an older version", () => {
  test("makes room for a newer one as soon as no worker is at a turn", async () => {
    const place = piPlace();
    const old = runNode(place, [older(place, "0.0.1"), "serve"]);
    const root = await Root.of(place, "root-session", "0.0.1");
    await root.assign("digger", atWork("begun", "go"), { reusable: true });
    await until(() => has(place, "begun"), "the turn");
    const newer = await client(place, { role: "root", session: "newer" });
    expect(newer.welcome.pid).toBe(old.child.pid);
    expect(await statusOf(place)).toMatchObject({ version: "0.0.1", replacing: true });
    expect((await runHerd(place, ["status"])).stdout).toContain("A newer version takes over");
    expect(old.child.exitCode).toBeNull();
    writeFileSync(join(place.cwd, "go"), "");
    expect(await old.ended).toMatchObject({ code: 0, stderr: "" });
    const next = serve(place);
    const again = await Root.of(place);
    expect(again.connection.welcome.pid).toBe(next.child.pid);
    expect((await statusOf(place)).version).toBe(version);
    // What the worker had said is kept for its owner.
    expect(await again.worker("digger")).toBeDefined();
    expect((await again.subagent({ action: "close", label: "digger" })).ok).toBe(true);
    expect((await runHerd(place, ["stop"])).code).toBe(0);
    expect(leftBehind(place)).toEqual([]);
  });

  test("makes room for one that speaks another protocol, which herd stop ends too", async () => {
    const place = piPlace();
    const old = runNode(place, [older(place, "0.0.1"), "serve"]);
    const observer = await client(place, { role: "observer" });
    await observer.close(0);
    const [path = "", person = ""] = readFileSync(join(place.herd, "control"), "utf8").split("\n");
    const hello = { protocol: 99, pid: process.pid, token: person, version: "9.9.9" };
    const socket = connect(path);
    let said = "";
    socket.setEncoding("utf8").on("data", (part: string) => (said += part));
    socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "hello", params: hello })}\n`);
    await until(() => said.includes("control_version"), "the refusal");
    expect(await old.ended).toMatchObject({ code: 0, stderr: "" });
    expect(leftBehind(place)).toEqual([]);
  });
});

describe("a token", () => {
  test("lets its bearer be one and nobody else", async () => {
    const place = piPlace();
    const host = serve(place);
    const root = await Root.of(place);
    const { connection: own } = root;
    const list = (id: string) => ({ owner: { id }, cwd: place.cwd });
    expect(await own.request("owner/list", list("root-session"))).toMatchObject({ workers: [] });
    expect(await refused(own.request("owner/list", list("another")))).toMatchObject({
      reason: "not_granted",
      message: expect.stringContaining('"root-session"'),
      nextAction: expect.stringMatching(/\w/),
    });
    for (const method of ["herd/owners", "herd/tick", "herd/backup", "host/stop", "worker/report", "worker/hello"]) {
      const says = method === "herd/backup" ? { directory: place.base } : {};
      expect([method, (await refused(own.request(method, says))).reason]).toEqual([method, "not_granted"]);
    }
    const observer = await client(place, { role: "observer" });
    expect(await observer.request("herd/owners", {})).toEqual([]);
    const assign = { ...list("root-session"), request: { action: "assign", agent: "scout", task: "x" } };
    for (const [method, says] of [
      ["owner/subagent", assign],
      ["host/stop", {}],
      ["root/here", {}],
      ["dialog/answer", { dialog: "x", answer: "yes" }],
    ] as const) {
      expect([method, (await refused(observer.request(method, says))).reason]).toEqual([method, "not_granted"]);
    }
    const key = await readKey(place.herd);
    const good = tokenFor(key, { role: "root", session: "root-session" });
    const forged = tokenFor(Buffer.alloc(32), { role: "person" });
    for (const token of ["", "nonsense", `${good}x`, forged, good.replace(/\.[^.]+\./, ".WyJwZXJzb24iXQ.")]) {
      const error = await refused(Connection.open(place.herd, { token }));
      expect({ token, ...error.toJSON() }).toMatchObject({
        reason: "bad_token",
        nextAction: expect.stringContaining("herd command"),
      });
    }
    host.child.kill("SIGTERM");
    expect(await host.ended).toEqual({ code: 0, stdout: "", stderr: "" });
  });

  test("of a worker is that of one process, as long as it lives", async () => {
    const place = piPlace();
    serve(place);
    const root = await Root.of(place);
    await root.assign("asker", asking);
    await until(async () => (await root.worker("asker"))?.state === "blocked", "the question");
    const [pid = 0] = place.workers();
    const environ = Object.fromEntries(
      readFileSync(`/proc/${pid}/environ`, "utf8")
        .split("\0")
        .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
    const token = environ["PI_HERD_TOKEN"] as string;
    // What a worker's tools start inherits its token.
    const nested = await Connection.open(place.herd, { token });
    const hello = { sessionId: environ["PI_HERD_SESSION"] as string, pid: process.pid };
    expect(await refused(nested.request("worker/hello", hello))).toMatchObject({
      reason: "bad_token",
      message: expect.stringContaining(`in use by process ${pid}`),
    });
    const settled = { told: { type: "settled", outcome: { status: "completed", text: "forged" } } };
    const calls = [
      ["worker/report", settled],
      ["worker/ask", { id: "a", request: { question: "?" }, batch: ["ask_owner"] }],
      ["worker/subagent", { id: "b", request: { action: "list" } }],
    ] as const;
    for (const [method, says] of calls) {
      expect([method, (await refused(nested.request(method, says))).reason]).toEqual([method, "bad_token"]);
    }
    expect(
      await refused(nested.request("owner/list", { owner: { id: "root-session" }, cwd: place.cwd })),
    ).toMatchObject({ reason: "not_granted" });
    expect(await nested.request("host/status", {})).toMatchObject({ dialogs: [] });
    expect((await root.worker("asker")).state).toBe("blocked");
    await nested.close(0);

    await place.cut(pid);
    await until(async () => (await statusOf(place)).workers === 0, "the end of the worker");
    const late = await Connection.open(place.herd, { token });
    expect(await refused(late.request("worker/hello", { ...hello, pid }))).toMatchObject({
      reason: "bad_token",
      message: expect.stringContaining("has ended"),
      nextAction: expect.stringMatching(/\w/),
    });
    await late.close(0);
    expect(await root.subagent({ action: "close", label: "asker" })).toMatchObject({ ok: true });
    expect((await runHerd(place, ["stop"])).code).toBe(0);
    expect(leftBehind(place)).toEqual([]);
  });
});

describe("the end of a host", () => {
  test("by SIGTERM and by SIGKILL leaves no worker and no file, and its log says nothing of the work", async () => {
    const place = piPlace();
    let host = serve(place);
    let root = await Root.of(place);
    await root.assign("asker", asking);
    await root.assign("digger", atWork("begun", "never"));
    await until(() => has(place, "begun"), "the turn");
    await until(async () => (await root.worker("asker"))?.state === "blocked", "the question");
    expect(readdirSync(join(place.herd, "prompts"))).toEqual([]);
    expect(await root.subagent({ action: "reply", label: "asker", message: "mauve" })).toMatchObject({ ok: true });
    await until(async () => (await root.worker("asker"))?.state === "settling", "the result");

    const log = join(place.herd, "log");
    expect(statSync(log).mode & 0o777).toBe(0o700);
    expect(statSync(join(log, "host.log")).mode & 0o777).toBe(0o600);
    expect(statSync(place.herd).mode & 0o777).toBe(0o700);

    await place.cut(host.child.pid);
    await until(() => place.processes().length === 0, "the end of the workers");
    host = serve(place);
    root = await Root.of(place);
    await until(async () => (await root.worker("digger"))?.state === "working", "that the work goes on");
    await until(() => place.workers().length === 1, "the worker");
    host.child.kill("SIGTERM");
    expect(await host.ended).toEqual({ code: 0, stdout: "", stderr: "" });
    expect(place.processes()).toEqual([]);

    const text = readFileSync(join(log, "host.log"), "utf8");
    const [first] = text.split("\n").map((line) => JSON.parse(line || "{}"));
    expect(first).toMatchObject({ pid: expect.any(Number), version, directory: place.herd });
    expect(text).toContain('"label":"digger"');
    expect(text).toContain('"why":"SIGTERM"');
    for (const word of ["colour", "mauve", "became", "SCRIPT", "until test"]) expect(text).not.toContain(word);

    host = serve(place);
    root = await Root.of(place);
    for (const label of ["asker", "digger"]) {
      expect(await root.subagent({ action: "close", label })).toMatchObject({ ok: true });
    }
    expect((await runHerd(place, ["stop"])).code).toBe(0);
    expect(leftBehind(place)).toEqual([]);
  });
});
