import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { HerdError } from "../../runtime/client.ts";
import { findNode, onPath } from "./node.ts";
import type { PiCommand } from "./shapes.ts";

/** The name of Pi's package. */
export const PI_PACKAGE = "@earendil-works/pi-coding-agent";

/** Pi's own program as it is found without a session of it: on the PATH, or beside this package. @throws HerdError `pi_missing`. */
export async function findPi(env: NodeJS.ProcessEnv = process.env): Promise<PiCommand> {
  const command = onPath("pi", env);
  const cli = (command === undefined ? undefined : cliOf(realpathSync(command))) ?? besideUs();
  if (cli !== undefined) return { node: await findNode(env), cli };
  throw new HerdError({
    category: "invalid_request",
    reason: "pi_missing",
    message: "Pi is not installed: there is no command pi on the PATH, and no package beside this one",
    nextAction: `install it with npm install -g ${PI_PACKAGE} and try again`,
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
    // Pi lets nobody resolve its manifest.
    const entry = fileURLToPath(import.meta.resolve(PI_PACKAGE));
    const cli = join(dirname(entry), "bundle", "cli.js");
    return existsSync(cli) ? cli : undefined;
  } catch {
    return undefined;
  }
}
