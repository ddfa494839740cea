import { withoutUndefined } from "../errors.ts";

export const THINKING = ["off", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
/** How much a model may think before it answers. */
export type Thinking = (typeof THINKING)[number];

/** The tool by which a worker starts workers of its own. */
const SUBAGENT = "subagent";
/** The tool by which a worker asks its owner. Every worker has it, whatever its definition says. */
const ASK_OWNER = "ask_owner";

/** One agent as it is in effect: everything its files say, laid over each other. */
export interface Definition {
  name: string;
  description: string;
  enabled: boolean;
  model?: string;
  thinking?: Thinking;
  systemPromptMode: "append" | "replace";
  noTools?: boolean;
  noBuiltinTools?: boolean;
  tools?: string[];
  excludeTools?: string[];
  noSkills?: boolean;
  inheritSkills?: boolean;
  skills?: string[];
  noExtensions?: boolean;
  extensions?: string[];
  /** The agents its workers may start. Without any it is a leaf. */
  subagents?: string[];
  inheritProjectContext?: boolean;
  inheritGlobalContext?: boolean;
  extras?: string[];
  /** The parts of the role prompt in order, each with the file it stands in: its `@file` lines start there. */
  body: { text: string; file: string }[];
  /** Where it was first defined. */
  extensionSource: "bundled" | "project" | "global";
  /** The highest layer that overlays it. */
  overrideSource?: "project" | "global";
  /** Set when a file of a project has a part in it: the canonical folder of that project, which it serves alone. */
  projectCwd?: string;
}

/** What a definition says about tools, skills, extensions and context, the same everywhere. */
type Policy = Pick<
  Definition,
  | "model"
  | "thinking"
  | "noTools"
  | "noBuiltinTools"
  | "tools"
  | "excludeTools"
  | "noSkills"
  | "inheritSkills"
  | "skills"
  | "noExtensions"
  | "extensions"
  | "subagents"
  | "inheritProjectContext"
  | "inheritGlobalContext"
>;

/**
 * What goes to a backend, frozen when a worker is launched: the declared policy with everything that follows from it,
 * and the composed prompt. It is JSON.
 *
 * `tools`, when present, is the whole list of what the worker may call, `ask_owner` included; `noTools` then says
 * only why it is short. Without `tools` the backend's default set counts, less `excludeTools`.
 */
export interface LaunchPolicy extends Policy {
  name: string;
  systemPrompt: string;
  systemPromptMode: "append" | "replace";
  /** Whether the worker gets the `subagent` tool; `subagents` is then what it may start. */
  delegates: boolean;
}

/** A row of the roster that owners see. Source: the `subagent` API, "Agent-definition metadata". */
export interface DefinitionRow extends Omit<
  Policy,
  "noExtensions" | "extensions" | "inheritProjectContext" | "inheritGlobalContext"
> {
  name: string;
  extensionSource: Definition["extensionSource"];
  overrideSource?: NonNullable<Definition["overrideSource"]>;
  enabled?: false;
  description: string;
}

/** A row of the roster: the metadata of a definition, or what a function declares. */
export type AgentRow = DefinitionRow | { name: string; description: string; enabled?: false; subagents?: string[] };

/**
 * Whether workers of a definition may start workers of their own when the root starts them.
 *
 * They need somebody to start, and `subagent` must not be excluded. It need not be named: it comes with a non-empty
 * list of tools and with the default set. An empty list and `noTools` take it away, unless it is named.
 * Source: specification of definitions, tool inference.
 */
export function delegates({ subagents = [], tools, noTools, excludeTools = [] }: Definition): boolean {
  if (subagents.length === 0 || excludeTools.includes(SUBAGENT)) return false;
  if (tools?.includes(SUBAGENT)) return true;
  return noTools !== true && tools?.length !== 0;
}

/**
 * What a backend gets to launch a worker of a definition; `leaf` when a parent worker starts it, because a child
 * cannot delegate. The lists are copies, so that later changes of the definition do not reach it.
 */
export function policyOf(definition: Definition, options: { leaf: boolean; systemPrompt: string }): LaunchPolicy {
  const declared = options.leaf ? leafOf(definition) : definition;
  const mayDelegate = delegates(declared);
  const { name, systemPromptMode } = declared;
  return structuredClone(
    withoutUndefined({
      name,
      model: declared.model,
      thinking: declared.thinking,
      systemPrompt: options.systemPrompt,
      systemPromptMode,
      noTools: declared.noTools,
      noBuiltinTools: declared.noBuiltinTools,
      tools: callable(declared, mayDelegate),
      excludeTools: withoutAskOwner(declared.excludeTools),
      noSkills: declared.noSkills,
      inheritSkills: declared.inheritSkills,
      skills: declared.skills,
      noExtensions: declared.noExtensions,
      extensions: declared.extensions,
      inheritProjectContext: declared.inheritProjectContext,
      inheritGlobalContext: declared.inheritGlobalContext,
      subagents: mayDelegate ? declared.subagents : undefined,
      delegates: mayDelegate,
    }),
  ) as LaunchPolicy;
}

/**
 * A definition's row in the roster: declared policy, with `subagent` among the tools where it follows from
 * `subagents`, and without `ask_owner`, which is never a matter of policy. Unset fields are absent. A parent sees
 * its children as leaves: no `subagents`, no `subagent` tool.
 */
export function metadataOf(definition: Definition, options: { leaf: boolean }): DefinitionRow {
  const declared = options.leaf ? leafOf(definition) : definition;
  const { tools } = declared;
  const inferred = tools !== undefined && !tools.includes(SUBAGENT) && delegates(declared);
  return structuredClone(
    withoutUndefined({
      name: declared.name,
      extensionSource: declared.extensionSource,
      overrideSource: declared.overrideSource,
      enabled: declared.enabled ? undefined : false,
      description: declared.description,
      model: declared.model,
      thinking: declared.thinking,
      noTools: declared.noTools,
      noBuiltinTools: declared.noBuiltinTools,
      tools: inferred ? [...tools.filter(isPolicy), SUBAGENT] : tools?.filter(isPolicy),
      excludeTools: withoutAskOwner(declared.excludeTools),
      noSkills: declared.noSkills,
      inheritSkills: declared.inheritSkills,
      skills: declared.skills,
      subagents: declared.subagents,
    }),
  ) as DefinitionRow;
}

/** The same definition for a worker that may not delegate; a list of tools that this empties becomes `noTools`. */
function leafOf(definition: Definition): Definition {
  const { subagents: _, tools, ...leaf } = definition;
  const rest = tools?.filter((tool) => tool !== SUBAGENT);
  if (rest === undefined) return leaf;
  return tools?.length !== 0 && rest.length === 0 ? { ...leaf, noTools: true } : { ...leaf, tools: rest };
}

/** The whole list of tools where the definition restricts them, else undefined. */
function callable({ tools, noTools, excludeTools = [] }: Definition, mayDelegate: boolean): string[] | undefined {
  if (tools === undefined && noTools !== true) return undefined;
  // `noTools` leaves nothing of a list that a lower layer gave, except delegation that is named.
  const listed = noTools === true ? [] : (tools ?? []);
  const kept = listed.filter((tool) => {
    if (tool === ASK_OWNER) return true;
    return tool === SUBAGENT ? mayDelegate : !excludeTools.includes(tool);
  });
  return [...new Set([...kept, ...(mayDelegate ? [SUBAGENT] : []), ASK_OWNER])];
}

const isPolicy = (tool: string) => tool !== ASK_OWNER;

function withoutAskOwner(excluded: string[] | undefined): string[] | undefined {
  if (excluded?.includes(ASK_OWNER) !== true) return excluded;
  const rest = excluded.filter(isPolicy);
  return rest.length === 0 ? undefined : rest;
}
