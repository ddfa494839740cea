import { spawn, type ChildProcess } from "node:child_process";
import { readdirSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { onTestFinished } from "vitest";

export const root = resolve(import.meta.dirname, "../..");
export const herdFile = join(root, "adapters", "cli", "herd.js");

/** The environment of a person's shell: this Node first, and nothing of the npm script that runs the tests. */
export const env: NodeJS.ProcessEnv = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS$|VITEST)/.test(name))),
  PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"]}`,
};

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** A running command. */
export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

/** Starts a program without a terminal, as this user or another; it does not outlive the test. */
export function start(
  program: string,
  args: readonly string[],
  cwd: string,
  as: { uid?: number; stdin?: "pipe" } = {},
): Running {
  const { stdin = "ignore", ...user } = as;
  const child = spawn(program, args, { cwd, env, stdio: [stdin, "pipe", "pipe"], ...user });
  onTestFinished(() => void child.kill("SIGKILL"));
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const ended = new Promise<Ended>((done, failed) => {
    child.on("error", failed);
    child.on("close", (code, signal) => done({ code, signal, stdout, stderr }));
  });
  return { child, ended };
}

/** `herd` with these arguments, in this folder. */
export function startHerd(args: readonly string[], cwd: string): Running {
  return start(process.execPath, [herdFile, ...args], cwd);
}

export function herd(args: readonly string[], cwd: string): Promise<Ended> {
  return startHerd(args, cwd).ended;
}

/** A command line as a person pastes it into a shell. */
export function shell(line: string, cwd: string): Promise<Ended> {
  return start("sh", ["-c", line], cwd).ended;
}

/** Looks again and again until something is there. */
export async function until<T>(what: string, look: () => T | undefined | false | Promise<T | false>): Promise<T> {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await pause(10);
  }
}

/** Resolves once so many workers were started in this store. */
export function workersStarted(count: number, directory: string): Promise<true> {
  return until(`${count} workers`, () => {
    try {
      return readdirSync(join(directory, "sessions")).length >= count;
    } catch {
      return false;
    }
  });
}
