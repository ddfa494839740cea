import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
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
  model?: string;
  thinking?: string;
}

/** The records of worker processes, one private file each. */
export class ProcessRecords {
  readonly #folder: string;

  constructor(directory: string) {
    this.#folder = join(directory, "processes");
  }

  async read(runId: string): Promise<ProcessRecord | undefined> {
    try {
      return JSON.parse(await readFile(this.#file(runId), "utf8")) as ProcessRecord;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Replaces what was kept before; nobody ever sees half of it. */
  async write(record: ProcessRecord): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const draft = `${this.#file(record.runId)}.new`;
    await writeFile(draft, JSON.stringify(record), { mode: 0o600 });
    await rename(draft, this.#file(record.runId));
  }

  async remove(runId: string): Promise<void> {
    await rm(this.#file(runId), { force: true });
  }

  /** Every record that can be read. */
  async all(): Promise<ProcessRecord[]> {
    const names = await readdir(this.#folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    });
    const runs = names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
    return (await Promise.all(runs.map((runId) => this.read(runId)))).filter((record) => record !== undefined);
  }

  #file(runId: string): string {
    return join(this.#folder, `${runId}.json`);
  }
}

/** When a process began, as its system writes it; undefined when there is none of this id. */
export async function beganAt(pid: number): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)("ps", ["-o", "lstart=,stat=", "-p", String(pid)], {
      env: { ...process.env, LC_ALL: "C", TZ: "UTC" },
    });
    const [, began = "", state = ""] = /^(.*\S)\s+(\S+)\s*$/.exec(stdout.trim()) ?? [];
    // One that has ended and was not collected yet executes nothing.
    return began === "" || state.startsWith("Z") ? undefined : began;
  } catch (error) {
    // ps ends with 1 when it finds none.
    if ((error as { code?: unknown }).code === 1) return undefined;
    throw error;
  }
}
