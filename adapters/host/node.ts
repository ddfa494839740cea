import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { HerdError, messageOf } from "../../runtime/client.ts";

/** The same as `engines` in package.json says. */
const OLDEST = [22, 19] as const;

/**
 * The Node that runs this program; where Bun runs it, as it does Pi's own binaries, the one on the PATH.
 * @param versions of what runs this program.
 * @throws HerdError `node_too_old`.
 */
export async function findNode(
  env: NodeJS.ProcessEnv = process.env,
  versions: NodeJS.ProcessVersions = process.versions,
): Promise<string> {
  if (versions["bun"] === undefined) return process.execPath;
  const path = onPath("node", env);
  if (path === undefined) throw tooOld("There is no Node.js on the PATH");
  try {
    const { stdout } = await promisify(execFile)(path, ["--version"], { timeout: 10_000 });
    if (isNewEnough(stdout.trim().replace(/^v/, ""))) return path;
    throw tooOld(`${path} is Node.js ${stdout.trim()}`);
  } catch (error) {
    if (error instanceof HerdError) throw error;
    throw tooOld(`${path} does not start: ${messageOf(error)}`);
  }
}

/** Whether a version of Node runs pi-herd and Pi. */
export function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

/** The first program of this name on the PATH. */
export function onPath(name: string, env: NodeJS.ProcessEnv = process.env): string | undefined {
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    if (folder === "") continue;
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      continue;
    }
  }
  return undefined;
}

/** Whatever runs below it that asks for `node` gets the one that Pi needs. */
export function withNodeFirst(env: NodeJS.ProcessEnv, node: string): NodeJS.ProcessEnv {
  return {
    ...env,
    PATH: [dirname(node), env["PATH"]].filter((part) => part !== undefined && part !== "").join(delimiter),
  };
}

function tooOld(message: string): HerdError {
  return new HerdError({
    category: "invalid_request",
    reason: "node_too_old",
    message: `${message}, and the background process and workers need Node.js ${OLDEST.join(".")} or newer`,
    nextAction: "install a newer Node.js, and put it first in the PATH",
    operation: "serve",
  });
}
