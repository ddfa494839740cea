import { existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { HerdError } from "../../runtime/client.ts";
import { findNode, onPath } from "./node.ts";
import type { PiCommand } from "./shapes.ts";

const PACKAGE = "@earendil-works/pi-coding-agent";

/** Pi's own program as it is found without a session of it: on the PATH, or beside this package. @throws HerdError `pi_missing`. */
export async function findPi(env: NodeJS.ProcessEnv = process.env): Promise<PiCommand> {
  const command = onPath("pi", env);
  const cli = (command === undefined ? undefined : cliOf(realpathSync(command))) ?? besideUs();
  if (cli !== undefined) return { node: await findNode(env), cli };
  throw new HerdError({
    category: "invalid_request",
    reason: "pi_missing",
    message: "Pi is not installed: there is no command pi on the PATH, and no package beside this one",
    nextAction: `install it with npm install -g ${PACKAGE}, and try again`,
    operation: "preflight",
  });
}

/** Whether it can still be started: what a session said of itself may have been updated or removed since. */
export function isInstalled({ node, cli }: PiCommand): boolean {
  return existsSync(node) && existsSync(cli);
}

/** The program that Node runs, of what was found under the name of the command. */
export function cliOf(path: string): string | undefined {
  return /\.(js|mjs|cjs)$/.test(path) ? path : undefined;
}

function besideUs(): string | undefined {
  try {
    const entry = createRequire(import.meta.url).resolve(`${PACKAGE}/package.json`);
    const cli = join(dirname(entry), "dist", "bundle", "cli.js");
    return existsSync(cli) ? cli : undefined;
  } catch {
    return undefined;
  }
}
