import type { Evidence } from "../machines/vocabulary.ts";
import { composeBody } from "./definitions/body.ts";
import {
  delegates,
  metadataOf,
  policyOf,
  type AgentRow,
  type Definition,
  type LaunchPolicy,
} from "./definitions/definition.ts";
import type { Definitions, Finding, Roster as Files } from "./definitions/roster.ts";
import { invalidRequest, withoutUndefined, type HerdError } from "./errors.ts";
import { canonicalFolder } from "./paths.ts";
import { nearest, type AgentDefinition, type Agents } from "./functions/agent.ts";

/** An agent as whoever assigns it sees it: a function of this program, or what definition files say. */
export interface Agent {
  name: string;
  enabled: boolean;
  /** The agents its workers may start. */
  subagents: readonly string[];
  /** Its workers may start workers of their own when the root starts them. */
  delegates: boolean;
  /** What a start may hand it beside its task. */
  extras: readonly string[];
  /** Absent for a function. */
  definition?: Definition;
}

const NO_FILES: Files = { definitions: new Map(), findings: [] };

/**
 * Every agent that can be assigned: the functions of this program and the definition files as they are now. A function
 * hides the file of the same name.
 */
export class Roster {
  readonly #agents: Agents;
  readonly #definitions: Definitions | undefined;
  /** Without definition files it never changes. */
  readonly #functions: RosterNow;

  constructor(agents: Agents, definitions: Definitions | undefined) {
    this.#agents = agents;
    this.#definitions = definitions;
    this.#functions = new RosterNow(agents, NO_FILES);
  }

  /**
   * As it is now. Without definition files nothing has to be waited for.
   * @param cwd where the controller works that looks: a project's definitions are there for this folder alone.
   */
  current(cwd: string): RosterNow | Promise<RosterNow> {
    if (this.#definitions === undefined) return this.#functions;
    return this.#definitions.current(cwd).then((files) => new RosterNow(this.#agents, files));
  }
}

/** The roster at one moment. */
export class RosterNow {
  readonly #agents: Agents;
  readonly #files: Files;

  constructor(agents: Agents, files: Files) {
    this.#agents = agents;
    this.#files = files;
  }

  /** What is wrong with the files, or hidden. */
  get findings(): readonly Finding[] {
    const hidden = [...this.#files.definitions.values()].filter(({ name }) => this.#agents.has(name));
    return [
      ...this.#files.findings,
      ...hidden.map(({ name, body }) => ({
        file: body.at(-1)?.file ?? "",
        name,
        rule: "a function of this program comes before a file",
        effect: "hidden" as const,
        message: `The agent "${name}" is a function of this program, which hides the definition file of that name.`,
      })),
    ];
  }

  find(name: string): Agent | undefined {
    const agent = this.#agents.named(name);
    if (agent) return functionAgent(name, agent);
    const definition = this.#files.definitions.get(name);
    return definition && { ...fileAgent(definition), definition };
  }

  /**
   * The agent of that name, which may still be one that cannot be launched.
   * @throws HerdError `unknown_agent` with the nearest name.
   */
  known(name: string): Agent {
    const agent = this.find(name);
    if (agent) return agent;
    const names = this.#names;
    const near = nearest(name, names);
    // Who has no functions, a Pi session for one, has no program to write one in.
    const isOfFiles = this.#files.definitions.size > 0 && this.#agents.names.length === 0;
    const defined = names.length > 0 ? `Defined here: ${names.join(", ")}` : "No agent is defined here";
    throw invalidRequest(
      "assign",
      "unknown_agent",
      `There is no agent "${name}"${near ? ` (did you mean "${near}"?)` : ""}. ${defined}`,
      `assign one of the defined agents, or ${isOfFiles ? "write a definition file for it" : "define it in createHerd({ agents })"}`,
      { field: "agent" },
    );
  }

  /**
   * Looks whether an agent can be launched: it is enabled, and so is every agent that it may start.
   * @throws HerdError `disabled_agent` with the reason where a file is at fault, or `disabled_subagent`.
   */
  checkLaunchable({ name, enabled, subagents, definition }: Agent): void {
    if (!enabled) {
      const why = this.#files.findings.filter((finding) => finding.name === name && finding.effect === "disabled");
      throw invalidRequest(
        "assign",
        "disabled_agent",
        why.length > 0 ? why.map(({ message }) => message).join("; ") : `The agent "${name}" is disabled`,
        why[0]
          ? `correct ${why[0].file}, or assign another enabled definition`
          : definition
            ? "enable it with /subagents overrides, or assign another enabled definition"
            : "enable it in createHerd({ agents }) (a definition file with /subagents overrides), or assign another enabled definition",
        { field: "agent" },
      );
    }
    const broken = subagents.filter((child) => this.find(child)?.enabled !== true);
    if (broken.length === 0) return;
    const names = broken.map((child) => `"${child}"`).join(", ");
    throw invalidRequest(
      "assign",
      "disabled_subagent",
      `The agent "${name}" may start ${names}, which ${broken.length === 1 ? "is" : "are"} disabled or not defined`,
      `enable or define ${names}, or take it out of its subagents`,
      { field: "agent", details: { subagents: broken } },
    );
  }

  /** A root sees everything, a parent its enabled children as leaves. */
  rows(allowed: readonly string[] | undefined): AgentRow[] {
    return this.#names
      .filter((name) => allowed === undefined || (allowed.includes(name) && this.find(name)?.enabled === true))
      .map((name) => this.#row(name, allowed !== undefined));
  }

  get #names(): string[] {
    return [...new Set([...this.#agents.names, ...this.#files.definitions.keys()])];
  }

  #row(name: string, leaf: boolean): AgentRow {
    const agent = this.#agents.named(name);
    if (agent === undefined) return metadataOf(this.#files.definitions.get(name) as Definition, { leaf });
    const { description, enabled, subagents } = agent;
    return withoutUndefined({
      name,
      description,
      enabled: enabled === false ? (false as const) : undefined,
      subagents: leaf ? undefined : subagents,
    }) as AgentRow;
  }
}

/** A project's agent serves the project's folder alone. @throws HerdError `other_project`. */
export async function checkProject(definition: Definition, cwd: string): Promise<void> {
  const { projectCwd } = definition;
  if (projectCwd !== undefined && (await canonicalFolder(cwd)) !== projectCwd) throw otherProject(definition, cwd);
}

/**
 * What a launch of an agent freezes: nothing for a function, else its policy with the composed role prompt. A file that
 * the caller gives anyway stays out of the prompt.
 * @throws HerdError `invalid_request` for a file of the prompt that cannot be read.
 */
export async function frozenPolicy(
  { definition }: Agent & { definition: Definition },
  { leaf, files }: { leaf: boolean; files: readonly Evidence[] },
): Promise<LaunchPolicy> {
  const systemPrompt = await composeBody(definition, new Set(files.map(({ path }) => path)));
  return policyOf(definition, { leaf, systemPrompt });
}

function functionAgent(name: string, { enabled, subagents = [], extras = [] }: AgentDefinition): Agent {
  return { name, enabled: enabled !== false, subagents, delegates: subagents.length > 0, extras };
}

function fileAgent(definition: Definition): Agent {
  const { name, enabled, subagents = [], extras = [] } = definition;
  return { name, enabled, subagents, delegates: delegates(definition), extras };
}

function otherProject({ name, projectCwd }: Definition, cwd: string): HerdError {
  return invalidRequest(
    "assign",
    "other_project",
    `The agent "${name}" is defined by the project in "${projectCwd}" and serves that folder alone, not "${cwd}"`,
    "assign it with that cwd, or use an agent that every folder has",
    { field: "agent" },
  );
}
