import type { AgentToolResult, Theme, ToolRenderers } from "@earendil-works/pi-coding-agent";
import type { Component, MarkdownTheme } from "@earendil-works/pi-tui";
import { visible } from "../../runtime/client.ts";
import { HOW_TO_ANSWER, HOW_TO_GO_ON, type HerdDetails } from "./branch.ts";
import { HangingList } from "./hanging-list.ts";

/** What only Pi itself can give: the parts of its screen. */
export type Parts = Pick<typeof import("@earendil-works/pi-tui"), "Box" | "Markdown" | "Text">;

/** Lines that are shown until somebody wants to see all: of a message, of what a call came to, of a list. */
const SHORT_LINES = 8;
const OUTCOME_LINES = 1;
const LIST_LINES = 12;

/**
 * What a session draws with. It outlives the session: Pi draws one that is resumed or reloaded before its extensions hear
 * of it, and so before they have registered their tools.
 */
const drawn: { parts?: Parts; tools: Map<string, ToolRenderers> } = { tools: new Map() };

/** How what comes from the herd looks on the screen of Pi. */
export class Looks {
  readonly #load: () => Promise<Parts>;

  /** @param load loads the parts of Pi's screen. */
  constructor(load: () => Promise<Parts>) {
    this.#load = load;
  }

  /** Before anything is drawn; a session without a screen does without. */
  async ready(): Promise<void> {
    drawn.parts ??= await this.#load();
  }

  get #parts(): Parts {
    if (drawn.parts === undefined) throw new Error("nothing can be drawn before the parts of the screen are loaded");
    return drawn.parts;
  }

  /**
   * How a tool of ours is drawn.
   * @param gist what a call is about, from its arguments, which may still be coming in.
   */
  tool(name: string, gist?: (args: Record<string, unknown>) => string | undefined): ToolRenderers {
    const renderers: ToolRenderers = {
      renderCall: (args, theme) => this.#call(name, gist?.(args as Record<string, unknown>), theme),
      renderResult: (result, options, theme) => this.#outcome(result, options, theme),
    };
    drawn.tools.set(name, renderers);
    return renderers;
  }

  /** The same of a tool that a session of this Pi has registered before. */
  known(name: string): ToolRenderers | undefined {
    return drawn.parts && drawn.tools.get(name);
  }

  /** A call of one of our tools. */
  #call(tool: string, what: string | undefined, theme: Theme): Component {
    const name = theme.fg("toolTitle", theme.bold(tool));
    return new this.#parts.Text(what === undefined ? name : `${name} ${theme.fg("accent", oneLine(what, 200))}`, 0, 0);
  }

  /** What a call came to: its first lines, all of them when expanded. */
  #outcome(result: AgentToolResult<unknown>, { expanded }: { expanded: boolean }, theme: Theme): Component {
    const text = result.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
    const { isError, details } = result;
    const isList = Array.isArray((details as { workers?: unknown } | undefined)?.workers);
    const most = isError ? SHORT_LINES : isList ? LIST_LINES : OUTCOME_LINES;
    return new this.#parts.Text(theme.fg(isError ? "error" : "muted", shortened(text, expanded, most)), 0, 0);
  }

  /** A list of workers, for people. */
  list(text: string): Component {
    const { Box, Text } = this.#parts;
    const box = new Box(1, 0);
    box.addChild(new HangingList(text, Text));
    return box;
  }

  /** A question or a result as an owner sees it, or what a worker was told. */
  message(
    details: HerdDetails | undefined,
    text: string,
    { expanded }: { expanded: boolean },
    theme: Theme,
  ): Component {
    const { Box, Markdown, Text } = this.#parts;
    const box = new Box(1, 1, (line) => theme.bg("customMessageBg", line));
    box.addChild(new Text(heading(details, theme), 0, 0));
    const body = bodyOf(details, text);
    box.addChild(new Markdown(shortened(body, expanded, SHORT_LINES), 0, 0, markdownTheme(theme)));
    return box;
  }
}

/** What a call of `subagent` is about. */
export function gistOf({ action, agent, label, session, task, message }: Record<string, unknown>): string | undefined {
  const parts = [action, agent ?? label ?? session, task ?? message].filter((part) => typeof part === "string");
  return parts.length === 0 ? undefined : parts.join(" · ");
}

/** The same of `ask_owner`. */
export function questionOf({ question }: Record<string, unknown>): string | undefined {
  return typeof question === "string" ? question : undefined;
}

/** As Pi draws Markdown itself. */
function markdownTheme(theme: Theme): MarkdownTheme {
  const inColour = (colour: Parameters<Theme["fg"]>[0]) => (text: string) => theme.fg(colour, text);
  return {
    heading: inColour("mdHeading"),
    link: inColour("mdLink"),
    linkUrl: inColour("mdLinkUrl"),
    code: inColour("mdCode"),
    codeBlock: inColour("mdCodeBlock"),
    codeBlockBorder: inColour("mdCodeBlockBorder"),
    quote: inColour("mdQuote"),
    quoteBorder: inColour("mdQuoteBorder"),
    hr: inColour("mdHr"),
    listBullet: inColour("mdListBullet"),
    bold: (text) => theme.bold(text),
    italic: (text) => theme.italic(text),
    underline: (text) => theme.underline(text),
    strikethrough: (text) => theme.strikethrough(text),
  };
}

const HEADINGS: Record<HerdDetails["kind"], (who: string) => string> = {
  task: () => "Your owner assigns",
  answer: () => "Your owner answers",
  resume: () => "Started again",
  steer: () => "Your owner says",
  question: (who) => `${who} asks`,
  result: (who) => `Result of ${who}`,
  silence: (who) => `${who} is silent`,
  closed: (who) => `${who} was closed`,
};

function heading(details: HerdDetails | undefined, theme: Theme): string {
  if (details === undefined) return theme.bold("herd");
  const { kind, label = "a worker", agent, status } = details;
  const who = agent === undefined || agent === label ? label : `${label} (${agent})`;
  const title = theme.fg(
    kind === "question" || kind === "silence" ? "warning" : "customMessageLabel",
    theme.bold(visible(HEADINGS[kind](who))),
  );
  if (status === undefined) return title;
  return `${title} ${theme.fg(status === "completed" ? "success" : "error", visible(status))}`;
}

/** The heading says what the model's header says; what it can do about it is for the model alone. */
function bodyOf(details: HerdDetails | undefined, text: string): string {
  if (details?.kind === "silence") return text.split(HOW_TO_GO_ON, 1)[0] as string;
  if (details?.kind !== "result" && details?.kind !== "question") return text;
  const from = text.indexOf("\n\n");
  const to = details.kind === "question" ? text.lastIndexOf(HOW_TO_ANSWER) : -1;
  return text.slice(from === -1 ? 0 : from + 2, to === -1 ? undefined : to);
}

function shortened(text: string, expanded: boolean, most: number): string {
  const lines = text.trimEnd().split("\n");
  if (expanded || lines.length <= most) return lines.join("\n");
  return [
    ...lines.slice(0, most),
    ...(most > 1 ? [`… ${lines.length - most} more lines (ctrl+o shows them)`] : []),
  ].join("\n");
}

function oneLine(text: string, longest: number): string {
  const line = visible(text.replace(/\s+/g, " ").trim());
  return line.length <= longest ? line : `${line.slice(0, longest - 1)}…`;
}
