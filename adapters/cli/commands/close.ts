import type { Command } from "commander";
import { findByLabel } from "../listing.ts";
import { show, snakeCase, withCommonOptions, withLabelOptions, type CommonOptions } from "../output.ts";
import { withHerd } from "../reach.ts";
import { visible } from "../terminal/text.ts";

/** `herd close`: ends a worker and everything below it. */
export function addClose(program: Command): void {
  withLabelOptions(
    withCommonOptions(
      program
        .command("close")
        .description("end a worker and everything below it; its question is given up")
        .argument("<label>", "the worker"),
    ),
  ).action(async (label: string, options: CommonOptions & { owner?: string; workspace?: string }) => {
    await withHerd(options.directory, { reads: false }, async ({ herd }) => {
      const { owner } = await findByLabel(herd, label, options);
      const receipt = await owner.close({ label });
      const { cleanupError } = receipt;
      await show(options, snakeCase({ ...receipt }), () =>
        cleanupError === undefined
          ? `Closed: "${visible(label)}".`
          : `Closed: "${visible(label)}". Something of it could not be tidied up and is tried again: ${visible(cleanupError)}`,
      );
    });
  });
}
