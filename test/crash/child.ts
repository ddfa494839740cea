import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** What it printed. */
  lines: string[];
  errors: string;
  /** It was ended because it took longer than anybody waits. */
  patienceOver: boolean;
}

export interface ChildOptions {
  env?: Record<string, string>;
  /** SIGKILL so many milliseconds after it printed a line. */
  killAfter?: { line: string; ms: number };
  patienceMs: number;
}

/** Runs one of the programs of this folder to its end, which may be a kill. */
export function runChild(program: string, args: readonly string[], options: ChildOptions): Promise<Ended> {
  const { env, killAfter, patienceMs } = options;
  const child = spawn(process.execPath, [join(import.meta.dirname, program), ...args], {
    env: { ...process.env, ...env },
    // A pipe that closes when this process is gone.
    stdio: ["pipe", "pipe", "pipe"],
  });
  const lines: string[] = [];
  let errors = "";
  let patienceOver = false;
  const timers: NodeJS.Timeout[] = [];
  const kill = () => child.kill("SIGKILL");
  timers.push(
    setTimeout(() => {
      patienceOver = true;
      kill();
    }, patienceMs),
  );
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    if (line === killAfter?.line) timers.push(setTimeout(kill, killAfter.ms));
  });
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      for (const timer of timers) clearTimeout(timer);
      resolve({ code, signal, lines, errors, patienceOver });
    });
  });
}
