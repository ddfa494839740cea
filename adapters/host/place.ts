import { homedir } from "node:os";
import { join, resolve } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** Pi's own folder of this user: settings, sessions, definitions. Source: Pi, `PI_CODING_AGENT_DIR`. */
export function agentDirectory(env: Environment = process.env): string {
  const given = env["PI_CODING_AGENT_DIR"]?.trim();
  if (given === undefined || given === "") return join(homedir(), ".pi", "agent");
  if (given === "~") return homedir();
  return resolve(/^~[/\\]/.test(given) ? join(homedir(), given.slice(2)) : given);
}

/** The herd of one agent directory, which its host has open. */
export function hostDirectory(env: Environment = process.env): string {
  return join(agentDirectory(env), "herd");
}

/** Where a host's log files are: the current one and the two before it. */
export function logFolder(directory: string): string {
  return join(directory, "log");
}
