import type { ExtensionAPI, ToolDefinition } from "@earendil-works/pi-coding-agent";
import { messageOf, tools, toolText } from "../../../runtime/client.ts";
import { gistOf, questionOf, type Looks } from "../looks.ts";

export interface WorkerTools {
  /** It may start workers of its own. */
  delegates: boolean;
  looks: Looks;
  /** @throws HerdError why it may not ask. */
  ask(request: object, signal: AbortSignal | undefined): Promise<{ askId: string; assignmentRequestId: string }>;
  subagent(request: object, signal: AbortSignal | undefined): Promise<object>;
}

type Parameters = ToolDefinition["parameters"];

/** `ask_owner`, and `subagent` for those who may start workers. */
export function registerWorkerTools(pi: ExtensionAPI, { delegates, looks, ask, subagent }: WorkerTools): void {
  const { askOwner } = tools;
  pi.registerTool({
    name: askOwner.name,
    label: "Ask the owner",
    description: askOwner.description,
    promptSnippet: "Ask your owner for a decision that you need, and stop until it is there",
    promptGuidelines: [
      "Call ask_owner alone: it has to be the only tool call of its message.",
      "Use ask_owner for decisions that only your owner can take; do not guess them.",
    ],
    parameters: askOwner.inputSchema as Parameters,
    exposure: "model-only",
    async execute(_id, params, signal) {
      try {
        const asked = await ask(params as object, signal);
        const text =
          "Your question is with your owner. Your task is blocked until the answer arrives as a message; your turn ends here.";
        return { content: [{ type: "text", text }], details: { ...asked, ...(params as object) }, terminate: true };
      } catch (error) {
        // What Pi makes an error of for the model, which goes on.
        throw new Error(messageOf(error), { cause: error });
      }
    },
    ...looks.tool(askOwner.name, questionOf),
  });
  if (!delegates) return;
  pi.registerTool({
    name: tools.subagent.name,
    label: "Workers",
    description: tools.subagent.description,
    promptSnippet: "Delegate work to other workers and answer their questions",
    promptGuidelines: ["After subagent has assigned what there is to do, end your turn: results arrive as messages."],
    parameters: tools.subagent.inputSchema as Parameters,
    exposure: "model-only",
    async execute(_id, params, signal) {
      const answer = await subagent(params as object, signal);
      const isError = (answer as { ok?: boolean }).ok === false;
      return { content: [{ type: "text", text: toolText(answer) }], details: answer, ...(isError && { isError }) };
    },
    ...looks.tool(tools.subagent.name, gistOf),
  });
}
