import { createHmac, timingSafeEqual } from "node:crypto";
import { HerdError, invalidRequest } from "../errors.ts";

const OPERATION = "door";
/** How far the time of a delivery may be from ours, in milliseconds, either way. */
const TOLERANCE_MS = 5 * 60_000;
/** A shorter secret can be guessed. In bytes. */
const MIN_SECRET_BYTES = 16;
const PREFIX = "whsec_";

/** What is signed. */
export interface WebhookDelivery {
  /** Text of at least 16 bytes, or `whsec_` and at least 16 bytes as base64. */
  secret: string;
  /** Which delivery this is, the same when it is sent again: visible ASCII without a full stop. */
  id: string;
  /** When it is sent, in UTC milliseconds; the second counts. */
  timestamp: number;
  body: Uint8Array | string;
}

/**
 * Signs a delivery as the convention "Standard Webhooks" has it.
 * @returns the three headers to send along: `webhook-id`, `webhook-timestamp` (in seconds) and `webhook-signature`.
 * @throws HerdError `invalid_field` when the secret is too short, `bad_signature` when the id cannot be signed.
 */
export function signDelivery({ secret, id, timestamp, body }: WebhookDelivery): Record<string, string> {
  checkId(id);
  const seconds = String(Math.floor(timestamp / 1_000));
  const digest = digestOf(keyOf(secret), id, seconds, body);
  return {
    "webhook-id": id,
    "webhook-timestamp": seconds,
    "webhook-signature": `v1,${digest.toString("base64")}`,
  };
}

/**
 * Checks that a delivery comes from somebody who has the secret, unchanged and now.
 *
 * Whether it came before is for the caller to see: the same delivery, sent again, has the same id.
 * @param body the bytes as they came; JSON that was parsed and written again has other ones.
 * @param now UTC milliseconds; the delivery's time may be 5 minutes before or after it.
 * @throws HerdError `bad_signature`, whose rule says what is missing or wrong; `invalid_field` for a secret that is
 * too short.
 */
export function verify(headers: Headers, body: Uint8Array, secret: string, now: number): { id: string } {
  const key = keyOf(secret);
  const id = headerOf(headers, "webhook-id");
  const seconds = headerOf(headers, "webhook-timestamp");
  const signatures = headerOf(headers, "webhook-signature");
  checkId(id);
  checkTime(seconds, now);
  const expected = digestOf(key, id, seconds, body);
  if (!signatures.split(" ").some((signature) => isSignature(signature, expected))) {
    throw badSignature(
      "signature",
      "No v1 signature in webhook-signature fits the body",
      "sign with the door's secret",
    );
  }
  return { id };
}

/**
 * Checks a secret before it is kept.
 * @param operation what errors say was called.
 * @throws HerdError `invalid_field` that names `secret` and never shows it.
 */
export function checkSecret(secret: string, operation: string): void {
  keyOf(secret, operation);
}

function keyOf(secret: string, operation = OPERATION): Buffer {
  const refuse = (rule: string) =>
    invalidRequest(operation, "invalid_field", `secret: ${rule}`, "make another secret", { field: "secret", rule });
  if (typeof secret !== "string") throw refuse("a secret is text");
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : undefined;
  const key = encoded === undefined ? Buffer.from(secret) : decode(encoded);
  if (key === undefined) throw refuse(`what follows ${PREFIX} is base64`);
  if (key.length < MIN_SECRET_BYTES) throw refuse(`a secret has at least ${MIN_SECRET_BYTES} bytes`);
  return key;
}

function digestOf(key: Buffer, id: string, seconds: string, body: Uint8Array | string): Buffer {
  return createHmac("sha256", key).update(`${id}.${seconds}.`).update(body).digest();
}

function headerOf(headers: Headers, name: string): string {
  const value = headers.get(name);
  if (value !== null && value.trim() !== "") return value;
  throw badSignature(name, `The header ${name} is missing`, "sign every delivery, with the three webhook headers");
}

/** With a full stop in it, the end of the id could be read as a time and the rest as a part of the body. */
function checkId(id: string): void {
  if (/^[!-\-/-~]{1,256}$/.test(id)) return;
  const message = "webhook-id is not 1 to 256 characters of visible ASCII without a full stop";
  throw badSignature("webhook-id", message, "send another id");
}

function checkTime(seconds: string, now: number): void {
  const rule = "webhook-timestamp";
  if (!/^\d{1,12}$/.test(seconds)) {
    throw badSignature(rule, "webhook-timestamp is no number of seconds", "send the seconds since 1970");
  }
  const late = now - Number(seconds) * 1_000;
  if (Math.abs(late) <= TOLERANCE_MS) return;
  const message = `The delivery was signed more than 5 minutes ${late > 0 ? "ago" : "from now"}`;
  throw badSignature(rule, message, "sign it again when it is sent again, and set both clocks right");
}

function isSignature(signature: string, expected: Buffer): boolean {
  if (!signature.startsWith("v1,")) return false;
  const given = decode(signature.slice(3));
  return given !== undefined && given.length === expected.length && timingSafeEqual(given, expected);
}

/** The bytes of base64; undefined when it is none, which Node would read around. */
function decode(text: string): Buffer | undefined {
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) && text.length % 4 === 0 ? Buffer.from(text, "base64") : undefined;
}

function badSignature(rule: string, message: string, nextAction: string): HerdError {
  return invalidRequest(OPERATION, "bad_signature", message, nextAction, { rule });
}
