import { execFile } from "node:child_process";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { PiCommand } from "../../host/shapes.ts";

/** What is kept of a worker's process, so that the host that comes after this one knows it again. */
export interface ProcessRecord {
  runId: string;
  pid: number;
  /** When the system says that it began: a process id alone may be another one's by now. */
  began: string;
  /** Which start of this worker it is; its token names it. */
  launch: string;
  /** What it was started with, for the next start of the same worker. */
  pi: PiCommand;
  trusted: boolean;
  /** Whether a person is asked when an extension opens a dialog in it, while no session says so. */
  dialogs?: "ask" | "deny";
  model?: string;
  thinking?: string;
  /** Its session file has been seen: without it the worker cannot go on. Before its model's first answer there is none. */
  hasSession?: boolean;
}

/** The records of worker processes, one private file each. */
export class ProcessRecords {
  readonly #folder: string;

  constructor(directory: string) {
    this.#folder = join(directory, "processes");
  }

  /** @throws Error when there is one that cannot be read: then nothing is known of the process. */
  async read(runId: string): Promise<ProcessRecord | undefined> {
    try {
      return JSON.parse(await readFile(this.#file(runId), "utf8")) as ProcessRecord;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Replaces what was kept before; nobody ever sees half of it, also after a power cut. */
  async write(record: ProcessRecord): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const draft = `${this.#file(record.runId)}.new`;
    try {
      const file = await open(draft, "w", 0o600);
      try {
        await file.writeFile(JSON.stringify(record));
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(draft, this.#file(record.runId));
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  async remove(runId: string): Promise<void> {
    await rm(this.#file(runId), { force: true });
  }

  /** The runs of which something is kept. */
  async runs(): Promise<string[]> {
    const names = await readdir(this.#folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    return names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
  }

  #file(runId: string): string {
    return join(this.#folder, `${runId}.json`);
  }
}

/** When a process began, as its system says it; undefined when there is none of this id that executes anything. */
export function beganAt(pid: number): Promise<string | undefined> {
  return process.platform === "linux" ? beganByProc(pid) : beganByPs(pid);
}

/** Not every Linux has `ps`, and a process for each look costs more than the look. Source: proc(5), `stat`. */
async function beganByProc(pid: number): Promise<string | undefined> {
  try {
    const [stat, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, "utf8"),
      // Ticks are counted from the machine's start.
      readFile("/proc/sys/kernel/random/boot_id", "utf8"),
    ]);
    // The name in brackets may hold anything; the state is the third field, the start the 22nd.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state = ""] = fields;
    return isOver(state) ? undefined : `${boot.trim()} ${fields[19]}`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw error;
  }
}

async function beganByPs(pid: number): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)("ps", ["-o", "lstart=,stat=", "-p", String(pid)], {
      env: { ...process.env, LC_ALL: "C", TZ: "UTC" },
    });
    const [, began = "", state = ""] = /^(.*\S)\s+(\S+)\s*$/.exec(stdout.trim()) ?? [];
    return began === "" || isOver(state) ? undefined : began;
  } catch (error) {
    // ps ends with 1 when it finds none.
    if ((error as { code?: unknown }).code === 1) return undefined;
    throw error;
  }
}

/** One that has ended and was not collected yet executes nothing. */
function isOver(state: string): boolean {
  return state.startsWith("Z") || state.startsWith("X");
}
