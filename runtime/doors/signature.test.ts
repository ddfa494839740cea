import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { HerdError } from "../errors.ts";
import { checkSecret, signDelivery, verify } from "./signature.ts";

const secret = "a secret of 20 bytes";
const body = new TextEncoder().encode('{"order":"7"}');
const now = Date.parse("2026-03-01T09:00:00.000Z");
const delivery = { secret, id: "msg_1", timestamp: now, body };

function refusal(call: () => unknown): HerdError {
  try {
    call();
  } catch (error) {
    if (error instanceof HerdError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

/** The signed headers with some of them changed, or taken away where the value is undefined. */
function headers(changes: Record<string, string | undefined> = {}, signed = signDelivery(delivery)): Headers {
  const entries = Object.entries({ ...signed, ...changes });
  return new Headers(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

describe("signing", () => {
  test("follows the convention: HMAC-SHA256 over id, seconds and body", () => {
    const digest = createHmac("sha256", secret).update('msg_1.1772355600.{"order":"7"}').digest("base64");
    expect(signDelivery(delivery)).toEqual({
      "webhook-id": "msg_1",
      "webhook-timestamp": "1772355600",
      "webhook-signature": `v1,${digest}`,
    });
  });

  test("agrees with the example that the convention publishes", () => {
    const signed = signDelivery({
      secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
      timestamp: 1_614_265_330_000,
      body: '{"test": 2432232314}',
    });
    expect(signed["webhook-signature"]).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  test("takes the decoded bytes of a secret in base64", () => {
    const encoded = `whsec_${Buffer.from(secret).toString("base64")}`;
    expect(signDelivery({ ...delivery, secret: encoded })).toEqual(signDelivery(delivery));
  });
});

describe("a delivery", () => {
  test("that is signed is known by its id", () => {
    expect(verify(headers(), body, secret, now)).toEqual({ id: "msg_1" });
  });

  test.each([0, 299_000, 300_000, -299_000, -300_000])("is accepted %d ms after it was signed", (ms) => {
    expect(verify(headers(), body, secret, now + ms)).toEqual({ id: "msg_1" });
  });

  test.each([
    [300_001, "ago"],
    [86_400_000, "ago"],
    [-300_001, "from now"],
  ])("is refused %d ms after it was signed", (ms, words) => {
    const error = refusal(() => verify(headers(), body, secret, now + ms));
    expect(error).toMatchObject({ reason: "bad_signature", rule: "webhook-timestamp" });
    expect(error.message).toContain(words);
  });

  test("may carry several signatures, of which one fits", () => {
    const [, own] = (signDelivery(delivery)["webhook-signature"] ?? "").split(",");
    const other = signDelivery({ ...delivery, secret: "another secret of theirs" })["webhook-signature"];
    const several = `v1a,${own} ${other} v1,?? v1,${own}`;
    expect(verify(headers({ "webhook-signature": several }), body, secret, now)).toEqual({ id: "msg_1" });
  });

  test.each(["webhook-id", "webhook-timestamp", "webhook-signature"])("without %s is refused by its name", (name) => {
    for (const value of [undefined, ""]) {
      const error = refusal(() => verify(headers({ [name]: value }), body, secret, now));
      expect(error).toMatchObject({ category: "invalid_request", reason: "bad_signature", rule: name });
      expect(error.message).toContain(name);
    }
  });

  test.each([
    ["another body", {}, '{"order":"8"}'],
    ["another id", { "webhook-id": "msg_2" }],
    ["another time", { "webhook-timestamp": "1772355601" }],
    ["a signature of another version", { "webhook-signature": "v2,AAAA" }],
    ["a signature that is no base64", { "webhook-signature": "v1,%%%%" }],
    ["a signature that is too short", { "webhook-signature": "v1,AAAA" }],
    ["a signature without its version", { "webhook-signature": signDelivery(delivery)["webhook-signature"]?.slice(3) }],
  ])("with %s is refused", (_what, changes, otherBody = '{"order":"7"}') => {
    const error = refusal(() => verify(headers(changes), new TextEncoder().encode(otherBody), secret, now));
    expect(error).toMatchObject({ reason: "bad_signature", rule: "signature" });
  });

  test("signed with another secret is refused, and no secret is shown", () => {
    const theirs = signDelivery({ ...delivery, secret: "another secret of theirs" });
    const error = refusal(() => verify(headers(theirs), body, secret, now));
    expect(error).toMatchObject({ reason: "bad_signature", rule: "signature" });
    expect(JSON.stringify(error)).not.toContain("secret of");
  });

  test.each(["a.b", "a b", "", "é", "x".repeat(257)])("cannot have the id %j", (id) => {
    expect(refusal(() => signDelivery({ ...delivery, id }))).toMatchObject({
      reason: "bad_signature",
      rule: "webhook-id",
    });
  });

  test("cannot pass an end of its id off as a time", () => {
    const signed = signDelivery({ ...delivery, body: `${now / 1_000}.{}` });
    const shifted = { ...signed, "webhook-id": `msg_1.${now / 1_000}` };
    expect(refusal(() => verify(new Headers(shifted), new TextEncoder().encode("{}"), secret, now))).toMatchObject({
      ...{ reason: "bad_signature", rule: "webhook-id" },
    });
  });

  test.each(["1772355600.5", "-1", "0x10", "now", "1e9", "1".repeat(20)])("cannot have the time %j", (seconds) => {
    const error = refusal(() => verify(headers({ "webhook-timestamp": seconds }), body, secret, now));
    expect(error).toMatchObject({ reason: "bad_signature", rule: "webhook-timestamp" });
  });
});

describe("a secret", () => {
  test.each(["0123456789abcdef", "éééééééé", `whsec_${Buffer.alloc(16).toString("base64")}`])("may be %j", (text) => {
    expect(() => checkSecret(text, "webhook")).not.toThrow();
  });

  test.each<[unknown]>([
    ["short"],
    ["0123456789abcde"],
    [""],
    [`whsec_${Buffer.alloc(15).toString("base64")}`],
    ["whsec_not base64 at all!!"],
    ["whsec_"],
    [undefined],
  ])("may not be %j", (text) => {
    const error = refusal(() => checkSecret(text as string, "webhook"));
    expect(error).toMatchObject({ reason: "invalid_field", field: "secret", operation: "webhook" });
  });

  test.each(["short", "whsec_dG9vIHNob3J0", "whsec_no base64"])("is not shown when it is refused: %j", (text) => {
    const { message } = refusal(() => checkSecret(text, "webhook"));
    expect(message).not.toContain(text.replace("whsec_", ""));
  });
});
