import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { agentDirectory } from "../host/place.ts";
import { readSettings } from "../pi/root/settings.ts";
import type { Examined } from "./doctor.ts";
import { trustIn } from "./pi-trust.ts";

const NAME = "settings";

/** What is wrong with our part of Pi's settings: the global ones, and those of a trusted project here. */
export async function examineSettings(): Promise<Examined[]> {
  const cwd = process.cwd();
  const own = join(cwd, ".pi", "settings.json");
  const isTrusted = (await trustIn(cwd, agentDirectory())) === "trusted";
  const looks = [lookAt(join(agentDirectory(), "settings.json"), true), ...(isTrusted ? [lookAt(own, false)] : [])];
  return (await Promise.all(looks)).flat();
}

async function lookAt(file: string, isGlobal: boolean): Promise<Examined[]> {
  if (!existsSync(file)) return [];
  try {
    const all: unknown = JSON.parse((await readFile(file, "utf8")).replace(/^\uFEFF/, ""));
    const { findings } = readSettings(all);
    const { projectAgents } = (all as { herd?: { projectAgents?: unknown } } | null)?.herd ?? {};
    const wrong = findings.map((finding) => ({ name: NAME, ok: false, says: finding, next: `correct it in ${file}` }));
    return isGlobal && projectAgents === true ? [...wrong, noEffect(file)] : wrong;
  } catch (error) {
    return [{ name: NAME, ok: false, says: `${file} cannot be read: ${String(error)}`, next: "make it valid JSON" }];
  }
}

/** It would speak for every project that is ever opened. */
function noEffect(file: string): Examined {
  return {
    name: NAME,
    ok: false,
    says: `the setting herd.projectAgents in ${file} is ignored: only a project's own settings say that for it`,
    next: `take it out there, and put "herd": { "projectAgents": true } into .pi/settings.json of the project`,
  };
}
