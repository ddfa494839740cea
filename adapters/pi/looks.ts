import type { AgentToolResult, Theme } from "@earendil-works/pi-coding-agent";
import type { Component } from "@earendil-works/pi-tui";
import { visible } from "../../runtime/client.ts";
import type { HerdDetails } from "./branch.ts";

/** What only Pi itself can give: the parts of its screen. */
export interface Parts {
  Box: typeof import("@earendil-works/pi-tui").Box;
  Markdown: typeof import("@earendil-works/pi-tui").Markdown;
  Spacer: typeof import("@earendil-works/pi-tui").Spacer;
  Text: typeof import("@earendil-works/pi-tui").Text;
  getMarkdownTheme: typeof import("@earendil-works/pi-coding-agent").getMarkdownTheme;
}

/** Lines of a message that are shown until somebody wants to see all of it. */
const SHORT_LINES = 6;

/** How what comes from the herd looks on the screen of Pi. */
export class Looks {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** A call of one of our tools. */
  call(tool: string, what: string | undefined, theme: Theme): Component {
    const name = theme.fg("toolTitle", theme.bold(tool));
    return new this.#parts.Text(what === undefined ? name : `${name} ${theme.fg("accent", oneLine(what, 200))}`, 0, 0);
  }

  /** What a call of `subagent` is about, while its arguments may still be coming in. */
  gist({ action, agent, label, session, task, message }: Record<string, unknown>): string | undefined {
    const parts = [action, agent ?? label ?? session, task ?? message].filter((part) => typeof part === "string");
    return parts.length === 0 ? undefined : parts.join(" · ");
  }

  /** What a call came to: its first lines, all of them when expanded. */
  outcome(result: AgentToolResult<unknown>, { expanded }: { expanded: boolean }, theme: Theme): Component {
    const text = result.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
    const colour = result.isError ? "error" : "muted";
    return new this.#parts.Text(theme.fg(colour, shortened(text, expanded)), 0, 0);
  }

  /** A list of workers, for people. */
  list(text: string): Component {
    return new this.#parts.Text(text, 1, 0);
  }

  /** A question or a result as an owner sees it, or what a worker was told. */
  message(
    details: HerdDetails | undefined,
    text: string,
    { expanded }: { expanded: boolean },
    theme: Theme,
  ): Component {
    const { Box, Markdown, Text, getMarkdownTheme } = this.#parts;
    const box = new Box(1, 1, (line) => theme.bg("customMessageBg", line));
    box.addChild(new Text(heading(details, theme), 0, 0));
    const body = bodyOf(details, text);
    box.addChild(new Markdown(shortened(body, expanded), 0, 0, getMarkdownTheme()));
    return box;
  }
}

const HEADINGS: Record<HerdDetails["kind"], (who: string) => string> = {
  task: () => "Your owner assigns",
  answer: () => "Your owner answers",
  resume: () => "Started again",
  steer: () => "Your owner says",
  question: (who) => `${who} asks`,
  result: (who) => `Result of ${who}`,
};

function heading(details: HerdDetails | undefined, theme: Theme): string {
  if (details === undefined) return theme.bold("herd");
  const { kind, label = "a worker", agent, status } = details;
  const who = agent === undefined || agent === label ? label : `${label} (${agent})`;
  const title = theme.fg(
    kind === "question" ? "warning" : "customMessageLabel",
    theme.bold(visible(HEADINGS[kind](who))),
  );
  if (status === undefined) return title;
  return `${title} ${theme.fg(status === "completed" ? "success" : "error", visible(status))}`;
}

/** The heading says what the model's header says. */
function bodyOf(details: HerdDetails | undefined, text: string): string {
  if (details?.kind !== "result" && details?.kind !== "question") return text;
  const end = text.indexOf("\n\n");
  return end === -1 ? text : text.slice(end + 2);
}

function shortened(text: string, expanded: boolean): string {
  const lines = text.trimEnd().split("\n");
  if (expanded || lines.length <= SHORT_LINES) return lines.join("\n");
  return [...lines.slice(0, SHORT_LINES), `… ${lines.length - SHORT_LINES} more lines (ctrl+o)`].join("\n");
}

function oneLine(text: string, longest: number): string {
  const line = visible(text.replace(/\s+/g, " ").trim());
  return line.length <= longest ? line : `${line.slice(0, longest - 1)}…`;
}
