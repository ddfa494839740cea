/** Lines and bytes that a model sees of one text. Source: specification of the delivered envelope. */
const VISIBLE_LINES = 2_000;
const VISIBLE_BYTES = 50 * 1024;

/** The head of a well-formed text within both bounds, never cut inside a code point. */
export function bounded(text: string): { text: string; truncated: boolean } {
  let end = text.length;
  let newlines = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) {
    if (++newlines === VISIBLE_LINES) {
      end = at;
      break;
    }
  }
  let head = text.slice(0, Math.min(end, VISIBLE_BYTES));
  if (Buffer.byteLength(head) > VISIBLE_BYTES) head = cutToBytes(head, VISIBLE_BYTES);
  // A slice may have cut a surrogate pair.
  if (/[\uD800-\uDBFF]$/.test(head)) head = head.slice(0, -1);
  return { text: head, truncated: head.length < text.length };
}

function cutToBytes(text: string, limit: number): string {
  const bytes = Buffer.from(text).subarray(0, limit);
  let end = bytes.length;
  while (end > 0 && ((bytes[end - 1] as number) & 0xc0) === 0x80) end--;
  const lead = bytes[end - 1] ?? 0;
  const width = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return bytes.subarray(0, end - 1 + width <= limit ? end - 1 + width : end - 1).toString();
}
