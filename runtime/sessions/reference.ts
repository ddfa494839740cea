import { open, readdir, realpath, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { invalidRequest, messageOf, type HerdError } from "../errors.ts";
import { expandHome } from "../paths.ts";

/** A saved session, found by its exact path or its full id. */
export interface SavedSession {
  id: string;
  /** The real path of its file; a store without a folder has none. */
  path: string | undefined;
  /** Where it worked; empty when its header does not say. */
  cwd: string;
  /** The agent of its managed entry, or undefined when it has none. */
  agent: string | undefined;
  /** Its lines are kept in the rows of this store. */
  stored: boolean;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const SESSION_ID = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;
/** Larger files are not read: a saved session of this size is not one that a worker can begin with. */
const FILE_LIMIT = 64 * 1024 * 1024;

type Field = "session" | "fork";

/** Where saved sessions are looked for. */
export interface Library {
  /** The sessions in the rows of this store. */
  sessions: {
    stored(sessionId: string): Promise<SavedSession | undefined>;
  };
  /** Folders of backends, with everything below them. */
  folders: readonly string[];
}

/**
 * Finds the one saved session that a reference names. Source: specification of session and fork resolution.
 * @param reference a path (with a slash, ending in `.jsonl`, or beginning with `~`) or a full UUID.
 * @throws HerdError `invalid_request`, naming the field: nothing found, several of one id, a prefix, an unreadable file.
 */
export async function findSession(
  library: Library,
  reference: string,
  { cwd, field }: { cwd: string; field: Field },
): Promise<SavedSession> {
  if (isPath(reference)) return atPath(library, reference, cwd, field);
  if (!UUID.test(reference)) {
    throw refused(field, `"${reference}" is neither a path nor a full UUID; prefixes are not allowed`);
  }
  const stored = await library.sessions.stored(reference);
  if (stored?.stored || stored?.path !== undefined) return stored;
  const paths = await filesOf(reference, library.folders);
  const found: SavedSession[] = [];
  for (const path of paths) {
    const session = await readSession(path, field).catch(() => undefined);
    if (session?.id === reference) found.push(session);
  }
  if (found.length === 1) return found[0] as SavedSession;
  // Known by its assignments, although no file of it is.
  if (stored && found.length === 0) return stored;
  throw refused(
    field,
    found.length === 0
      ? `There is no saved session "${reference}"`
      : `${found.length} saved sessions have the id "${reference}": ${found.map(({ path }) => path).join(", ")}`,
    found.length === 0 ? "check the id, or give the path of the session file" : "give the path of the one you mean",
  );
}

/** All lines of a session's file but its header. @throws HerdError `invalid_request` when one is not JSON. */
export async function linesOf(path: string, field: Field): Promise<object[]> {
  return (await parse(path, field)).slice(1);
}

function isPath(reference: string): boolean {
  return /[/\\]/.test(reference) || reference.endsWith(".jsonl") || reference.startsWith("~");
}

async function atPath({ sessions }: Library, reference: string, cwd: string, field: Field): Promise<SavedSession> {
  const path = resolve(cwd, expandHome(reference));
  let canonical: string;
  try {
    canonical = await realpath(path).catch(async (error: unknown) => {
      // A file of this store that is not written yet is made now.
      const id = basename(path, ".jsonl");
      if (!UUID.test(id) || (await sessions.stored(id)) === undefined) throw error;
      return realpath(path);
    });
  } catch (error) {
    throw refused(field, `The session file "${reference}" cannot be found: ${messageOf(error)}`);
  }
  const session = await readSession(canonical, field);
  const stored = await sessions.stored(session.id);
  return stored?.path === canonical ? stored : session;
}

async function readSession(path: string, field: Field): Promise<SavedSession> {
  const [header, ...entries] = (await parse(path, field)) as Record<string, unknown>[];
  const id = header?.["id"];
  if (header?.["type"] !== "session" || typeof id !== "string" || !SESSION_ID.test(id)) {
    throw refused(field, `The file "${path}" does not begin with the header of a session`);
  }
  const cwd = typeof header["cwd"] === "string" ? header["cwd"].trim() : "";
  return { id, path, cwd, agent: managedAgent(path, entries, field), stored: false };
}

/** The one agent that a session's managed entries name: repeats are fine, contradictions are not. */
function managedAgent(path: string, entries: readonly Record<string, unknown>[], field: Field): string | undefined {
  const names = new Set<unknown>();
  for (const entry of entries) {
    if (entry["type"] === "managed") names.add(entry["agentDefinition"]);
    else if (entry["type"] === "custom" && entry["customType"] === "pi-herd") {
      names.add((entry["data"] as { agentDefinition?: unknown } | undefined)?.agentDefinition);
    }
  }
  if (names.size === 0) return undefined;
  const [name] = names;
  if (names.size === 1 && typeof name === "string" && name.trim() !== "") return name;
  throw refused(field, `The session "${path}" does not say plainly which agent it belongs to`);
}

async function parse(path: string, field: Field): Promise<object[]> {
  let text: string;
  try {
    const handle = await open(path);
    try {
      const { size } = await handle.stat();
      if (!(await handle.stat()).isFile()) throw new Error("it is not a regular file");
      if (size > FILE_LIMIT) throw new Error(`it has ${size} bytes, the limit is ${FILE_LIMIT}`);
      text = await handle.readFile("utf8");
    } finally {
      await handle.close();
    }
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    return lines.map((line) => {
      const entry: unknown = JSON.parse(line);
      if (typeof entry !== "object" || entry === null) throw new Error("a line is not an object");
      return entry;
    });
  } catch (error) {
    throw refused(field, `The session file "${path}" cannot be read: ${messageOf(error)}`);
  }
}

/** The files in these folders, and below, whose name holds an id. */
async function filesOf(id: string, folders: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  for (const folder of folders) {
    const present = await stat(folder).catch(() => undefined);
    if (!present?.isDirectory()) continue;
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !entry.name.endsWith(".jsonl") || !entry.name.includes(id)) continue;
      found.add(await realpath(join(entry.parentPath, entry.name)));
    }
  }
  return [...found];
}

function refused(field: Field, message: string, nextAction = "give an exact path or a full UUID"): HerdError {
  return invalidRequest("assign", `bad_${field}`, message, nextAction, { field });
}
