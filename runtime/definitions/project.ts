import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import { messageOf } from "../errors.ts";
import { canonical, canonicalFolder, expandHome } from "../paths.ts";
import { shown, type Finding } from "./finding.ts";
import type { DefinitionSource } from "./source.ts";

/** A project's folder, canonical. */
export function projectFolderOf({ path, cwd }: DefinitionSource): Promise<string> {
  return canonicalFolder(cwd === undefined ? resolve(path, "..", "..") : expandHome(cwd));
}

/**
 * Why the definitions of a project do not count, if they do not: the user does not trust it, or the project's own
 * settings do not ask for it. A global setting is not read, because it would speak for every project that is ever opened.
 */
export async function whyLeftOut({ path, trusted }: DefinitionSource, project: string): Promise<Finding | undefined> {
  const leftOut = (rule: string, problem: string): Finding => ({
    file: path,
    rule,
    effect: "ignored",
    message: `${path} is left out: ${rule}; ${problem}`,
  });
  if ((await canonical(project)) === undefined) {
    return leftOut("the project's folder exists", `${project} does not`);
  }
  if (trusted !== true) return leftOut("only trusted projects bring definitions", "this one is not trusted");
  const settings = join(project, ".pi", "settings.json");
  const rule = `the project's own settings have "herd": { "projectAgents": true }`;
  let said: unknown;
  try {
    said = JSON.parse((await readFile(settings, "utf8")).replace(/^\uFEFF/, ""));
  } catch (error) {
    return leftOut(rule, `${settings} cannot be read: ${messageOf(error)}`);
  }
  const parsed = Settings.safeParse(said);
  if (parsed.success) {
    return parsed.data.herd?.projectAgents === true ? undefined : leftOut(rule, `${settings} does not say so`);
  }
  const [issue] = parsed.error.issues as [z.core.$ZodIssue];
  const value = issue.path.reduce((outer, key) => (outer as Record<PropertyKey, unknown>)[key], said);
  const field = issue.path.join(".");
  const problem = `${field === "" ? settings : `${field} in ${settings}`} must be ${issue.message}`;
  return {
    file: path,
    ...(field !== "" && { field }),
    rule: issue.message,
    effect: "ignored",
    message: `${path} is left out: ${problem}, and is ${shown(value)}`,
  };
}

/** What of a project's settings is read here. Everything of ours stands under one key. */
const Settings = z.looseObject(
  {
    herd: z.looseObject({ projectAgents: z.boolean("true or false").optional() }, "an object").optional(),
  },
  "an object",
);
