import { existsSync } from "node:fs";
import type { Command } from "commander";
import { hostDirectory } from "../../host/place.ts";
import { keyFile } from "../../host/tokens.ts";
import { examine, type Examined } from "../doctor.ts";
import { EXIT } from "../errors.ts";
import { show, withCommonOptions, type CommonOptions } from "../output.ts";
import { table, visible } from "../terminal/text.ts";

const NOTES = `
The herd of this user's Pi is one with more to look at: with --pi, or for its folder, doctor also looks at Pi and its Node,
tmux and Herdr, the background process, the settings, and the definitions of agents, those of the project here included.

It changes nothing. The exit code is 4 when something is wrong.`;

/** `herd doctor`: what is wrong and how to mend it. */
export function addDoctor(program: Command, version: string): void {
  withCommonOptions(
    program.command("doctor").description("say what is wrong with this machine or herd, and what to do"),
  )
    .option("--pi", "the herd of this user's Pi, with all that its workers need")
    .addHelpText("after", NOTES)
    .action(async ({ pi, ...options }: CommonOptions & { pi?: boolean }, command: Command) => {
      const isNamed = command.getOptionValueSource("directory") !== "default";
      const directory = pi && !isNamed ? hostDirectory() : options.directory;
      const checks = await examine(directory);
      if (pi || directory === hostDirectory() || existsSync(keyFile(directory))) {
        const { examinePi } = await import("../doctor-pi.ts");
        checks.push(...(await examinePi(directory, version)));
      }
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
