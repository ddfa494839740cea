import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { LaunchPolicy } from "../../../runtime/index.ts";

/** The names under which Pi looks for context, the first that is there in each folder. Source: Pi, context files. */
const NAMES = ["AGENTS.md", "CLAUDE.md"];

/**
 * Pi leaves out all context files or none. Where a definition inherits only one kind, that kind is given by its paths.
 * @returns undefined when Pi may read them all itself.
 */
export function contextFiles(
  policy: LaunchPolicy | undefined,
  { cwd, agentDirectory }: { cwd: string; agentDirectory: string },
): string[] | undefined {
  const inheritsProject = policy?.inheritProjectContext !== false;
  const inheritsGlobal = policy?.inheritGlobalContext !== false;
  if (inheritsProject && inheritsGlobal) return undefined;
  const global = inheritsGlobal ? [agentDirectory] : [];
  const project = inheritsProject ? foldersAbove(cwd) : [];
  return [...global, ...project].flatMap((folder) => {
    const found = NAMES.map((name) => join(folder, name)).find((path) => existsSync(path));
    return found ?? [];
  });
}

/** The outermost first, so that what is nearest is read last. */
function foldersAbove(cwd: string): string[] {
  const folders = [resolve(cwd)];
  for (;;) {
    const [top = ""] = folders;
    const above = dirname(top);
    if (above === top) break;
    folders.unshift(above);
  }
  return folders;
}
