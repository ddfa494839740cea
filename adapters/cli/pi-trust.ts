import { existsSync } from "node:fs";
import { readFile, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";

/** What Pi says of a project before anybody was asked: whether its own settings and definitions count. */
export type Trust = "trusted" | "not trusted" | "not decided";

/**
 * What Pi has noted about a project, or what its settings say of all. An extension, or a flag of one session, may decide
 * otherwise. Source: Pi's documentation, "How Pi chooses a trust decision".
 */
export async function trustIn(project: string, agentDirectory: string): Promise<Trust> {
  // Where there is nothing that needs trust, Pi does not ask for it.
  if (!existsSync(join(project, ".pi", "settings.json"))) return "trusted";
  const noted = await objectIn(join(agentDirectory, "trust.json"));
  for (let folder = await realpath(project); ; folder = dirname(folder)) {
    if (typeof noted[folder] === "boolean") return noted[folder] ? "trusted" : "not trusted";
    if (folder === dirname(folder)) break;
  }
  const { defaultProjectTrust } = await objectIn(join(agentDirectory, "settings.json"));
  if (defaultProjectTrust === "always") return "trusted";
  return defaultProjectTrust === "never" ? "not trusted" : "not decided";
}

/** What is in a file of Pi's; nothing where it cannot be read, which others say. */
async function objectIn(file: string): Promise<Record<string, unknown>> {
  try {
    const read: unknown = JSON.parse((await readFile(file, "utf8")).replace(/^\uFEFF/, ""));
    return typeof read === "object" && read !== null ? (read as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
