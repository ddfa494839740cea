import { describe, expect, test } from "vitest";
import { readBody } from "./body.ts";

const post = (body: RequestInit["body"] | undefined, headers: Record<string, string> = {}) =>
  new Request("http://127.0.0.1/", {
    method: "POST",
    headers,
    ...(body === undefined ? {} : { body, duplex: "half" }),
  });

/** A body without an end, which counts what was asked of it. */
function endless() {
  const seen = { bytes: 0, cancelled: false };
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      seen.bytes += 1_000;
      controller.enqueue(new Uint8Array(1_000));
    },
    cancel() {
      seen.cancelled = true;
    },
  });
  return { seen, stream };
}

describe("reading a body", () => {
  test("gives its bytes as they came, up to the limit", async () => {
    const bytes = Uint8Array.from([0, 255, 10, 13]);
    expect(await readBody(post(bytes), 4)).toEqual(bytes);
    expect(await readBody(post(""), 0)).toEqual(new Uint8Array());
    expect(await readBody(post(undefined), 0)).toEqual(new Uint8Array());
  });

  test("stops at the limit, and the rest is not asked for", async () => {
    const { seen, stream } = endless();
    await expect(readBody(post(stream), 10_000)).rejects.toMatchObject({
      ...{ category: "invalid_request", reason: "too_large", field: "body", details: { limit: 10_000 } },
    });
    expect(seen.cancelled).toBe(true);
    expect(seen.bytes).toBeLessThan(15_000);
  });

  test("reads nothing of what is announced to be too long", async () => {
    const { seen, stream } = endless();
    const request = post(stream, { "content-length": "10001" });
    await expect(readBody(request, 10_000)).rejects.toMatchObject({ reason: "too_large" });
    expect(seen).toEqual({ bytes: expect.any(Number), cancelled: true });
    expect(seen.bytes).toBeLessThanOrEqual(1_000);
  });

  test("does not believe an announcement that is too short", async () => {
    await expect(readBody(post("12345", { "content-length": "1" }), 4)).rejects.toMatchObject({ reason: "too_large" });
  });
});
