/**
 * A worker that is an agent of the OpenAI Agents SDK: its runner runs the loop, a model provider journals every
 * response.
 *
 * `OPENAI_API_KEY=… node openai-agents.ts "Write a greeting"`, and in this repository as README.md says.
 */
import {
  Agent,
  OpenAIProvider,
  Runner,
  tool,
  Usage,
  type Model,
  type ModelProvider,
  type ModelResponse,
} from "@openai/agents";
import { tools, type AgentDefinition, type Json, type Worker } from "pi-herd";
import { z } from "zod";
import { runInTerminal } from "./support/terminal.ts";

/**
 * An agent whose worker is a run of the SDK's. After a crash the function starts from its first line: the runner runs
 * its loop again over the journalled turns, unpaid, and comes to the same questions and children as before.
 */
export function runnerAgent(
  provider: ModelProvider,
  { instructions, ...definition }: Omit<AgentDefinition, "run"> & { instructions: string },
) {
  const { subagents } = definition;

  async function run(task: string, worker: Worker): Promise<string> {
    // The tools that the model called in its last turn: ask_owner has to be alone in it.
    let batch: string[] = [];
    const askOwner = tool({
      name: tools.askOwner.name,
      description: tools.askOwner.description,
      parameters: z.object({ question: z.string() }),
      async execute(input) {
        const asked = await worker.askOwnerTool(input, { batch });
        return asked.ok ? asked.answer : asked.error.message;
      },
    });
    const agent = new Agent({
      name: "worker",
      instructions,
      tools: [askOwner, ...(subagents ? [subagentTool(subagents, worker)] : [])],
    });
    const runner = new Runner({
      modelProvider: {
        getModel: async (name) =>
          journalled(await provider.getModel(name), worker, (calls) => {
            batch = calls;
          }),
      },
      // Tracing sends what was said to a service, and sends it again after a crash.
      tracingDisabled: true,
    });
    const { finalOutput } = await runner.run(agent, task, { maxTurns: 50, signal: worker.signal });
    return finalOutput ?? "";
  }
  return { ...definition, run } satisfies AgentDefinition;
}

/** What a re-run gets of a response. The raw response that comes with it repeats all that was said before. */
type Kept = Pick<ModelResponse, "output" | "responseId"> & { usage: ConstructorParameters<typeof Usage>[0] };

/** A model whose every response is one step; `onTurn` is told the tools that a response calls. */
function journalled(model: Model, worker: Worker, onTurn: (calls: string[]) => void): Model {
  return {
    async getResponse(request) {
      const call = async () => {
        const { usage, output, responseId } = await model.getResponse(request);
        return { usage, output, ...(responseId && { responseId }) } as unknown as Json;
      };
      const response = (await worker.step("model", call, { attempts: 3 })) as unknown as Kept;
      onTurn(response.output.flatMap((item) => (item.type === "function_call" ? [item.name] : [])));
      // The runner adds usages up with methods, which JSON does not keep.
      return { ...response, usage: new Usage(response.usage) };
    },
    getStreamedResponse() {
      throw new Error("A stream cannot be journalled: run the agent without stream: true.");
    },
  };
}

/**
 * The model's `subagent` call starts a child and returns what became of it. A call that only started the child would
 * need further tools to wait and to read; this way the child's result is the tool's result, several calls of one turn
 * work side by side, and a crash in between finds the same child again.
 */
function subagentTool(agents: string[], worker: Worker) {
  return tool({
    name: "subagent",
    description: "Have another worker do a task, and get its result. The task is all that it knows.",
    parameters: z.object({ agent: z.enum(agents), task: z.string() }),
    async execute({ agent, task }) {
      // What the child asks goes to the owner of its parent, and the answer comes down.
      const child = await worker.assign({ agent, task, onQuestion: worker.escalate });
      const { text, error } = await child.result();
      return error ? `The worker failed: ${error.message}` : text;
    },
  });
}

/** A writer that asks its owner for the language and has a translator translate. */
export function agents(provider: ModelProvider) {
  return {
    writer: runnerAgent(provider, {
      description: "Writes a text",
      instructions: "Ask your owner once for the language, have the translator translate, and return the text alone.",
      subagents: ["translator"],
    }),
    translator: runnerAgent(provider, {
      description: "Translates a text",
      instructions: "Translate what you are given, and return the translation alone.",
    }),
  };
}

if (process.argv[1] === import.meta.filename) {
  await runInTerminal("openai-agents", agents(new OpenAIProvider()));
}
