import { fileURLToPath } from "node:url";
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { HerdError, messageOf } from "../../../runtime/client.ts";
import { unusable } from "../../host/start.ts";
import { readKey } from "../../host/tokens.ts";
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
  await readKey(directory).catch((error: unknown) => {
    throw unusable(directory, error);
  });
  const { log, close } = openLog(directory);
  process.on("warning", ({ name, message }) => log.warn({ name }, message));
  try {
    const options = { directory, version, extension: extensionPath(), log, leaveAfterMs };
    const why = await Host.serve(options, (host) => {
      for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => host.stop(signal));
      log.info({ pid: process.pid, version, directory, node: process.versions.node }, "serves");
    });
    log.info({ why }, why === undefined ? "another one serves already" : "left");
  } catch (error) {
    const reason = error instanceof HerdError ? error.reason : undefined;
    log.error({ reason, error: messageOf(error) }, "could not serve");
    throw error;
  } finally {
    await close();
  }
}

/** What Pi loads: a file of the package itself, in a checkout beside the sources. */
function extensionPath(): string {
  const [source, published] = ["../../pi/extension.js", "../../../../adapters/pi/extension.js"].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  ) as [string, string];
  return existsSync(source) ? source : published;
}
