import { THINKING, type Definition } from "./definition.ts";

/** What one file may say, after reading: only what it does say. */
export type Fields = Partial<
  Omit<Definition, "body" | "extensionSource" | "overrideSource" | "projectCwd"> & { bodyMode: "append" | "replace" }
>;

interface Field {
  /** The values it takes, in the words of the message when it has another one. */
  rule: string;
  /** What the value means; undefined when the field does not take it. */
  read: (value: unknown) => Fields | undefined;
}

export const NAME_RULE = "up to 128 characters without slashes and control characters";

/** Whether a text can be a definition's name. It becomes part of file names, so it must not lead out of a folder. */
export function isName(text: string): boolean {
  return /^[^\p{Cc}/\\]{1,128}$/u.test(text) && text.trim() !== "" && !/^\.{1,2}$/.test(text);
}

/** Whether a text can be an argument of a command: not blank, no line breaks, no NUL. */
export function isLine(text: string): boolean {
  return text.trim() !== "" && !/\p{Cc}/u.test(text);
}

const text = (key: keyof Fields, rule: string, fits: (text: string) => boolean): Field => ({
  rule,
  read: (value) => (typeof value === "string" && fits(value.trim()) ? fieldsOf(key, value.trim()) : undefined),
});

const flag = (key: keyof Fields): Field => ({
  rule: "true or false",
  read: (value) => (typeof value === "boolean" ? fieldsOf(key, value) : undefined),
});

const choice = (key: keyof Fields, choices: readonly string[]): Field => ({
  rule: `one of ${choices.join(", ")}`,
  read: (value) => (choices.includes(value as string) ? fieldsOf(key, value) : undefined),
});

/** A YAML list, or its items in one text with commas between: agent files of other Pi extensions have both. */
const list = (key: keyof Fields): Field => ({
  rule: "a list of names, or names with commas between",
  read: (value) => {
    const items = typeof value === "string" ? value.split(",").filter((item) => item.trim() !== "") : value;
    if (!Array.isArray(items)) return undefined;
    if (!items.every((item): item is string => typeof item === "string" && isLine(item.trim()))) return undefined;
    return fieldsOf(key, [...new Set(items.map((item) => item.trim()))]);
  },
});

/** A field with further spellings that other extensions use. */
const also = (field: Field, spellings: (value: unknown) => Fields | undefined): Field => ({
  rule: field.rule,
  read: (value) => spellings(value) ?? field.read(value),
});

const inherited = (value: unknown) => (value === "inherit" ? {} : undefined);

/** `skills: false` says the same as `noSkills: true`. */
const switched = (key: "noSkills" | "noExtensions") => (value: unknown) =>
  typeof value === "boolean" ? { [key]: !value } : undefined;

/**
 * Every field of a definition file. The order counts where two fields say something about the same: the later wins.
 * Source: specification of definitions.
 */
const FIELDS: Record<keyof Fields, Field> = {
  name: text("name", NAME_RULE, isName),
  description: text("description", "text that is not blank", (it) => it !== ""),
  enabled: flag("enabled"),
  model: also(text("model", "one line of text", isLine), inherited),
  thinking: also(choice("thinking", THINKING), (value) => (value === false ? { thinking: "off" } : inherited(value))),
  systemPromptMode: choice("systemPromptMode", ["append", "replace"]),
  bodyMode: choice("bodyMode", ["append", "replace"]),
  tools: also(list("tools"), (value) => {
    if (value === "all" || value === "*") return {};
    return value === "none" ? { tools: [] } : undefined;
  }),
  noTools: flag("noTools"),
  noBuiltinTools: flag("noBuiltinTools"),
  excludeTools: list("excludeTools"),
  skills: also(list("skills"), switched("noSkills")),
  noSkills: flag("noSkills"),
  inheritSkills: flag("inheritSkills"),
  extensions: also(list("extensions"), switched("noExtensions")),
  noExtensions: flag("noExtensions"),
  subagents: list("subagents"),
  inheritProjectContext: flag("inheritProjectContext"),
  inheritGlobalContext: flag("inheritGlobalContext"),
  extras: list("extras"),
};

/** The names of all fields, in the order in which they are read. */
export const FIELD_NAMES = Object.keys(FIELDS) as (keyof Fields)[];

/**
 * What a value of a known field means. A blank value counts as not given.
 * @returns the fields it sets, or the rule that it breaks.
 */
export function readField(name: keyof Fields, value: unknown): Fields | { rule: string } {
  if (value === null || value === undefined) return {};
  const field = FIELDS[name];
  return field.read(value) ?? { rule: field.rule };
}

const fieldsOf = (key: keyof Fields, value: unknown): Fields => ({ [key]: value });
