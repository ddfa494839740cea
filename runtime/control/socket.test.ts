import { once } from "node:events";
import { cpSync, existsSync, linkSync, renameSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { connected, folder, hello, open, refusal, rude, socketOf, until } from "../../test/support/control.ts";
import { connectHerd } from "../index.ts";

describe("the control socket", () => {
  test("is private: 0600 in a folder 0700, its path in the herd's folder", async () => {
    const { directory } = await open();
    const path = socketOf(directory);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
    expect(statSync(join(directory, "control")).mode & 0o777).toBe(0o600);
    expect(statSync(path).isSocket()).toBe(true);
  });

  test("lies elsewhere when its path would be too long, and leaves nothing there", async () => {
    const long = join(folder(), "f".repeat(120));
    const { herd, directory } = await open({ directory: long });
    const path = socketOf(directory);
    expect(Buffer.byteLength(path)).toBeLessThan(104);
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
    expect((await (await connected(directory)).owners()).length).toBe(0);
    await herd.close();
    expect(existsSync(dirname(path))).toBe(false);
  });

  test.each([
    ["left behind", true],
    ["left behind before it had published its address", false],
  ])("that a killed process %s is replaced", async (_, published) => {
    const directory = folder();
    const { herd } = await open({ directory });
    const path = socketOf(directory);
    await herd.close();
    // What is left after SIGKILL: the file of the path, and a socket that nobody listens at.
    const kept = `${path}.kept`;
    const dead = createServer().listen(path);
    await once(dead, "listening");
    linkSync(path, kept);
    dead.close();
    await once(dead, "close");
    renameSync(kept, path);
    if (published) writeFileSync(join(directory, "control"), `${path}\n`);
    expect(await refusal(connectHerd({ directory }))).toMatchObject({
      reason: "not_running",
      message: expect.stringContaining(published ? "ECONNREFUSED" : "names no control socket"),
    });
    await open({ directory });
    expect((await (await connected(directory)).owners()).length).toBe(0);
  });

  test("of a herd whose folder was copied by hand is not taken for the copy's", async () => {
    const { directory } = await open();
    const copy = join(folder(), "copy");
    cpSync(directory, copy, { recursive: true, filter: (path) => !path.endsWith("run") });
    expect(await refusal(connectHerd({ directory: copy }))).toMatchObject({
      reason: "not_running",
      message: expect.stringContaining(directory),
    });
  });

  test("is not there when it is turned off, or the herd only reads", async () => {
    const { herd, directory } = await open({ control: false });
    expect(existsSync(join(directory, "control"))).toBe(false);
    expect(await refusal(connectHerd({ directory }))).toMatchObject({ reason: "not_running" });
    await herd.close();
    await open({ directory, passive: true });
    expect(existsSync(join(directory, "control"))).toBe(false);
  });

  test("keeps a herd that cannot listen open, with one warning", async () => {
    const directory = folder();
    writeFileSync(join(directory, "run"), "in the way");
    const warned = new Promise<Error>((done) => process.once("warning", done));
    const { herd } = await open({ directory });
    expect((await warned).name).toBe("HerdControlWarning");
    expect(herd.status).toBe("open");
  });

  test.each([
    ["garbage", "GET / HTTP/1.1\r\n\r\n"],
    ["JSON that is no message", "[1]\n"],
    ["bytes that are no text", Buffer.from([0xff, 0xfe, 0x0a])],
  ])("hangs up on %s, and serves others", async (_, text) => {
    const { directory } = await open();
    const { socket, said } = await rude(directory);
    socket.write(text);
    expect(await said).toBe("");
    expect(await (await connected(directory)).owners()).toEqual([]);
  });

  test("hangs up on a message that never ends", async () => {
    const { directory } = await open();
    const { socket, said } = await rude(directory);
    const part = "x".repeat(1024 * 1024);
    const more = () => {
      while (!socket.destroyed && socket.write(part));
    };
    socket.on("drain", more);
    more();
    expect(await said).toBe("");
    expect(await (await connected(directory)).owners()).toEqual([]);
  });

  test.each([
    ["another version", { method: "hello", params: { protocol: 99, pid: 4711 } }, "4711"],
    ["no hello", { method: "herd/owners", params: {} }, "hello"],
    ["a hello without a version", { method: "hello", params: {} }, "unknown"],
  ])("refuses %s by name, then hangs up", async (_, message, named) => {
    const { directory } = await open();
    const { socket, said } = await rude(directory);
    socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, ...message })}\n`);
    const { error } = JSON.parse(await said) as { error: { data: { reason: string; message: string } } };
    expect(error.data.reason).toBe("control_version");
    expect(error.data.message).toContain(named);
    expect(error.data.message).toMatch(/Next: /);
  });

  test("refuses unknown calls and fields without hanging up", async () => {
    const { directory } = await open();
    const { socket, said } = await rude(directory);
    const call = (id: number, method: string, params: object) =>
      `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;
    socket.write(
      hello + call(1, "herd/dance", {}) + call(2, "herd/owners", { all: true }) + call(3, "herd/owners", {}),
    );
    let text = "";
    socket.on("data", (part: string) => (text += part));
    await until(() => text.split("\n").length > 4);
    socket.destroy();
    const answers = (await said)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { id: number; error?: { code: number; data?: object }; result?: unknown });
    expect(answers.find(({ id }) => id === 1)?.error?.code).toBe(-32601);
    expect(answers.find(({ id }) => id === 2)?.error?.data).toMatchObject({ reason: "unknown_field", field: "all" });
    expect(answers.find(({ id }) => id === 3)?.result).toEqual([]);
  });

  test("is all that an open herd listens on: nothing is on a network", async () => {
    const { directory } = await open();
    const { libuv } = process.report.getReport() as unknown as {
      libuv: { type: string; localEndpoint?: unknown; remoteEndpoint?: unknown }[];
    };
    const listening = libuv.filter(({ type, remoteEndpoint }) => type === "tcp" && !remoteEndpoint);
    expect(listening).toEqual([]);
    expect(libuv).toContainEqual(
      expect.objectContaining({ type: "pipe", localEndpoint: expect.stringContaining(socketOf(directory)) }),
    );
  });
});
