/**
 * A model without a network, for trying things out and for tests: it does what a script in its conversation says, one
 * step for each message. It decides from the conversation alone, so a session that is opened again goes on where it was.
 *
 * A script begins with the line `SCRIPT`, in what a person or an owner said, or it is a story that is told for that text.
 * Its lines are the steps:
 *
 *   say TEXT              answers, which ends the turn; `{last}` is what was said to it last, `{end}` its last line
 *   call TOOL JSON        calls a tool; `{answer}` is what was said to it last
 *   calls [[TOOL, {}], …] calls several tools in one message
 *   error TEXT            ends with an error
 *   silence               answers nothing
 *   cut TEXT              answers, and reaches the limit of a message with that
 */
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { fauxAssistantMessage, fauxProvider, fauxText, fauxToolCall } from "@earendil-works/pi-ai";
import { stories } from "./story.ts";

interface Said {
  role: string;
  content: unknown;
}

/** @param more stories that it tells beside those for `npm run pi`. */
export default function scriptedModel(pi: ExtensionAPI, more: Record<string, string[]> = {}): void {
  const told = { ...stories, ...more };
  const faux = fauxProvider({
    provider: "scripted",
    api: "scripted",
    models: [{ id: "script", reasoning: true, contextWindow: 200_000, maxTokens: 8_192 }],
  });
  type Respond = Extract<Parameters<typeof faux.setResponses>[0][number], (...args: never[]) => unknown>;
  const respond: Respond = (context) => {
    // The queue is shifted once for each request.
    faux.appendResponses([respond]);
    return messageFor(context.messages as Said[], told);
  };
  faux.setResponses([respond]);
  pi.registerProvider(faux.provider);
}

function messageFor(messages: readonly Said[], told: Record<string, string[]>) {
  const at = messages.findLastIndex((said) => said.role === "user" && stepsIn(textOf(said), told) !== undefined);
  if (at === -1) return fauxAssistantMessage([fauxText("There is no script for this.")]);
  const steps = stepsIn(textOf(messages[at] as Said), told) as string[];
  const done = messages.slice(at + 1).filter(({ role }) => role === "assistant").length;
  const last = textOf(messages.at(-1) as Said);
  const [word = "say", rest = ""] = split(steps[done] ?? "say The script is over.");
  switch (word) {
    case "call": {
      const [tool, json] = split(rest);
      const input = json.replaceAll("{answer}", () => JSON.stringify(last).slice(1, -1));
      return fauxAssistantMessage([fauxToolCall(tool, JSON.parse(input || "{}"))], { stopReason: "toolUse" });
    }
    case "calls": {
      const calls = (JSON.parse(rest) as [string, object][]).map(([tool, input]) => fauxToolCall(tool, input as never));
      return fauxAssistantMessage(calls, { stopReason: "toolUse" });
    }
    case "error":
      return fauxAssistantMessage([], { stopReason: "error", errorMessage: rest });
    case "cut":
      return fauxAssistantMessage([fauxText(rest)], { stopReason: "length" });
    case "silence":
      return fauxAssistantMessage([fauxText(" ")]);
    default: {
      const end = last.trimEnd().split("\n").at(-1) ?? "";
      return fauxAssistantMessage([fauxText(rest.replaceAll("{last}", () => last).replaceAll("{end}", () => end))]);
    }
  }
}

/** The steps of the script in a text, or of the story that is told for it. */
function stepsIn(text: string, told: Record<string, string[]>): string[] | undefined {
  const lines = text.split("\n");
  const at = lines.findIndex((line) => line.trim() === "SCRIPT");
  return at === -1 ? told[text.trim()] : lines.slice(at + 1).filter((line) => line.trim() !== "");
}

function split(text: string): [string, string] {
  const [, word = "", rest = ""] = /^(\S+)\s*(.*)$/s.exec(text.trim()) ?? [];
  return [word, rest];
}

function textOf({ content }: Said): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const blocks = content as { type?: string; text?: string }[];
  return blocks.flatMap(({ type, text = "" }) => (type === "text" ? [text] : [])).join("\n");
}
