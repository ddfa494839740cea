import { spawn, type ChildProcess } from "node:child_process";
import { piCli, until, type PiPlace } from "./folder.ts";

interface Message {
  role: string;
  customType?: string;
  content: unknown;
  details?: any;
  toolName?: string;
  isError?: boolean;
}

/** A Pi that a program talks to: a root session, over its own protocol. */
export class PiDriver {
  readonly child: ChildProcess;
  readonly place: PiPlace;
  /** Everything that it said, oldest first. */
  readonly said: Record<string, any>[] = [];
  stderr = "";
  #numbers = 0;

  constructor(place: PiPlace, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
    this.place = place;
    this.child = spawn(process.execPath, [piCli, "--mode", "rpc", ...args], {
      cwd: place.cwd,
      env: { ...place.env, ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    let rest = "";
    this.child.stdout?.setEncoding("utf8").on("data", (part: string) => {
      const lines = (rest + part).split("\n");
      rest = lines.pop() as string;
      for (const line of lines) if (line !== "") this.said.push(JSON.parse(line));
    });
    this.child.stderr?.setEncoding("utf8").on("data", (part: string) => (this.stderr += part));
    this.child.stdin?.on("error", () => undefined);
  }

  /** One of its commands, with its answer. */
  async ask(command: Record<string, unknown>): Promise<any> {
    const id = `c${++this.#numbers}`;
    this.child.stdin?.write(`${JSON.stringify({ id, ...command })}\n`);
    const answer = await until(
      () => this.said.find((said) => said["type"] === "response" && said["id"] === id),
      `an answer to ${String(command["type"])}; stderr: ${this.stderr}`,
    );
    if (answer["success"] !== true) throw new Error(`${String(command["type"])}: ${String(answer["error"])}`);
    return answer["data"];
  }

  /** Says something to the model, which follows the script. */
  async prompt(...steps: string[]): Promise<void> {
    // Its model comes from an extension, which may still be on its way.
    let model: unknown;
    const chosen = async () => {
      ({ model } = await this.state());
      return (model as { id?: string } | undefined)?.id === "script";
    };
    await until(chosen, () => `the scripted model instead of ${JSON.stringify(model)}; ${this.stderr}`);
    await this.ask({ type: "prompt", message: ["SCRIPT", ...steps].join("\n") });
  }

  async state(): Promise<any> {
    return this.ask({ type: "get_state" });
  }

  /** The messages that have ended, oldest first. */
  get messages(): Message[] {
    return this.said.filter((said) => said["type"] === "message_end").map((said) => said["message"] as Message);
  }

  /** What came from the herd. */
  herd(kind: string): Message[] {
    return this.messages.filter((message) => message.customType === "herd" && message.details?.kind === kind);
  }

  /** How often the model has come to rest. */
  get settled(): number {
    return this.said.filter((said) => said["type"] === "agent_settled").length;
  }

  /** The texts of the model. */
  get texts(): string[] {
    return this.messages
      .filter(({ role }) => role === "assistant")
      .map(textOf)
      .filter((text) => text !== "");
  }

  toolResults(name: string): Message[] {
    return this.messages.filter((message) => message.role === "toolResult" && message.toolName === name);
  }

  /** Ends it as a person does. */
  async quit(): Promise<void> {
    const over = new Promise((done) => this.child.once("close", done));
    this.child.stdin?.end();
    await over;
  }

  /** Ends it as a power cut does. */
  async kill(): Promise<void> {
    const over = new Promise((done) => this.child.once("close", done));
    this.child.kill("SIGKILL");
    await over;
  }
}

export function textOf({ content }: { content: unknown }): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .flatMap((block: { type?: string; text?: string }) => (block.type === "text" ? [block.text ?? ""] : []))
    .join("\n");
}

/** A call of `subagent` as a step of a script. */
export function subagent(request: object, tool = "subagent"): string {
  return `call ${tool} ${JSON.stringify(request)}`;
}

/** The task of a worker that follows these steps. */
export function task(...steps: string[]): string {
  return ["SCRIPT", ...steps].join("\n");
}
