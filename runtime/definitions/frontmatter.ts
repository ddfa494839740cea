import { parseDocument, type Document } from "yaml";
import { messageOf } from "../errors.ts";

/** Where the frontmatter of a text stands: `text.slice(start, end)` is its YAML, the body starts at `body`. */
export interface Frontmatter {
  start: number;
  end: number;
  body: number;
}

/**
 * Finds the block between the first line `---` and the next one.
 * @returns undefined when the text does not start with one; `unclosed` when it has no end.
 */
export function findFrontmatter(text: string): Frontmatter | "unclosed" | undefined {
  const opening = /^\uFEFF?---[ \t]*(?:\r?\n|$)/.exec(text);
  if (opening === null) return undefined;
  const start = opening[0].length;
  // Not the `m` flag: to it, a line also ends at characters that end no line of YAML.
  const closing = /(?<=\n)---[ \t]*(?:\r?\n|$)/g;
  closing.lastIndex = start;
  const found = closing.exec(text);
  return found === null ? "unclosed" : { start, end: found.index, body: found.index + found[0].length };
}

/** The YAML of a frontmatter, or in one sentence what is wrong with it. */
export type Yaml = { document: Document.Parsed; values: Map<unknown, unknown> } | { wrong: string };

/** Reads the YAML of a frontmatter. Nothing is thrown, whatever the text holds. */
export function readYaml(yaml: string): Yaml {
  try {
    const document = parseDocument(yaml, { logLevel: "silent" });
    const [error] = document.errors;
    if (error) return { wrong: error.message.split("\n", 1)[0] as string };
    // A map keeps keys apart that an object would not hold, such as `__proto__`.
    const values: unknown = document.toJS({ mapAsMap: true }) ?? new Map();
    return values instanceof Map ? { document, values } : { wrong: "it must consist of lines `field: value`" };
  } catch (error) {
    // Nesting beyond the stack, and aliases that multiply beyond measure.
    return { wrong: messageOf(error) };
  }
}
