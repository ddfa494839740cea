/**
 * A worker that is an agent of the AI SDK: `generateText` runs the loop, a middleware journals every call of the model.
 *
 * `AI_GATEWAY_API_KEY=… node ai-sdk.ts "Write a greeting"`, and in this repository as README.md says.
 */
import { gateway, generateText, isStepCount, tool, wrapLanguageModel, type LanguageModelMiddleware } from "ai";
import { tools, type AgentDefinition, type Json, type Worker } from "pi-herd";
import { z } from "zod";
import { runInTerminal } from "./support/terminal.ts";

export type Model = Parameters<typeof wrapLanguageModel>[0]["model"];
type Generated = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapGenerate"]>>>;

/**
 * An agent whose worker is `generateText`. After a crash the function starts from its first line: the SDK runs its
 * loop again over the journalled turns, unpaid, and comes to the same questions and children as before.
 */
export function textAgent(model: Model, { instructions, ...definition }: Omit<AgentDefinition, "run"> & Instructions) {
  const { subagents } = definition;

  async function run(task: string, worker: Worker): Promise<string> {
    // The tools that the model called in its last turn: ask_owner has to be alone in it.
    let batch: string[] = [];
    const middleware: LanguageModelMiddleware = {
      async wrapGenerate({ doGenerate }) {
        const call = async () => jsonOf(await doGenerate()) as unknown as Json;
        const generated = (await worker.step("model", call, { attempts: 3 })) as unknown as Generated;
        batch = generated.content.flatMap((part) => (part.type === "tool-call" ? [part.toolName] : []));
        return generated;
      },
    };
    const { text } = await generateText({
      model: wrapLanguageModel({ model, middleware }),
      instructions,
      prompt: task,
      tools: {
        ask_owner: tool({
          description: tools.askOwner.description,
          inputSchema: z.object({ question: z.string() }),
          async execute(input) {
            const asked = await worker.askOwnerTool(input, { batch });
            return asked.ok ? asked.answer : asked.error.message;
          },
        }),
        ...(subagents && { subagent: subagentTool(subagents, worker) }),
      },
      stopWhen: isStepCount(50),
      // The step tries again; tries of the SDK's would all lie in one try of the step's.
      maxRetries: 0,
      abortSignal: worker.signal,
    });
    return text;
  }
  return { ...definition, run } satisfies AgentDefinition;
}

type Instructions = { instructions: string };

/**
 * The model's `subagent` call starts a child and returns what became of it. A call that only started the child would
 * need further tools to wait and to read; this way the child's result is the tool's result, several calls of one turn
 * work side by side, and a crash in between finds the same child again.
 */
function subagentTool(agents: string[], worker: Worker) {
  return tool({
    description: "Have another worker do a task, and get its result. The task is all that it knows.",
    inputSchema: z.object({ agent: z.enum(agents), task: z.string() }),
    async execute({ agent, task }) {
      // What the child asks goes to the owner of its parent, and the answer comes down.
      const child = await worker.assign({ agent, task, onQuestion: worker.escalate });
      const { text, error } = await child.result();
      return error ? `The worker failed: ${error.message}` : text;
    },
  });
}

/** The part of a turn that the SDK goes on with: the request's and response's bodies repeat all that was said before. */
function jsonOf({ content, finishReason, usage, warnings, providerMetadata }: Generated): Generated {
  return { content, finishReason, usage, warnings, ...(providerMetadata && { providerMetadata }) };
}

/** A writer that asks its owner for the language and has a translator translate. */
export function agents(model: Model) {
  return {
    writer: textAgent(model, {
      description: "Writes a text",
      instructions: "Ask your owner once for the language, have the translator translate, and return the text alone.",
      subagents: ["translator"],
    }),
    translator: textAgent(model, {
      description: "Translates a text",
      instructions: "Translate what you are given, and return the translation alone.",
    }),
  };
}

if (process.argv[1] === import.meta.filename) {
  await runInTerminal("ai-sdk", agents(gateway(process.env["MODEL"] ?? "openai/gpt-5")));
}
