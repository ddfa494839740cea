import type { Command } from "commander";
import { findByLabel } from "../listing.ts";
import { show, snakeCase, withCommonOptions, withLabelOptions, type CommonOptions } from "../output.ts";
import { withHerd } from "../reach.ts";
import { onceOpen } from "../resting.ts";
import { visible } from "../terminal/text.ts";

interface SteerOptions extends CommonOptions {
  owner?: string;
  workspace?: string;
  file?: string[];
}

/** `herd steer`: tells a worker at work something. */
export function addSteer(program: Command): void {
  withLabelOptions(
    withCommonOptions(
      program
        .command("steer")
        .description("tell a worker something about the task that it has")
        .argument("<label>", "the worker")
        .argument("<text>", "what it should know"),
    ),
  )
    .option("-f, --file <path...>", "files that go with it")
    .action(async (label: string, message: string, options: SteerOptions) => {
      await withHerd(options.directory, { reads: false }, async ({ herd, isRunning, directory }) => {
        const { owner } = await findByLabel(herd, label, options);
        const receipt = await owner.steer({ label, message, ...(options.file && { files: options.file }) });
        await show(options, { ...snakeCase({ ...receipt }), label, running: isRunning }, () =>
          isRunning
            ? `Told: "${visible(label)}" reads it at its next turn.`
            : `Stored: "${visible(label)}" reads it ${onceOpen(directory)}`,
        );
      });
    });
}
