import { setTimeout as pause } from "node:timers/promises";
import type { Command } from "commander";
import { HerdError, isAlive, readHolder } from "../../../runtime/client.ts";
import { logFolder } from "../../host/place.ts";
import type { HostStatus } from "../../host/shapes.ts";
import { findHost } from "../../host/start.ts";
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
      const { pid, sessions = 0 } = (await ask(directory, version)) ?? {};
      if (pid === undefined) {
        return show(options, { stopped: false, directory }, () => `No background process runs for ${directory}.`);
      }
      if (!(await isGone(pid))) {
        throw new Refusal(
          `Process ${pid} was asked to end and has not within ${GONE_MS / 1_000} s. ` +
            `Next: look at ${logFolder(directory)} why, or end it with kill -9 ${pid} which loses nothing either.`,
        );
      }
      await show(options, { stopped: true, pid, directory, sessions }, () =>
        [`Process ${pid} has ended. Questions, results and the work of workers are kept.`, whatComes(sessions)].join(
          " ",
        ),
      );
    });
}

/** Who goes on with what is kept. @param sessions Pi sessions that were open. */
function whatComes(sessions: number): string {
  if (sessions === 0) return "Workers go on when their Pi session is open again.";
  return sessions === 1
    ? "A Pi session is open: it starts the process again as soon as it needs it. Close it first to keep the process away."
    : `${sessions} Pi sessions are open: they start the process again as soon as they need it. Close them first to keep the process away.`;
}

/** Asks the host to end. @returns its process, and how many Pi sessions were open there; undefined where none runs. */
async function ask(directory: string, version: string): Promise<{ pid: number; sessions?: number } | undefined> {
  try {
    const connection = await findHost({ directory, bearer: { role: "person" }, version });
    if (connection === undefined) return undefined;
    const { roots: sessions } = await connection.request<HostStatus>("host/status", {});
    const { pid } = await connection.request<{ pid: number }>("host/stop", {});
    await connection.close(1_000);
    return { pid, sessions };
  } catch (error) {
    // One of another version understands a signal.
    if (!(error instanceof HerdError) || error.reason !== "control_version") throw error;
    const holder = await readHolder(directory);
    if (holder === undefined) throw error;
    process.kill(holder.pid, "SIGTERM");
    return { pid: holder.pid };
  }
}

async function isGone(pid: number): Promise<boolean> {
  for (const until = Date.now() + GONE_MS; isAlive(pid);) {
    if (Date.now() >= until) return false;
    await pause(LOOK_MS);
  }
  return true;
}
