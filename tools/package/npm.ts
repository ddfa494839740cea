/**
 * Running npm as a user runs it: the npm that runs this very script, or the one on the path, under this Node.
 */
import { spawnSync } from "node:child_process";
import { delimiter, dirname } from "node:path";

/** What npm says when nobody answers where packages come from. */
const UNREACHABLE =
  /^npm (?:error|ERR!) code (ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT|FETCH_ERROR|ENOTCACHED|E5\d\d)$/m;

/** The registry did not answer, and npm's cache does not have what was asked for. */
export class RegistryUnreachable extends Error {
  constructor(code: string) {
    super(`the npm registry cannot be reached (${code})`);
    this.name = "RegistryUnreachable";
  }
}

/**
 * The environment of a person's shell: this Node first on the path, and of an npm script that runs us only npm's
 * settings. What names the folder of that script would send npm there.
 */
export const shellEnv: NodeJS.ProcessEnv = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOfScript(name))),
  PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"]}`,
};

function isOfScript(name: string): boolean {
  return /^(npm_(?!config_)|npm_config_(local_prefix|prefix)$|INIT_CWD$|NODE_OPTIONS$|VITEST)/i.test(name);
}

/**
 * Runs npm in a folder and gives what it wrote to stdout.
 * @throws RegistryUnreachable, or an Error with all that npm wrote.
 */
export function npm(args: readonly string[], cwd: string): string {
  const script = process.env["npm_execpath"];
  const options = { cwd, env: shellEnv, encoding: "utf8" } as const;
  const { status, stdout, stderr, error } = script?.endsWith("npm-cli.js")
    ? spawnSync(process.execPath, [script, ...args], options)
    : // On Windows npm is a shell script.
      spawnSync("npm", args, { ...options, shell: process.platform === "win32" });
  if (error) throw error;
  if (status === 0) return stdout;
  const code = unreachable(stderr);
  if (code !== undefined) throw new RegistryUnreachable(code);
  throw new Error(`npm ${args.join(" ")} ended with exit code ${status}:\n${stdout}${stderr}`);
}

/** npm's code for a registry that did not answer, if that is what it says; undefined for anything else. */
export function unreachable(stderr: string): string | undefined {
  return UNREACHABLE.exec(stderr)?.[1];
}
