import type { Launch } from "../../../runtime/backend.ts";

/** How a Pi process is started for a worker. */
export interface LaunchFlags {
  launch: Launch;
  /** Our own extension, which makes it a worker. */
  extension: string;
  /** The file with its role, unless the role is empty. */
  rolePrompt?: string;
  /** The file with what every worker is told. */
  workerPrompt: string;
  label: string;
  /** The context files that it gets by their paths, when Pi is not to look for any itself. */
  contextFiles?: string[] | undefined;
  /** The folder in which sessions of workers are made. */
  sessionFolder: string;
  /** The session's file is there already: it is opened instead of made. */
  sessionFile?: string;
  trusted: boolean;
  /** What the root session uses, where the definition says nothing. */
  model?: string;
  thinking?: string;
}

/**
 * The arguments of Pi for a headless worker. Everything is said explicitly, so that neither a prompt nor a setting can hold
 * the start up. Source: Pi's command line, and the specification of definitions.
 */
export function launchFlags(flags: LaunchFlags): string[] {
  const { launch, extension, label, workerPrompt, rolePrompt, trusted } = flags;
  const { policy } = launch;
  const model = policy?.model ?? flags.model;
  const thinking = policy?.thinking ?? flags.thinking;
  const args = ["--mode", "rpc", trusted ? "--approve" : "--no-approve", "--extension", extension];
  if (policy?.noExtensions) args.push("--no-extensions");
  for (const each of policy?.extensions ?? []) args.push("--extension", each);
  if (model !== undefined) args.push("--model", model);
  if (thinking !== undefined) args.push("--thinking", thinking);
  args.push(...toolFlags(policy));
  if (policy?.noSkills || policy?.inheritSkills === false) args.push("--no-skills");
  for (const skill of policy?.skills ?? []) args.push("--skill", skill);
  if (flags.contextFiles) args.push("--no-context-files");
  for (const file of flags.contextFiles ?? []) args.push("--append-system-prompt", file);
  if (rolePrompt !== undefined) {
    args.push(policy?.systemPromptMode === "replace" ? "--system-prompt" : "--append-system-prompt", rolePrompt);
  }
  args.push("--append-system-prompt", workerPrompt, "--name", label);
  // Not among the user's own, where --continue would take the newest of them up.
  args.push("--session-dir", flags.sessionFolder, ...sessionFlags(flags));
  return args;
}

/** `ask_owner` and `subagent` are no matter of policy: the extension switches them on itself. */
function toolFlags(policy: Launch["policy"]): string[] {
  const args: string[] = [];
  if (policy?.noBuiltinTools) args.push("--no-builtin-tools");
  // With a list, extension tools have to stand in it too.
  if (policy?.tools) args.push("--tools", policy.tools.join(","));
  if (policy?.excludeTools && policy.excludeTools.length > 0)
    args.push("--exclude-tools", policy.excludeTools.join(","));
  return args;
}

function sessionFlags({ launch, sessionFile }: LaunchFlags): string[] {
  const { session, sessionId } = launch;
  if (sessionFile !== undefined) return ["--session", sessionFile];
  if (session !== undefined && "continues" in session) return ["--session", session.continues];
  if (session !== undefined) return ["--fork", session.forks, "--session-id", sessionId];
  return ["--session-id", sessionId];
}
