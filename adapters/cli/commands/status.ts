import type { Command } from "commander";
import { hostDirectory } from "../../host/place.ts";
import { connectHost } from "../../host/start.ts";
import type { HostStatus } from "../../host/shapes.ts";
import { show, withHostDirectory } from "../output.ts";
import { visible } from "../terminal/text.ts";
import { countOf } from "../words.ts";
import { quoted } from "../../host/herd-command.ts";

/** `herd status`: whether the background process of Pi sessions runs, and what it keeps alive. */
export function addStatus(program: Command, version: string): void {
  withHostDirectory(program.command("status").description("show whether the background process of Pi sessions runs"))
    .option("--json", "print JSON for programs")
    .action(async (options: { directory: string; json?: boolean }) => {
      const connection = await connectHost({ directory: options.directory, bearer: { role: "observer" }, version });
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
  const where = directory === hostDirectory() ? "" : ` --directory ${quoted(directory)}`;
  for (const { id, label, title, message, method, options } of dialogs) {
    const what = message === undefined ? title : `${title}: ${message}`;
    const how =
      method === "confirm" ? "yes|no" : options ? options.map((each) => quoted(visible(each))).join("|") : "TEXT";
    lines.push(
      `"${visible(label)}" waits for a person: ${visible(what)} (${id})`,
      `  Next: herd answer ${label} ${how}${where}`,
    );
  }
  return lines.join("\n");
}
