import type { Command } from "commander";
import { quoted } from "../../host/herd-command.ts";
import { findHost } from "../../host/start.ts";
import type { Dialog, HostStatus } from "../../host/shapes.ts";
import { hostCommandFor } from "../invocation.ts";
import { show, withHostDirectory } from "../output.ts";
import { visible } from "../terminal/text.ts";
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
  for (const dialog of dialogs) lines.push(...dialogText(dialog, directory, dialogs));
  return lines.join("\n");
}

/** A dialog, and the command that answers it. */
function dialogText(dialog: Dialog, directory: string, all: readonly Dialog[]): string[] {
  const { id, runId, label, title, message } = dialog;
  const what = message === undefined ? title : `${title}: ${message}`;
  const { answers, example } = answersTo(dialog);
  const isShared = all.some((each) => each.label === label && each.runId !== runId);
  return [
    `"${visible(label)}" waits for a person: ${visible(what)} (${[id, ...answers].join("; ")})`,
    `  Next: ${hostCommandFor(directory, "answer", quoted(isShared ? id : label), example)}`,
  ];
}

/** What can be answered, in words, and one such answer as it is typed into a shell. */
function answersTo({ method, options: [first, ...others] = [] }: Dialog): { answers: string[]; example: string } {
  if (method === "confirm") return { answers: ["yes or no"], example: "yes" };
  if (first === undefined) return { answers: [], example: '"…"' };
  const choices = [first, ...others].map((each) => JSON.stringify(visible(each)));
  return { answers: [`one of ${choices.join(", ")}, or no`], example: quoted(visible(first)) };
}
