import type { Model } from "@openai/agents";
import type { AgentDefinition } from "pi-herd";

export const ANSWER = "Finnish";
export const RESULT = "Good morning is huomenta in Finnish.";
/** The model calls of one whole assignment, each once. */
export const CALLS = ["ask", "delegate", "translate", "conclude"];

export type Says = { call: string; id: string; input: { [field: string]: string } } | { text: string };

/** Told of every call of the model before it is answered: its name, and all that the model was given to read. */
export type OnCall = (name: string, prompt: string) => void;

/**
 * The model of all examples: what it says depends on what it reads alone, so that one that was not told the answer
 * asks again, and one that was not told the child's result delegates again.
 */
function scripted(prompt: unknown, onCall: OnCall): Says {
  const read = JSON.stringify(prompt);
  const [name, says] = next(read);
  onCall(name, read);
  return says;
}

function next(read: string): [name: string, says: Says] {
  if (read.includes("Translate what you are given")) return ["translate", { text: "huomenta" }];
  if (!read.includes(ANSWER)) {
    return ["ask", { call: "ask_owner", id: "call-1", input: { question: "In which language?" } }];
  }
  if (!read.includes("huomenta")) {
    const task = `Translate "Good morning" into ${ANSWER}`;
    return ["delegate", { call: "subagent", id: "call-2", input: { agent: "translator", task } }];
  }
  return ["conclude", { text: RESULT }];
}

export type ExampleName = "tool-loop" | "ai-sdk" | "openai-agents";
type Agents = { writer: AgentDefinition; translator: AgentDefinition };

/** The agents of each example, with the scripted model. A process loads the one that it runs. */
export const examples: Record<ExampleName, (onCall: OnCall) => Promise<Agents>> = {
  async "tool-loop"(onCall) {
    const { agents } = await import("../tool-loop.ts");
    return agents(async ({ messages }) => {
      const says = scripted(messages, onCall);
      if ("text" in says) return { text: says.text, toolCalls: [] };
      return { text: "", toolCalls: [{ id: says.id, name: says.call, input: says.input }] };
    });
  },

  async "ai-sdk"(onCall) {
    const { MockLanguageModelV4 } = await import("ai/test");
    const { agents } = await import("../ai-sdk.ts");
    const model = new MockLanguageModelV4({
      async doGenerate({ prompt }) {
        const says = scripted(prompt, onCall);
        const called = "call" in says;
        return {
          content: called
            ? [{ type: "tool-call", toolCallId: says.id, toolName: says.call, input: JSON.stringify(says.input) }]
            : [{ type: "text", text: says.text }],
          finishReason: { unified: called ? "tool-calls" : "stop", raw: undefined },
          usage: {
            inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
            outputTokens: { total: 1, text: 1, reasoning: 0 },
          },
          warnings: [],
          // What a service sends besides, which nobody needs again.
          response: { timestamp: new Date(), body: { prompt } },
        };
      },
    });
    return agents(model);
  },

  async "openai-agents"(onCall) {
    const { assistantMessage, functionCall } = await import("@openai/agents/testing");
    const { Usage } = await import("@openai/agents");
    const { agents } = await import("../openai-agents.ts");
    const model: Model = {
      async getResponse({ systemInstructions, input }) {
        const says = scripted([systemInstructions, input], onCall);
        const output =
          "text" in says ? assistantMessage(says.text) : functionCall(says.call, says.input, { callId: says.id });
        return { output: [output], usage: new Usage({ requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 }) };
      },
      getStreamedResponse() {
        throw new Error("nobody streams");
      },
    };
    return agents({ getModel: () => model });
  },
};
