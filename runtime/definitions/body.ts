import { realpath } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { invalidRequest, messageOf } from "../errors.ts";
import { strictText } from "../evidence/evidence.ts";
import type { Definition } from "./definition.ts";
import { expandHome } from "../paths.ts";
import { readRegularFile } from "./folder.ts";

/** A line that is nothing but `@path`, or `@"path with spaces"`. Deeper indented lines are code to Markdown. */
const REFERENCE = /^ {0,3}@(?:"([^"]+)"|(\S+))[ \t]*$/;
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;

/**
 * The role prompt of a definition, its parts joined by a blank line. A line that consists of `@path` is replaced by
 * that file's text; the path starts in the folder of the file that has the line. A file comes in once, and not at
 * all when its canonical path is among `given`: the caller gives that one anyway. References in the files themselves
 * and in fenced code are text.
 *
 * Source: specification of files and message envelope, body references.
 * @throws HerdError `invalid_request` naming the definition, the line and the file, when it is missing, a folder or
 *   another special file, over the limit, not strict UTF-8, or holds NUL.
 */
export async function composeBody(definition: Definition, given: ReadonlySet<string>): Promise<string> {
  const used = new Set(given);
  const parts: string[] = [];
  for (const { text, file } of definition.body) {
    const lines: string[] = [];
    let fence: string | undefined;
    for (const line of text.split(/\r?\n/)) {
      const reference = fence === undefined ? REFERENCE.exec(line) : null;
      fence = fenceAfter(line, fence);
      if (reference === null) lines.push(line);
      else lines.push(...(await read(reference[1] ?? (reference[2] as string), file, definition.name, used)));
    }
    parts.push(withoutBlankEnds(lines.join("\n")));
  }
  return parts.filter((part) => part !== "").join("\n\n");
}

/** The fence that is open after a line of Markdown. */
function fenceAfter(line: string, open: string | undefined): string | undefined {
  const [, marks = "", rest = ""] = FENCE.exec(line) ?? [];
  if (marks === "") return open;
  if (open === undefined) return marks;
  return marks.startsWith(open) && rest.trim() === "" ? undefined : open;
}

async function read(path: string, from: string, name: string, used: Set<string>): Promise<string[]> {
  try {
    const canonical = await realpath(resolve(dirname(from), expandHome(path)));
    if (used.has(canonical)) return [];
    used.add(canonical);
    const text = strictText(await readRegularFile(canonical));
    if (text === undefined) throw new Error("it is not UTF-8 text without NUL");
    return [withoutBlankEnds(text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n"))];
  } catch (error) {
    throw invalidRequest(
      "assign",
      "unreadable_prompt_file",
      `The role prompt of "${name}" in ${from} refers to ${JSON.stringify(`@${path}`)}, which cannot be read: ${messageOf(error)}`,
      "correct that line or the file, or put the line into a code block if it is meant as text",
      { field: "agent", rule: "an @file line names a readable text file", cause: error },
    );
  }
}

function withoutBlankEnds(text: string): string {
  return text.replace(/^(?:[ \t]*\n)+/, "").trimEnd();
}
