import type { AgentToolResult, ExtensionAPI, ToolDefinition } from "@earendil-works/pi-coding-agent";
import { HerdError, messageOf, tools, toolText } from "../../../runtime/client.ts";
import { gistOf, questionOf, type Looks } from "../looks.ts";

type Parameters = ToolDefinition["parameters"];

export interface RootTools {
  /** The name of our `subagent`. */
  name: string;
  looks: Looks;
  /** Carries out a call of `subagent`, or of one of the three parked tools. */
  subagent(request: Record<string, unknown>, callId: string, signal: AbortSignal | undefined): Promise<object>;
  parked(tool: string, input: object, signal: AbortSignal | undefined): Promise<unknown>;
}

/** The tools of an owner: `subagent` and those for what is parked. */
export function registerRootTools(pi: ExtensionAPI, { name, looks, subagent, parked }: RootTools): void {
  const taken = new Set(pi.getAllTools().map((tool) => tool.name));
  pi.registerTool({
    name,
    label: "Workers",
    description: tools.subagent.description,
    promptSnippet: "Delegate work to workers that run beside you, and answer their questions",
    promptGuidelines: [
      `After ${name} has assigned what there is to do, end your turn: results and questions arrive as messages. Do not poll.`,
      `When a worker asks what you cannot decide, ask the user before you reply with ${name}.`,
    ],
    parameters: tools.subagent.inputSchema as Parameters,
    exposure: "model-only",
    async execute(callId, params, signal) {
      return answered(() => subagent(params as Record<string, unknown>, callId, signal), toolText);
    },
    ...looks.tool(name, gistOf),
  });
  // A worker's session, which a person may open.
  looks.tool(tools.askOwner.name, questionOf);
  for (const tool of [tools.listParked, tools.resumeParked, tools.cancelParked]) {
    const own = taken.has(tool.name) ? `herd_${tool.name}` : tool.name;
    pi.registerTool({
      name: own,
      label: "Parked",
      description: tool.description,
      parameters: tool.inputSchema as Parameters,
      exposure: "model-only",
      async execute(_callId, params, signal) {
        return answered(
          () => parked(tool.name, params as object, signal),
          (answer) => JSON.stringify(answer, undefined, 2),
        );
      },
      ...looks.tool(own),
    });
  }
}

/** An answer as the model reads it; what is refused is an error that keeps its details. */
async function answered(
  call: () => Promise<unknown>,
  text: (answer: unknown) => string,
): Promise<AgentToolResult<unknown>> {
  try {
    const answer = await call();
    const isError = (answer as { ok?: unknown } | null)?.ok === false;
    return { content: [{ type: "text", text: text(answer) }], details: answer, ...(isError && { isError }) };
  } catch (error) {
    const details = error instanceof HerdError ? { ok: false, error: error.toJSON() } : {};
    return { content: [{ type: "text", text: messageOf(error) }], details, isError: true };
  }
}
