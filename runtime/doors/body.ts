import { type HerdError, invalidRequest } from "../errors.ts";

/** What a delivery may have, in bytes. */
export const MAX_BODY_BYTES = 1_048_576;

/**
 * Reads the body of a request, which then is used up.
 * @param limit how many bytes it may have; of a longer one no more is read than shows that it is longer.
 * @throws HerdError `too_large`.
 */
export async function readBody(request: Request, limit: number): Promise<Uint8Array> {
  if (Number(request.headers.get("content-length") ?? 0) > limit) {
    await request.body?.cancel();
    throw tooLarge(limit);
  }
  return request.body === null ? new Uint8Array() : collect(request.body, limit);
}

/**
 * Puts the parts of a body together.
 * @throws HerdError `too_large` as soon as there are more than `limit` bytes.
 */
export async function collect(chunks: AsyncIterable<Uint8Array>, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > limit) throw tooLarge(limit);
    parts.push(chunk);
  }
  return new Uint8Array(Buffer.concat(parts, bytes));
}

/** The refusal of a body over the limit, in bytes. */
export function tooLarge(limit: number): HerdError {
  return invalidRequest(
    "door",
    "too_large",
    `The body has more than ${limit} bytes`,
    "send less, and say in the body where the rest is",
    { field: "body", rule: `at most ${limit} bytes`, details: { limit } },
  );
}
