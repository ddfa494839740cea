import { readdir, readFile } from "node:fs/promises";
import { ENV } from "../environment.ts";

/**
 * Ends what a worker's tools have started and nobody would end any more, because the worker's Pi was killed: Pi starts
 * every command in a process group of its own. They are known by the worker's token, which they have inherited; where a
 * system shows nobody the environment of processes (all but Linux) they stay.
 */
export async function endDescendants(token: string): Promise<void> {
  if (process.platform !== "linux") return;
  const mark = `${ENV.token}=${token}\0`;
  const ended = new Set<string>();
  // One that was just starting another one is ended before that is seen.
  for (let isNews = true; isNews;) {
    const names = (await readdir("/proc")).filter((name) => /^\d+$/.test(name) && !ended.has(name));
    const found: string[] = [];
    // One after another: this program may have few descriptors left.
    for (const name of names) if ((await environmentOf(name)).includes(mark)) found.push(name);
    for (const name of found) {
      kill(Number(name));
      ended.add(name);
    }
    isNews = found.length > 0;
  }
}

/** Nothing when it is gone, or another user's. */
async function environmentOf(pid: string): Promise<string> {
  try {
    return await readFile(`/proc/${pid}/environ`, "latin1");
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (["ENOENT", "ESRCH", "EACCES", "EPERM"].includes(code)) return "";
    throw error;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
