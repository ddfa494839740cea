import { constants } from "node:fs";
import { access, readFile, stat, statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { HerdError, readHolder } from "../../runtime/visitor.ts";
import { calledAs, commandFor } from "./invocation.ts";
import { reach } from "./reach.ts";
import { bytesOf, countOf } from "./words.ts";

/** What one look at a herd found. */
export interface Examined {
  name: string;
  ok: boolean;
  says: string;
  /** What to do, where something is wrong or there is something to know. */
  next?: string;
}

/** Below this, a store is about to fail: LevelDB needs room to write its tables anew. */
const LEAST_FREE_BYTES = 200 * 1024 * 1024;

/** Looks at everything that a herd needs, one after another; what is wrong in one place stops no other look. */
export async function examine(directory: string): Promise<Examined[]> {
  const folder = resolve(directory);
  const looks = [node, privacy, room, store, socket];
  return (await Promise.all(looks.map((look) => look(folder)))).flat();
}

async function node(): Promise<Examined> {
  // An older one could not have come here.
  return { name: "node", ok: true, says: `Node.js ${process.versions.node} at ${process.execPath}` };
}

/** Whether the folder is there, can be used, and by nobody else. */
async function privacy(folder: string): Promise<Examined> {
  const name = "folder";
  try {
    const { mode } = await stat(folder);
    await access(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    // Windows has no such bits.
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      const says = `${folder} can be entered by other users of this machine`;
      return { name, ok: false, says, next: `chmod 700 ${JSON.stringify(folder)}` };
    }
    return { name, ok: true, says: folder };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return { name, ok: true, says: `${folder} does not exist yet` };
    const says = `${folder} cannot be read and written by this user (${code})`;
    return { name, ok: false, says, next: "use another --directory, or give yourself the right to it" };
  }
}

async function room(folder: string): Promise<Examined> {
  const { bavail, bsize } = await statfs(await existing(folder));
  const free = Number(bavail) * Number(bsize);
  const says = `${bytesOf(free)} free`;
  if (free >= LEAST_FREE_BYTES) return { name: "disk", ok: true, says };
  return {
    name: "disk",
    ok: false,
    says,
    next: `make room: a herd needs at least ${bytesOf(LEAST_FREE_BYTES)} to write`,
  };
}

/** Whether the store can be opened, and who has it. */
async function store(folder: string): Promise<Examined[]> {
  const name = "store";
  try {
    const { herd, isRunning } = await reach(folder, { reads: true });
    try {
      const owners = await herd.owners();
      const who = isRunning ? await holderOf(folder) : "no program has it open";
      const open = owners.reduce((sum, { workers }) => sum + workers, 0);
      const found: Examined[] = [
        { name, ok: true, says: `${countOf(owners.length, "owner")}, ${countOf(open, "worker")}; ${who}` },
      ];
      return herd.status === "fenced" ? [...found, fenced] : found;
    } finally {
      await herd.close();
    }
  } catch (error) {
    if (!(error instanceof HerdError))
      return [
        {
          name,
          ok: false,
          says: `it cannot be read: ${String(error)}`,
          next: `${commandFor(folder, "verify")} says more`,
        },
      ];
    const { reason, message, nextAction: next } = error;
    if (reason === "no_store")
      return [
        {
          name,
          ok: true,
          says: "there is none yet",
          next: `a Pi session makes one with its first worker; ${calledAs(process)} demo shows one without Pi`,
        },
      ];
    return [{ name, ok: false, says: message.replace(/ Next: .*$/s, ""), next }];
  }
}

const fenced: Examined = {
  name: "writing",
  ok: false,
  says: "the store takes no more writes",
  next: "make sure that its disk has room and can be written, then restart the program that has it open",
};

/** Whether the control socket can be trusted: whoever can enter it can act as every owner. */
async function socket(folder: string): Promise<Examined[]> {
  const name = "socket";
  let path: string;
  try {
    // What lets clients in may stand below the path.
    [path = ""] = (await readFile(join(folder, "control"), "utf8")).split("\n");
  } catch {
    return [];
  }
  if (path.startsWith("\\\\")) return [{ name, ok: true, says: path }];
  try {
    const [file, around] = await Promise.all([stat(path), stat(dirname(path))]);
    if ((file.mode & 0o077) === 0 && (around.mode & 0o077) === 0) return [{ name, ok: true, says: path }];
    const next = `chmod 700 ${JSON.stringify(dirname(path))}; chmod 600 ${JSON.stringify(path)}`;
    return [{ name, ok: false, says: `${path} can be used by other users of this machine`, next }];
  } catch {
    return [{ name, ok: true, says: "a process that was killed left its address behind; the next one replaces it" }];
  }
}

async function holderOf(folder: string): Promise<string> {
  const holder = await readHolder(folder);
  if (holder === undefined) return "a program has it open";
  return `process ${holder.pid} (${holder.command}) has had it open since ${holder.since}`;
}

/** The nearest folder above that exists. */
async function existing(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  return found || dirname(path) === path ? path : existing(dirname(path));
}
