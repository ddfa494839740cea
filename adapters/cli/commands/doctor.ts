import type { Command } from "commander";
import { examine, type Examined } from "../doctor.ts";
import { EXIT } from "../errors.ts";
import { show, withCommonOptions, type CommonOptions } from "../output.ts";
import { table, visible } from "../terminal/text.ts";

/** `herd doctor`: what is wrong and how to mend it. */
export function addDoctor(program: Command): void {
  withCommonOptions(
    program.command("doctor").description("say what is wrong with this machine or herd, and what to do"),
  ).action(async (options: CommonOptions) => {
    const checks = await examine(options.directory);
    const isWell = checks.every(({ ok }) => ok);
    await show(options, { ok: isWell, checks }, () => textOf(checks));
    if (!isWell) process.exitCode = EXIT.unhealthy;
  });
}

function textOf(checks: readonly Examined[]): string {
  const rows = table(
    checks.map(({ ok, name, says }) => [ok ? "ok" : "WRONG", name, visible(says)]),
    new Set(),
  );
  return rows
    .flatMap((row, index) => {
      const next = checks[index]?.next;
      return next === undefined ? [row] : [row, `       Next: ${visible(next)}`];
    })
    .join("\n");
}
