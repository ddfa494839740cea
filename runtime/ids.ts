import { createHash } from "node:crypto";
import { customAlphabet } from "nanoid";

const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** A new id: 21 letters and digits, so that it is safe in keys, paths and on a command line. */
export const newId: () => string = customAlphabet(LETTERS, 21);

/** The id that always belongs to this text: the same effect done again has the same id. */
export function idFrom(text: string): string {
  const digest = createHash("sha256").update(text).digest("base64url");
  return digest.replaceAll(/[-_]/g, "0").slice(0, 21);
}
