import { existsSync } from "node:fs";
import { join } from "node:path";
import type { DefinitionSource, Finding } from "../../runtime/index.ts";
import { agentDirectory } from "../host/place.ts";
import type { Examined } from "./doctor.ts";
import { trustIn } from "./pi-trust.ts";
import { countOf } from "./words.ts";

const NAME = "definitions";

/** What can be named in `tools` without an extension. Source: Pi's command line, and the tools of the herd. */
export const PI_TOOLS: readonly string[] = [
  ...["read", "bash", "powershell", "edit", "write", "grep", "find", "ls"],
  ...["codemode", "tool_search", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"],
];
const OURS = ["ask_owner", "subagent"];
/** A pattern, a change of the default selection, or a tool of an MCP server: nothing to be looked up. */
const NO_PLAIN_NAME = /\*|^[+-]|^mcp__/;

/** The agents that can be assigned here. What is switched off by a mistake is wrong; what has no effect is to be known. */
export async function examineDefinitions(): Promise<Examined[]> {
  const cwd = process.cwd();
  const project: DefinitionSource = { path: join(cwd, ".pi", "agents"), layer: "project", cwd, trusted: true };
  const leftOut = existsSync(project.path) ? await untrusted(cwd, project.path) : [];
  const isThere = existsSync(project.path) && leftOut.length === 0;
  const { readDefinitions } = await import("../../runtime/index.ts");
  const roster = await readDefinitions([join(agentDirectory(), "agents"), ...(isThere ? [project] : [])], cwd);
  const definitions = [...roster.definitions.values()];
  const says = `${countOf(definitions.length, "agent")}: ${definitions.map(({ name }) => name).join(", ")}`;
  const findings = roster.findings.filter(({ effect }) => effect !== "hidden");
  return [{ name: NAME, ok: true, says }, ...leftOut, ...findings.map(found), ...definitions.flatMap(unknownTools)];
}

/** Agents of a project that Pi does not trust are none that can be assigned. */
async function untrusted(cwd: string, path: string): Promise<Examined[]> {
  const trust = await trustIn(cwd, agentDirectory());
  if (trust === "trusted") return [];
  const why = trust === "not trusted" ? "Pi does not trust this project" : "Pi was not told yet to trust this project";
  const next = "if you trust it, open pi here and say so with /trust";
  return [{ name: NAME, ok: true, says: `${path} is left out: ${why}`, next }];
}

function found({ file, field, rule, effect, message }: Finding): Examined {
  const what = field === undefined ? "it" : `its field ${field}`;
  return { name: NAME, ok: effect !== "disabled", says: message, next: `correct ${what} in ${file}: ${rule}` };
}

/** Which tools there are is known in the worker, once its extensions are loaded. */
function unknownTools(definition: {
  name: string;
  tools?: string[];
  noExtensions?: boolean;
  extensions?: string[];
  body: { file: string }[];
}): Examined[] {
  const { name, tools = [], noExtensions = false, extensions = [], body } = definition;
  const unknown = tools.filter((tool) => ![...PI_TOOLS, ...OURS].includes(tool) && !NO_PLAIN_NAME.test(tool));
  if (unknown.length === 0) return [];
  const areNone = unknown.length === 1 ? "which is none of Pi's own" : "which are none of Pi's own";
  const says = `"${name}" has in its tools ${unknown.join(", ")}, ${areNone}`;
  const file = body.at(-1)?.file;
  const correct = `correct its field tools${file === undefined ? "" : ` in ${file}`}`;
  if (noExtensions && extensions.length === 0)
    return [{ name: NAME, ok: false, says: `${says}, and it loads no extension that could bring it`, next: correct }];
  return [{ name: NAME, ok: true, says, next: `${correct}, unless an extension brings what it names` }];
}
