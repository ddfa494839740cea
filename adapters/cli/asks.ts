import type { InboxEntry, Json, ParkedEntry } from "../../runtime/index.ts";
import { UsageError } from "./errors.ts";
import { quoted } from "../host/herd-command.ts";
import type { Reached } from "./reach.ts";
import { onceOpen } from "./resting.ts";
import { visible } from "./terminal/text.ts";

/** How an ask is shown, and how a word of a command line answers it. */

/** The part of an ask that says which answers fit. */
type Asked = Pick<ParkedEntry, "answerFormat" | "options" | "schema">;

/** Choices that are named, at most; a program may offer thousands. */
const MOST_CHOICES = 6;

/** What an ask wants for an answer, in words; empty when any text does. */
export function wantedBy({ answerFormat = "text", options = [], schema }: Asked): string {
  switch (answerFormat) {
    case "text":
      return options.length === 0 ? "" : `such as ${choicesOf(options)}`;
    case "confirm":
      return "true or false";
    case "select":
      return `one of ${choicesOf(options)}`;
    case "form": {
      const { properties = {} } = (schema ?? {}) as { properties?: object };
      const names = choicesOf(Object.keys(properties));
      return names === "" ? "an object" : `an object with ${names}`;
    }
    case "free":
      return "any JSON";
  }
}

/** An answer that fits, as it is typed into a shell. */
export function exampleFor({ answerFormat = "text", options: [first] = [] }: Asked): string {
  switch (answerFormat) {
    case "text":
      return typeof first === "string" ? quoted(first, { always: true }) : '"…"';
    case "confirm":
      return "true";
    case "select":
      return quoted(JSON.stringify(first));
    case "form":
      return quoted("{…}");
    case "free":
      return "JSON";
  }
}

/**
 * The answer that a word of a command line means: JSON. Where text is asked for, any words do: a JSON string is what it
 * says, and everything else the text as it stands.
 * @throws UsageError when something else is asked for and this is no JSON.
 */
export function answerIn(word: string, asked: Asked, command: string): Json {
  const json = jsonIn(word);
  const { answerFormat = "text", options } = asked;
  if (answerFormat === "text") return typeof json === "string" ? json : word;
  if (json !== undefined) return json;
  const asText = answerFormat === "free" || options?.includes(word) === true;
  const example = asText ? quoted(JSON.stringify(word)) : exampleFor(asked);
  throw new UsageError(
    `The answer must be JSON, ${wantedBy(asked)}; ${visible(word)} is none. Next: quote it as JSON: ${command} ${example}`,
  );
}

function jsonIn(word: string): Json | undefined {
  try {
    return JSON.parse(word) as Json;
  } catch {
    return undefined;
  }
}

/** What an ask says on one line: its question, or what stands in its place, and which answers fit. */
export function askedBy({ question = "", payload, ...ask }: Partial<ParkedEntry>): string {
  const says = question === "" ? JSON.stringify(payload) : (question.split("\n")[0] as string);
  const notes = [ask.to === "user" ? "a person" : "", wantedBy(ask)].filter((note) => note !== "");
  return visible(notes.length === 0 ? says : `${says} (${notes.join(": ")})`);
}

/** The deadline of an ask, to the second; empty for one without. */
export function untilOf({ expiresAt = "" }: Pick<ParkedEntry, "expiresAt">): string {
  return expiresAt.replace(/\.\d+Z$/, "Z");
}

/** An ask to a person as the entry that it is on its subject. */
export function entryOf({ askId, askedAt, agent: _agent, owner: _owner, ...ask }: InboxEntry): ParkedEntry {
  return { ...ask, id: askId, status: "asking", to: "user", createdAt: askedAt };
}

/** What somebody who answered is told. */
export function answeredText(who: string, { isRunning, directory }: Reached): string {
  return isRunning ? `Answered: ${who} goes on.` : `Stored: ${who} goes on with it ${onceOpen(directory)}`;
}

function choicesOf(choices: readonly Json[]): string {
  const named = choices.slice(0, MOST_CHOICES).map((choice) => JSON.stringify(choice));
  return [...named, ...(choices.length > MOST_CHOICES ? ["…"] : [])].join(", ");
}
