import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";

/**
 * The longest socket path in bytes that every system takes: Linux has room for 107, macOS for 103. Beyond it Node cuts
 * the path off without a word.
 */
const LONGEST_SOCKET_PATH = 103;

/** Where Windows has its pipes. */
const PIPES = "\\\\.\\pipe\\";

/** The file in a herd's folder that holds the path of its socket. */
export function controlFile(directory: string): string {
  return join(resolve(directory), "control");
}

/**
 * Fresh addresses for the herd in this folder, the one to try first first: paths of Unix sockets, or the name of a
 * Windows pipe. A socket lies in a folder of its own that nobody else may enter (0700): `run/` in the herd's folder, or
 * one below a temporary folder when that path is too long for a socket, or on a file system that has none.
 * @throws Error when there is no folder with a path that is short enough.
 */
export async function* makeAddresses(
  directory: string,
  platform: NodeJS.Platform = process.platform,
): AsyncGenerator<string> {
  if (platform === "win32") return yield `${PIPES}pi-herd-${randomBytes(16).toString("hex")}`;
  const path = usualPath(directory);
  if (fits(path)) {
    const folder = dirname(path);
    await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    await chmod(folder, 0o700);
    yield path;
  }
  const short = temporaryFolders().find((temporary) => fits(join(temporary, "pi-herd-XXXXXX", "s")));
  if (short === undefined)
    throw new Error(`the path ${path} is too long for a socket, and so is the temporary folder's`);
  yield join(await mkdtemp(join(short, "pi-herd-")), "s");
}

/** Where the socket is unless that path is too long. */
function usualPath(directory: string): string {
  return join(resolve(directory), "run", "herd.sock");
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= LONGEST_SOCKET_PATH;
}

/** The user's temporary folder may lie deep; the system's does not. */
function temporaryFolders(): string[] {
  return [tmpdir(), "/tmp"];
}

/** Tells this user's others where the herd listens, and what lets them in. They never see half of it. */
export async function publish(directory: string, path: string, token?: string): Promise<void> {
  const file = controlFile(directory);
  const draft = `${file}.${process.pid}.tmp`;
  await writeFile(draft, `${path}\n${token === undefined ? "" : `${token}\n`}`, { mode: 0o600 });
  await rename(draft, file);
}

/** Where a herd listens, and what lets this user's clients in. */
export interface Address {
  path: string;
  token?: string;
}

/** The address that the herd in this folder listens at, or the last one did; undefined when none ever did. */
export async function readAddress(directory: string): Promise<Address | undefined> {
  try {
    const [path = "", token = ""] = (await readFile(controlFile(directory), "utf8"))
      .split("\n")
      .map((line) => line.trim());
    return path === "" ? undefined : { path, ...(token !== "" && { token }) };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

/**
 * Removes what a herd that ended, in order or not, left of its address. Only who has the store's lock may do that: the
 * address of a herd that lives is never touched then.
 */
export async function removeAddress(directory: string): Promise<void> {
  const address = await readAddress(directory).catch(() => undefined);
  await rm(controlFile(directory), { force: true });
  if (address !== undefined) await removeSocket(directory, address.path);
  // A process that was killed before it had published its address left no word of it.
  await removeSocket(directory, usualPath(directory));
}

/** Removes a socket, and the folder that was made for it alone. A path that no herd here can have had stays. */
export async function removeSocket(directory: string, path: string): Promise<void> {
  if (isPipe(path)) return;
  const folder = dirname(path);
  if (path === usualPath(directory)) await rm(path, { force: true });
  else if (isOurShortFolder(folder) && basename(path) === "s") await rm(folder, { recursive: true, force: true });
}

/** Whether an address is a Windows pipe, which is no file. */
export function isPipe(path: string): boolean {
  return path.startsWith(PIPES);
}

function isOurShortFolder(folder: string): boolean {
  return temporaryFolders().includes(dirname(folder)) && /^pi-herd-[A-Za-z0-9]{6}$/.test(basename(folder));
}
