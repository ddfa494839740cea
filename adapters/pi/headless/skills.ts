import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { HerdError, type LaunchPolicy } from "../../../runtime/index.ts";

/**
 * Pi starts without a skill that is not there, and a worker would do its task without it. What is no path is left to Pi:
 * agent files of others name skills by words of their own.
 * @throws HerdError `missing_skill`.
 */
export function checkSkills(policy: LaunchPolicy | undefined, cwd: string): void {
  const missing = (policy?.skills ?? []).filter((skill) => isPath(skill) && !existsSync(pathOf(skill, cwd)));
  if (missing.length === 0) return;
  const named = missing.map((skill) => JSON.stringify(skill)).join(", ");
  throw new HerdError({
    category: "invalid_request",
    reason: "missing_skill",
    message: `The definition "${policy?.name ?? ""}" names skills that are not there: ${named}`,
    nextAction: "correct its field skills, whose paths start at the worker's folder, or put them there",
    operation: "assign",
    field: "skills",
    rule: "every path has to exist",
  });
}

function isPath(skill: string): boolean {
  return !/^(npm|git|https?|ssh):/.test(skill) && /[/\\]|^~|\.md$/.test(skill);
}

function pathOf(skill: string, cwd: string): string {
  return /^~[/\\]/.test(skill) ? join(homedir(), skill.slice(2)) : resolve(cwd, skill);
}
