import { readFile, realpath } from "node:fs/promises";
import { arch, availableParallelism, cpus, loadavg, platform, release, tmpdir, totalmem, type } from "node:os";
import { sep } from "node:path";

/** Where figures were measured, as far as the system tells; nothing in it names a machine, a person or a folder. */
export interface Machine {
  processor: string | null;
  /** Logical processors that this process may use. */
  processors: number;
  /** Bytes of memory that this process may use. */
  memory: number;
  /** Operating system, its version and the processor's architecture. */
  system: string;
  node: string;
  /** Type of the file system that the stores were on, which decides what fsync costs. */
  fileSystem: string | null;
  /** Load averages over one minute, the first from before and the last from after; null where there is none. */
  loads: (number | null)[];
}

/** Reads what this machine is. `loads` are handed in because they belong to moments, see `loadNow()`. */
export async function readMachine(loads: Machine["loads"]): Promise<Machine> {
  const limit = process.constrainedMemory();
  return {
    processor: cpus()[0]?.model.replaceAll(/\s+/g, " ").trim() || null,
    processors: availableParallelism(),
    memory: limit > 0 ? Math.min(limit, totalmem()) : totalmem(),
    // What follows the number is the build's own, and may carry anybody's name.
    system: `${type()} ${/^[\d.]*\d/.exec(release())?.[0] ?? ""}`.trim() + `, ${arch()}`,
    node: process.version,
    fileSystem: await temporaryFileSystem(),
    loads,
  };
}

/** The load average over the last minute; null on Windows, which has none and where Node says 0. */
export function loadNow(): number | null {
  const [minute = 0] = loadavg();
  return platform() === "win32" ? null : Math.round(minute * 100) / 100;
}

/** Only Linux tells without another program; elsewhere null. */
async function temporaryFileSystem(): Promise<string | null> {
  if (platform() !== "linux") return null;
  return fileSystemOf(await realpath(tmpdir()), await readFile("/proc/self/mountinfo", "utf8"));
}

/**
 * The type of the file system that a path is on.
 * @param path Absolute and without links.
 * @param mountinfo The text of `/proc/self/mountinfo`.
 * @returns For example `ext4`; null when no mount holds the path.
 */
export function fileSystemOf(path: string, mountinfo: string): string | null {
  const mounts = mountinfo.split("\n").flatMap((line) => {
    const [, , , , point] = line.split(" ");
    const [, kind] = line.split(" - ");
    if (point === undefined || kind === undefined) return [];
    return [{ point: unescaped(point), type: kind.split(" ")[0] as string }];
  });
  const holding = mounts.filter(
    ({ point }) => point === path || path.startsWith(point.endsWith(sep) ? point : point + sep),
  );
  // Of mounts at one point the last hides those before it.
  const nearest = holding.reduce<(typeof holding)[number] | undefined>(
    (best, mount) => (best !== undefined && best.point.length > mount.point.length ? best : mount),
    undefined,
  );
  return nearest?.type ?? null;
}

/** Spaces and the like are written as three octal digits. */
function unescaped(point: string): string {
  return point.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
