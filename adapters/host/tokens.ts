import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { chmod, link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HerdError } from "../../runtime/client.ts";

/**
 * What a token lets its bearer be. Tokens are made from a key that lies beside the store, for this user alone, so that the
 * host knows them again after a restart. They keep clients from acting as somebody else by mistake; they are no wall
 * between programs of the same user, who can read the key.
 */
export type Bearer =
  | { role: "person" }
  | { role: "observer" }
  /** The Pi session of this id, which owns workers. */
  | { role: "root"; session: string }
  /** One process of one worker. */
  | { role: "worker"; runId: string; launch: string };

const VERSION = "herd1";
const KEY_BYTES = 32;

/** The key of the tokens of a host's folder; made when it is missing. @throws HerdError `bad_key`. */
export async function readKey(directory: string): Promise<Buffer> {
  const known = await knownKey(directory);
  if (known) return known;
  const file = keyFile(directory);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.${randomBytes(4).toString("hex")}`;
  try {
    await writeFile(draft, randomBytes(KEY_BYTES).toString("base64url"), { mode: 0o600, flush: true });
    await chmod(draft, 0o600);
    // Whoever comes second takes the key of the first.
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  return keyIn(file);
}

/** The same for who only looks: undefined where no host ever was. @throws HerdError `bad_key`. */
export async function knownKey(directory: string): Promise<Buffer | undefined> {
  try {
    return await keyIn(keyFile(directory));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Where a host's folder has its key: what tells it from the folders of other herds. */
export function keyFile(directory: string): string {
  return join(directory, "key");
}

/** @throws HerdError `bad_key`: with an empty one, everybody could make tokens. */
async function keyIn(file: string): Promise<Buffer> {
  const key = Buffer.from((await readFile(file, "utf8")).trim(), "base64url");
  if (key.length === KEY_BYTES) return key;
  throw new HerdError({
    category: "internal_failure",
    reason: "bad_key",
    message: `The file ${file} is damaged: it holds ${key.length} bytes of a key instead of ${KEY_BYTES}`,
    nextAction: `end the background process if it runs, and remove ${file}: the next start makes a new one`,
    operation: "hello",
  });
}

/** The token of a bearer. */
export function tokenFor(key: Buffer, bearer: Bearer): string {
  const said = Buffer.from(JSON.stringify(wordsOf(bearer))).toString("base64url");
  return `${VERSION}.${said}.${signature(key, said)}`;
}

/** Whose token this is. @throws HerdError `bad_token`. */
export function bearerOf(key: Buffer, token: string | undefined): Bearer {
  const [version, said = "", signed = ""] = (token ?? "").split(".");
  const expected = Buffer.from(signature(key, said));
  const given = Buffer.from(signed);
  const isGood = version === VERSION && given.length === expected.length && timingSafeEqual(given, expected);
  if (!isGood) throw badToken(token === undefined ? "No token was shown" : "The token was not given out by this host");
  const [role, name = "", launch = ""] = JSON.parse(Buffer.from(said, "base64url").toString("utf8")) as string[];
  if (role === "root") return { role, session: name };
  if (role === "worker") return { role, runId: name, launch };
  if (role === "person" || role === "observer") return { role };
  throw badToken(`The token names a role that this host does not know, ${JSON.stringify(role)}`);
}

/** A token that lets nobody in, or nobody any more. */
export function badToken(message: string): HerdError {
  return new HerdError({
    category: "invalid_request",
    reason: "bad_token",
    message,
    nextAction: "let the herd command or the Pi extension connect, which take the token from the host's folder",
    operation: "hello",
  });
}

function wordsOf(bearer: Bearer): string[] {
  if (bearer.role === "root") return [bearer.role, bearer.session];
  if (bearer.role === "worker") return [bearer.role, bearer.runId, bearer.launch];
  return [bearer.role];
}

function signature(key: Buffer, said: string): string {
  return createHmac("sha256", key).update(`${VERSION}.${said}`).digest("base64url");
}
