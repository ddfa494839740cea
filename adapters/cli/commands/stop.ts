import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Command } from "commander";
import { HerdError } from "../../../runtime/client.ts";
import { logFolder } from "../../host/place.ts";
import { connectHost } from "../../host/start.ts";
import { Refusal } from "../errors.ts";
import { show, withHostDirectory } from "../output.ts";

/** How long it may take to end: its workers have seconds to leave in order. */
const GONE_MS = 20_000;
const LOOK_MS = 20;

/** `herd stop`: ends the background process of Pi sessions. Nothing is lost by it. */
export function addStop(program: Command, version: string): void {
  withHostDirectory(
    program
      .command("stop")
      .description("end the background process of Pi sessions; questions, results and workers' sessions stay"),
  )
    .option("--json", "print JSON for programs")
    .action(async (options: { directory: string; json?: boolean }) => {
      const { directory } = options;
      const pid = await ask(directory, version);
      if (pid === undefined) {
        return show(options, { stopped: false, directory }, () => `No background process runs for ${directory}.`);
      }
      if (!(await isGone(pid))) {
        throw new Refusal(
          `Process ${pid} was asked to end and has not within ${GONE_MS / 1_000} s. ` +
            `Next: look at ${logFolder(directory)}, or end it with kill -9 ${pid}; nothing is lost by that either.`,
        );
      }
      await show(
        options,
        { stopped: true, pid, directory },
        () => `Process ${pid} has ended. Workers go on from their sessions when a Pi session needs them again.`,
      );
    });
}

/** Asks the host to end. @returns its process; undefined where none runs. */
async function ask(directory: string, version: string): Promise<number | undefined> {
  try {
    const connection = await connectHost({ directory, bearer: { role: "person" }, version });
    if (connection === undefined) return undefined;
    const { pid } = await connection.request<{ pid: number }>("host/stop", {});
    await connection.close(1_000);
    return pid;
  } catch (error) {
    // One of another version understands a signal.
    if (!(error instanceof HerdError) || error.reason !== "control_version") throw error;
    const pid = await holderOf(directory);
    if (pid === undefined) throw error;
    process.kill(pid, "SIGTERM");
    return pid;
  }
}

/** The process that has the store, as it says itself. */
async function holderOf(directory: string): Promise<number | undefined> {
  try {
    const { pid } = JSON.parse(await readFile(join(directory, "holder.json"), "utf8")) as { pid: unknown };
    return typeof pid === "number" && isThere(pid) ? pid : undefined;
  } catch {
    return undefined;
  }
}

async function isGone(pid: number): Promise<boolean> {
  for (const until = Date.now() + GONE_MS; isThere(pid);) {
    if (Date.now() >= until) return false;
    await pause(LOOK_MS);
  }
  return true;
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
