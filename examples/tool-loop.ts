/**
 * A model that works with tools inside a worker, without any SDK: the loop is `toolLoop`, the rest gives it a model
 * to talk to and somebody to answer it.
 *
 * `OPENAI_API_KEY=… node tool-loop.ts "Write a greeting"`, and in this repository as README.md says.
 */
import { HerdError, tools, type AgentDefinition, type Json, type ToolDefinition, type Worker } from "pi-herd";
import { runInTerminal } from "./support/terminal.ts";

export type ToolCall = { id: string; name: string; input: { [field: string]: Json } };
export type Turn = { text: string; toolCalls: ToolCall[] };
export type Message =
  | { role: "system" | "user"; content: string }
  | ({ role: "assistant" } & Turn)
  | { role: "tool"; id: string; content: string };

/** One call of a model, which is what costs money. */
export type Model = (request: { messages: Message[]; tools: ToolDefinition[]; signal: AbortSignal }) => Promise<Turn>;

/**
 * An agent whose worker is a model with tools. After a crash the function starts from its first line: the turns come
 * out of the journal, unpaid, and lead to the same questions and children as before.
 */
export function toolLoop(model: Model, { instructions, ...definition }: Omit<AgentDefinition, "run"> & Instructions) {
  const delegates = definition.subagents ? [subagentTool(definition.subagents)] : [];

  async function run(task: string, worker: Worker): Promise<string> {
    const messages: Message[] = [
      { role: "system", content: instructions },
      { role: "user", content: task },
    ];
    // After a crash all steers come again, from the first. Which of them a turn had heard is journalled with it, so
    // that the conversation stays word for word what the model was shown.
    const steers: string[] = [];
    let heard = 0;
    const listen = () => steers.push(...worker.steers().map(({ message }) => message));

    for (;;) {
      const { said, text, toolCalls } = await worker.step(
        "model",
        async () => {
          listen();
          const said = steers.slice(heard).map((content): Message => ({ role: "user", content }));
          const offered = [tools.askOwner, ...delegates];
          const turn = await model({ messages: [...messages, ...said], tools: offered, signal: worker.signal });
          return { said, ...turn };
        },
        { attempts: 3 },
      );
      heard += said.length;
      messages.push(...said, { role: "assistant", text, toolCalls });
      listen();
      if (toolCalls.length === 0 && steers.length === heard) return text;
      const batch = toolCalls.map(({ name }) => name);
      const answer = async (call: ToolCall): Promise<Message> => {
        return { role: "tool", id: call.id, content: await callTool(call, batch, worker) };
      };
      messages.push(...(await Promise.all(toolCalls.map(answer))));
    }
  }
  return { ...definition, run } satisfies AgentDefinition;
}

type Instructions = { instructions: string };

/** What a tool call gives the model. A tool of your own belongs into a `worker.step`, as the last case shows. */
async function callTool({ id, name, input }: ToolCall, batch: string[], worker: Worker): Promise<string> {
  if (name === "ask_owner") {
    const asked = await worker.askOwnerTool(input, { batch });
    return asked.ok ? asked.answer : asked.error.message;
  }
  if (name === "subagent") return delegate(input, worker);
  return worker.step(`tool ${id}`, () => `There is no tool "${name}".`);
}

/**
 * The model's `subagent` call starts a child and returns what became of it. A call that only started the child would
 * need further tools to wait and to read; this way the child's result is the tool's result, several calls of one turn
 * work side by side, and a crash in between finds the same child again.
 */
async function delegate({ agent, task }: ToolCall["input"], worker: Worker): Promise<string> {
  try {
    // What the child asks goes to the owner of its parent, and the answer comes down.
    const child = await worker.assign({ agent: String(agent), task: String(task), onQuestion: worker.escalate });
    const { text, error } = await child.result();
    return error ? `The worker failed: ${error.message}` : text;
  } catch (error) {
    // Words of the model's that make no assignment are the model's to correct.
    if (error instanceof HerdError && error.category === "invalid_request") return error.message;
    throw error;
  }
}

function subagentTool(agents: string[]): ToolDefinition {
  return {
    name: "subagent",
    description: "Have another worker do a task, and get its result. The task is all that it knows.",
    inputSchema: {
      type: "object",
      properties: { agent: { type: "string", enum: agents }, task: { type: "string" } },
      required: ["agent", "task"],
      additionalProperties: false,
    },
  };
}

/** A writer that asks its owner for the language and has a translator translate. */
export function agents(model: Model) {
  return {
    writer: toolLoop(model, {
      description: "Writes a text",
      instructions: "Ask your owner once for the language, have the translator translate, and return the text alone.",
      subagents: ["translator"],
    }),
    translator: toolLoop(model, {
      description: "Translates a text",
      instructions: "Translate what you are given, and return the translation alone.",
    }),
  };
}

/** Any service that speaks OpenAI's chat completions. */
function chatCompletions(url: string, key: string, model: string): Model {
  return async ({ messages, tools, signal }) => {
    const response = await fetch(`${url}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: messages.map(toChat), tools: tools.map(toFunction) }),
      signal,
    });
    if (!response.ok) throw new Error(`The model answered ${response.status}: ${await response.text()}`);
    const { choices } = (await response.json()) as { choices: [{ message: ChatMessage }] };
    const { content, tool_calls: calls = [] } = choices[0].message;
    const toolCalls = calls.map(({ id, function: { name, arguments: json } }) => ({
      id,
      name,
      input: JSON.parse(json) as ToolCall["input"],
    }));
    return { text: content ?? "", toolCalls };
  };
}

type ChatMessage = {
  content: string | null;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
};

function toChat(message: Message): object {
  if (message.role === "tool") return { role: "tool", tool_call_id: message.id, content: message.content };
  if (message.role !== "assistant") return message;
  const calls = message.toolCalls.map(({ id, name, input }) => ({
    id,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  return { role: "assistant", content: message.text, ...(calls.length > 0 && { tool_calls: calls }) };
}

function toFunction({ name, description, inputSchema }: ToolDefinition): object {
  return { type: "function", function: { name, description, parameters: inputSchema } };
}

if (process.argv[1] === import.meta.filename) {
  const { OPENAI_BASE_URL: url = "https://api.openai.com/v1", OPENAI_API_KEY: key = "", MODEL = "gpt-5" } = process.env;
  await runInTerminal("tool-loop", agents(chatCompletions(url, key, MODEL)));
}
