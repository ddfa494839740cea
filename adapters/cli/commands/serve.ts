import { fileURLToPath } from "node:url";
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { HerdError } from "../../../runtime/index.ts";
import { connectHost } from "../../host/start.ts";
import { UsageError } from "../errors.ts";
import { withHostDirectory } from "../output.ts";

/** `herd serve`: the background process that keeps the workers of Pi sessions alive. */
export function addServe(program: Command, version: string): void {
  withHostDirectory(
    program
      .command("serve")
      .description("keep the workers of Pi sessions alive; the Pi extension starts it when it is needed"),
  )
    .option("--leave-after <seconds>", "how long nobody may need it before it leaves", "30")
    .action(async ({ directory, leaveAfter }: { directory: string; leaveAfter: string }) => {
      const seconds = Number(leaveAfter);
      if (leaveAfter.trim() === "" || !(seconds >= 0)) throw new UsageError("--leave-after takes seconds, 0 or more.");
      await serve(directory, version, seconds * 1_000);
    });
}

async function serve(directory: string, version: string, leaveAfterMs: number): Promise<void> {
  // Nothing that it makes is for anybody else.
  process.umask(0o077);
  const [{ Host }, { openLog }] = await Promise.all([import("../../host/host.ts"), import("../../host/log.ts")]);
  const { log, close } = openLog(directory);
  process.on("warning", ({ name, message }) => log.warn({ name }, message));
  try {
    const options = { directory, version, extension: extensionPath(), log, leaveAfterMs };
    const why = await Host.serve(options, (host) => {
      for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => host.stop(signal));
      log.info({ pid: process.pid, version, directory, node: process.versions.node }, "serves");
    });
    log.info({ why }, "left");
  } catch (error) {
    const reason = error instanceof HerdError ? error.reason : undefined;
    log.error({ reason, error: error instanceof Error ? error.message : String(error) }, "could not serve");
    // One instance: whoever has the folder already serves it.
    if (reason !== "store_locked" || !(await isServed(directory, version))) throw error;
  } finally {
    await close();
  }
}

async function isServed(directory: string, version: string): Promise<boolean> {
  const connection = await connectHost({ directory, bearer: { role: "observer" }, version });
  await connection?.close(1_000);
  return connection !== undefined;
}

/** What Pi loads: a file of the package itself, in a checkout beside the sources. */
function extensionPath(): string {
  const [source, published] = ["../../pi/extension.js", "../../../../adapters/pi/extension.js"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  ) as [string, string];
  return existsSync(source) ? source : published;
}
