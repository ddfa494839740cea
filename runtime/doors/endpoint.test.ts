import { once } from "node:events";
import { request as nodeRequest, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { HerdError } from "../errors.ts";
import { listen, type Endpoint, type ListenOptions } from "./endpoint.ts";

const echo = async (request: Request) =>
  Response.json({ url: request.url, header: request.headers.get("x-thing"), body: await request.text() });

async function open(options: Partial<ListenOptions> = {}): Promise<Endpoint> {
  const endpoint = await listen({ port: 0, path: "/hook", handle: echo, ...options });
  onTestFinished(() => endpoint.close());
  return endpoint;
}

/** A request in which every header can be set, which `fetch` does not allow. */
async function send(url: string, headers: Record<string, string>, method = "POST"): Promise<IncomingMessage> {
  const sent = nodeRequest(url, { method, headers, agent: false }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.resume();
  return response;
}

/** A connection on which the test writes by itself. */
async function socketTo({ url }: Endpoint): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

/** What comes until the connection ends, however it ends. */
function textOf(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (chunk) => (text += chunk.toString()));
  socket.on("error", () => undefined);
  return new Promise((resolve) => socket.once("close", () => resolve(text)));
}

describe("an endpoint", () => {
  test("hands a request over as it came and sends the answer as it is", async () => {
    const { url } = await open({
      handle: async (request) =>
        new Response(await request.arrayBuffer(), {
          status: 202,
          headers: [
            ["x-query", new URL(request.url).search],
            ["x-thing", request.headers.get("x-thing") ?? ""],
            ["set-cookie", "a=1"],
            ["set-cookie", "b=2"],
          ],
        }),
    });
    const bytes = Uint8Array.from([0, 255, 10]);
    const response = await fetch(`${url}?a=1`, { method: "POST", body: bytes, headers: { "x-thing": "7" } });
    expect(response.status).toBe(202);
    expect(response.headers.get("x-query")).toBe("?a=1");
    expect(response.headers.get("x-thing")).toBe("7");
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
  });

  test("is on this machine alone, with a port of its own", async () => {
    const [one, other] = [await open(), await open()];
    expect(one.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/hook$/);
    expect(other.url).not.toBe(one.url);
  });

  test("answers one path and one method", async () => {
    const { url } = await open();
    const status = async (address: string, method: string) => (await fetch(address, { method })).status;
    expect(await status(url, "POST")).toBe(200);
    for (const other of ["/", "/hook/", "/hooks", "//hook"]) {
      expect(await status(new URL(url).origin + other, "POST")).toBe(404);
    }
    for (const method of ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"]) expect(await status(url, method)).toBe(405);
    expect((await fetch(url)).headers.get("allow")).toBe("POST");
  });

  test("answers under its loopback names alone, and no page from elsewhere", async () => {
    const { url } = await open();
    const { port } = new URL(url);
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, "LOCALHOST", `[::1]:${port}`]) {
      expect((await send(url, { host })).statusCode).toBe(200);
    }
    for (const host of [
      "evil.example",
      `evil.example:${port}`,
      "127.0.0.1.evil.example",
      "localhost.",
      "0.0.0.0",
      " ",
    ]) {
      expect((await send(url, { host })).statusCode).toBeGreaterThanOrEqual(400);
    }
    expect((await send(url, { origin: "http://localhost:3000" })).statusCode).toBe(200);
    expect((await send(url, { origin: "https://evil.example" })).statusCode).toBe(403);
    expect((await send(url, { origin: "null" })).statusCode).toBe(403);
  });

  test("answers what its program throws with 500, and goes on", async () => {
    let calls = 0;
    const { url } = await open({
      handle: (request) => {
        calls++;
        if (calls === 1) throw new Error("it broke");
        return calls === 2 ? Promise.resolve(Response.error()) : echo(request);
      },
    });
    const post = () => fetch(url, { method: "POST", body: "x" });
    const first = await post();
    expect(first.status).toBe(500);
    const { error } = (await first.json()) as { error: { reason: string; message: string } };
    expect(error).toMatchObject({ category: "internal_failure", reason: "door_failed" });
    expect(error.message).toContain("it broke");
    expect([(await post()).status, (await post()).status]).toEqual([500, 200]);
  });
});

describe("a body that is too long", () => {
  test.each(["announced", "not announced"])("is refused with 413, %s", async (how) => {
    let handled = 0;
    const { url } = await open({ maxBodyBytes: 1_000, handle: async (request) => (handled++, echo(request)) });
    const post = (bytes: number) =>
      fetch(url, {
        method: "POST",
        body: how === "announced" ? "x".repeat(bytes) : new Blob(["x".repeat(bytes)]).stream(),
        duplex: "half",
      });
    expect((await post(1_000)).status).toBe(200);
    const response = await post(100_000);
    expect(response.status).toBe(413);
    expect(response.headers.get("connection")).toBe("close");
    expect(await response.json()).toMatchObject({ ok: false, error: { reason: "too_large", field: "body" } });
    expect(handled).toBe(1);
  });

  test("is not read to its end, which it may never have", async () => {
    const { url } = await open();
    const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)) });
    const response = await fetch(url, { method: "POST", body: endless, duplex: "half" });
    expect(response.status).toBe(413);
  });
});

test("a request that does not come to its end in time is refused", async () => {
  const endpoint = await open({ requestMs: 50 });
  const socket = await socketTo(endpoint);
  socket.write("POST /hook HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nhalf");
  expect(await textOf(socket)).toMatch(/^HTTP\/1\.1 408 /);
});

describe("opening", () => {
  test("names the port that is taken", async () => {
    const { url } = await open();
    const port = Number(new URL(url).port);
    const error = await open({ port }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(HerdError);
    expect(error).toMatchObject({ category: "invalid_request", reason: "port_unavailable", field: "port" });
    expect((error as HerdError).message).toContain(`Port ${port} cannot be listened to`);
  });

  test.each([
    ["port", -1],
    ["port", 65_536],
    ["port", 1.5],
    ["path", ""],
    ["path", "hook"],
    ["path", "/a b"],
    ["path", "/a?b"],
    ["path", "//evil.example/a"],
  ])("refuses the %s %j", async (field, value) => {
    await expect(open({ [field]: value })).rejects.toMatchObject({
      reason: "invalid_field",
      field,
      operation: "listen",
    });
  });
});

describe("closing", () => {
  test("waits for the answers under way, and drops what is idle or half sent", async () => {
    const entered = Promise.withResolvers<void>();
    const leave = Promise.withResolvers<void>();
    const endpoint = await open({
      handle: async (request) => {
        entered.resolve();
        await leave.promise;
        return echo(request);
      },
    });
    const half = await socketTo(endpoint);
    half.write("POST /hook HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nhalf");
    const idle = await socketTo(endpoint);
    const answer = fetch(endpoint.url, { method: "POST", body: "under way" });
    await entered.promise;

    const dropped = [textOf(half), textOf(idle)];
    let closed = false;
    const closing = endpoint.close().then(() => (closed = true));
    await expect(fetch(endpoint.url, { method: "POST" })).rejects.toThrow("fetch failed");
    expect(closed).toBe(false);
    leave.resolve();
    expect(await (await answer).json()).toMatchObject({ body: "under way" });
    await closing;
    expect(await Promise.all(dropped)).toEqual(["", ""]);
    await endpoint.close();
  });

  test("refuses a request that comes whole only then", async () => {
    const entered = Promise.withResolvers<void>();
    const leave = Promise.withResolvers<void>();
    let handled = 0;
    const endpoint = await open({
      handle: async (request) => {
        handled++;
        entered.resolve();
        await leave.promise;
        return echo(request);
      },
    });
    const late = await socketTo(endpoint);
    late.write("POST /hook HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\nla");
    const answer = fetch(endpoint.url, { method: "POST", body: "in time" });
    await entered.promise;
    const closing = endpoint.close();
    const received = textOf(late);
    late.write("te");
    expect(await received).toMatch(/^HTTP\/1\.1 503 /);
    leave.resolve();
    expect((await answer).status).toBe(200);
    await closing;
    expect(handled).toBe(1);
  });

  test("frees its port", async () => {
    const endpoint = await open();
    await fetch(endpoint.url, { method: "POST" });
    await endpoint.close();
    const again = await open({ port: Number(new URL(endpoint.url).port) });
    expect(again.url).toBe(endpoint.url);
  });
});
