import type { Command } from "commander";
import { dialogText } from "../../host/dialog-text.ts";
import { quoted } from "../../host/herd-command.ts";
import { findHost } from "../../host/start.ts";
import type { HostStatus } from "../../host/shapes.ts";
import { hostCommandFor } from "../invocation.ts";
import { show, withHostDirectory } from "../output.ts";
import { countOf } from "../words.ts";

/** `herd status`: whether the background process of Pi sessions runs, and what it keeps alive. */
export function addStatus(program: Command, version: string): void {
  withHostDirectory(program.command("status").description("show whether the background process of Pi sessions runs"))
    .option("--json", "print JSON for programs")
    .action(async (options: { directory: string; json?: boolean }) => {
      const connection = await findHost({ directory: options.directory, bearer: { role: "observer" }, version });
      const status = connection && (await connection.request<HostStatus>("host/status", {}));
      await connection?.close(1_000);
      await show(options, status ?? { running: false, directory: options.directory }, () =>
        status
          ? textOf(status)
          : `No background process runs for ${options.directory}; the Pi extension starts one when it is needed.`,
      );
    });
}

function textOf({ pid, version, directory, since, roots, workers, dialogs, replacing }: HostStatus): string {
  const lines = [
    `Process ${pid} serves ${directory} since ${since} (pi-herd ${version}).`,
    `${countOf(roots, "Pi session")} and ${countOf(workers, "worker")} are there.`,
  ];
  if (replacing) lines.push("A newer version takes over as soon as no worker's turn runs.");
  const command = (...words: string[]) => hostCommandFor(directory, ...words.map((word) => quoted(word)));
  for (const dialog of dialogs) lines.push(...dialogText(dialog, { command, all: dialogs }));
  return lines.join("\n");
}
