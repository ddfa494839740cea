import { resolve } from "node:path";
import { z } from "zod";
import { messageOf } from "../errors.ts";
import { expandHome } from "../paths.ts";
import type { Finding } from "./finding.ts";

/** A folder of definition files. */
export interface DefinitionSource {
  /** `~` is the home folder; a relative path starts in the working directory. */
  path: string;
  layer: "project" | "global";
  /**
   * Project only: the project's folder; the one in which `path` is `.pi/agents` unless set. What the source defines is there
   * for owners and parent workers that work in this folder, and for no others.
   */
  cwd?: string | undefined;
  /** Project only: the user trusts this project. Without it the folder is left out. */
  trusted?: boolean | undefined;
}

/** What `definitions` of createHerd takes: the folders, or what gives them each time they are looked at. */
export type DefinitionSources = readonly (string | DefinitionSource)[] | (() => readonly (string | DefinitionSource)[]);

const SOURCE_RULE =
  'must be the path of a folder, or { path, layer: "project" or "global" } with cwd and trusted for a project';

const list = z.array(
  z.union(
    [
      z.string().min(1, SOURCE_RULE),
      z.strictObject({
        path: z.string().min(1, "must name a folder"),
        layer: z.enum(["project", "global"]),
        cwd: z.string().min(1, "must name a folder").optional(),
        trusted: z.boolean().optional(),
      }),
    ],
    SOURCE_RULE,
  ),
  "must be a list of folders",
);

/** The option `definitions`. */
export const definitionSources = z
  .unknown()
  .optional()
  .transform((given, context): DefinitionSources | undefined => {
    if (given === undefined || typeof given === "function") return given as DefinitionSources | undefined;
    const parsed = list.safeParse(given);
    if (parsed.success) return parsed.data;
    type Issue = (typeof context.issues)[number];
    context.issues.push(...parsed.error.issues.map((issue) => ({ ...issue, input: given }) as Issue));
    return z.NEVER;
  });

/** The sources that count now, with absolute paths; a finding where they are not those that were just given. */
export interface Sources {
  sources: readonly DefinitionSource[];
  findings: readonly Finding[];
}

/** Where definitions come from: the same folders always, or whatever a function says each time. */
export class SourceList {
  readonly #ask: (() => readonly (string | DefinitionSource)[]) | undefined;
  #last: readonly DefinitionSource[] = [];

  constructor(given: DefinitionSources) {
    if (typeof given === "function") this.#ask = given;
    else this.#last = given.map(absolute);
  }

  /** What a function gives wrong, or throws, is a finding; what it gave last counts on then. */
  current(): Sources {
    const ask = this.#ask;
    if (ask === undefined) return { sources: this.#last, findings: [] };
    try {
      const given: unknown = ask();
      const parsed = list.safeParse(given);
      if (parsed.success) return { sources: (this.#last = parsed.data.map(absolute)), findings: [] };
      // A promise that nobody waits for must not end the process when it rejects.
      if (given instanceof Promise) given.catch(() => undefined);
      const [{ path, message }] = parsed.error.issues as [z.core.$ZodIssue];
      const field = ["definitions", ...path].join(".");
      return this.#lastWith(field, message, `${field} ${message}, and its function gives something else`);
    } catch (error) {
      return this.#lastWith("definitions", "must not throw", `the function definitions threw: ${messageOf(error)}`);
    }
  }

  #lastWith(field: string, rule: string, problem: string): Sources {
    const message = `${problem}; what it gave last counts on`;
    return { sources: this.#last, findings: [{ file: "definitions", field, rule, effect: "ignored", message }] };
  }
}

function absolute(source: string | DefinitionSource): DefinitionSource {
  const { path, ...more } = typeof source === "string" ? { path: source, layer: "global" as const } : source;
  return { ...more, path: resolve(expandHome(path)) };
}
