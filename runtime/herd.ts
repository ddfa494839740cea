import type { Herd } from "./api.ts";
import type { DefinitionSource } from "./definitions/source.ts";
import type { AgentDefinition } from "./functions/agent.ts";
import { openHerd } from "./herd-instance.ts";
import type { HerdOptions } from "./options.ts";

/**
 * Opens a herd: the store, its agents, and whatever was under way when it was last closed or killed.
 * @throws HerdError `bad_option`, `bad_agent`, `store_locked`, `store_damaged`, `store_format`.
 */
export async function createHerd<
  const Agents extends Record<string, AgentDefinition>,
  const Files extends readonly (string | DefinitionSource)[] | undefined = undefined,
>(
  options: HerdOptions<Agents> & { definitions?: Files | (() => readonly (string | DefinitionSource)[]) } = {},
): Promise<Herd<AgentNames<Agents, Files>>> {
  return openHerd(options);
}

/** The names that can be assigned: what definition files define is not known before they are read. */
type AgentNames<Agents, Files> = [Files] extends [undefined] ? Extract<keyof Agents, string> : string;
