import { randomUUID } from "node:crypto";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { isMap, isNode, isScalar, stringify, type Document } from "yaml";
import { invalidRequest, type HerdError } from "../errors.ts";
import { strictText } from "../evidence/evidence.ts";
import { isName, NAME_RULE, readField } from "./fields.ts";
import { readDefinitionFolder } from "./folder.ts";
import { findFrontmatter, readYaml } from "./frontmatter.ts";
import { brokenFile, parseDefinition } from "./parse.ts";

/** One field to set, or with `undefined` to take out so that the layers below count again. */
export interface OverrideChange {
  field: "model" | "thinking" | "enabled";
  value: string | boolean | undefined;
}

/** What `writeOverride` does, once it is its turn. */
export async function writeInto(folder: string, name: string, { field, value }: OverrideChange): Promise<void> {
  if (!isName(name)) throw refused("name", `"${name}" cannot be a definition's name`, `use ${NAME_RULE}`);
  const read = readField(field, value);
  if ("rule" in read) throw refused(field, `${field} cannot be ${JSON.stringify(value)}`, `use ${read.rule}`);
  const given = typeof value === "string" ? value.trim() : value;
  const found = await overlayOf(folder, name);
  if (found === undefined) {
    if (given === undefined) return;
    await mkdir(folder, { recursive: true });
    const file = await freePath(folder, name);
    await replaceFile(file, `---\n${lineOf("name", name)}\n${lineOf(field, given)}\n---\n`);
    return;
  }
  const changed = found.text === undefined ? undefined : changedText(found.text, field, given);
  if (changed === undefined) {
    throw refused(
      field,
      `The frontmatter of ${found.file} is not written as one line for ${field}`,
      `change ${field} in ${found.file} by hand`,
    );
  }
  if (changed !== found.text) await replaceFile(found.file, changed);
}

/** The one file of a folder that has a name, with its text when it is text. */
async function overlayOf(
  folder: string,
  name: string,
): Promise<{ file: string; text: string | undefined } | undefined> {
  const { files } = await readDefinitionFolder(folder);
  const found: { file: string; text: string | undefined }[] = [];
  for (const { file, content } of files) {
    const unreadable = "problem" in content;
    const parsed = unreadable ? brokenFile(file, "it can be read", content.problem) : parseDefinition(file, content);
    if ("effect" in parsed || parsed.name !== name) continue;
    // Text that was decoded loosely would not be written back byte for byte.
    found.push({ file, text: unreadable ? undefined : strictText(content) });
  }
  if (found.length > 1) {
    const names = found.map(({ file }) => file).join(" and ");
    throw refused("name", `"${name}" is defined twice, in ${names}`, "take one of them away");
  }
  return found[0];
}

/**
 * The text with one field of its frontmatter changed; undefined when that cannot be done on a line of its own. The
 * outcome is read again and must differ in this field alone, so that no way of writing YAML can be damaged.
 */
function changedText(text: string, field: string, value: string | boolean | undefined): string | undefined {
  const frontmatter = findFrontmatter(text);
  if (frontmatter === undefined || frontmatter === "unclosed") return undefined;
  const yaml = readYaml(text.slice(frontmatter.start, frontmatter.end));
  if ("wrong" in yaml) return undefined;
  const expected = new Map(yaml.values);
  if (value === undefined) expected.delete(field);
  else expected.set(field, value);
  if (isDeepStrictEqual(expected, yaml.values)) return text;

  const place = placeOf(yaml.document, field);
  const [from, to] = place
    ? [frontmatter.start + place[0], frontmatter.start + place[1]]
    : [frontmatter.end, frontmatter.end];
  const eol = /\r?\n/.exec(text)?.[0] ?? "\n";
  const changed =
    value === undefined
      ? text.slice(0, text.lastIndexOf("\n", from - 1) + 1) + text.slice(lineEnd(text, to))
      : text.slice(0, from) + lineOf(field, value) + (text[to - 1] === "\n" ? eol : "") + text.slice(to);

  const after = findFrontmatter(changed);
  if (after === undefined || after === "unclosed") return undefined;
  const outcome = readYaml(changed.slice(after.start, after.end));
  const fits = !("wrong" in outcome) && isDeepStrictEqual(outcome.values, expected);
  return fits && changed.slice(after.body) === text.slice(frontmatter.body) ? changed : undefined;
}

/** From the start of a field's key to the end of its value, comments after it not included. */
function placeOf(document: Document.Parsed, field: string): [number, number] | undefined {
  if (!isMap(document.contents)) return undefined;
  const pair = document.contents.items.find(({ key }) => isScalar(key) && key.value === field);
  if (pair === undefined || !isNode(pair.key) || !pair.key.range) return undefined;
  const [from, keyEnd] = pair.key.range;
  if (!isNode(pair.value) || !pair.value.range) return [from, keyEnd];
  const [valueStart, valueEnd] = pair.value.range;
  // A value that is not there ends with the colon: what follows may be a comment, which needs its space.
  return [from, valueStart === valueEnd ? keyEnd + 1 : valueEnd];
}

/** Where the line ends that a place is in, its line break included. */
function lineEnd(text: string, place: number): number {
  // The place of a value of several lines may be the start of the next line already.
  return text[place - 1] === "\n" ? place : text.indexOf("\n", place) + 1;
}

function lineOf(field: string, value: string | boolean): string {
  return `${field}: ${stringify(value, { lineWidth: 0 }).trimEnd()}`;
}

/** Names that Windows keeps for devices, with any ending. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/i;

/** A path for a new definition file, close to its name, possible on every system and not taken. */
async function freePath(folder: string, name: string): Promise<string> {
  const plain = name
    .replace(/[^\p{L}\p{N}._-]+/gu, "-")
    .replace(/^\./, "-")
    .replace(DEVICE, "$1-");
  const stem = /\.example$/i.test(plain) ? `${plain}-` : plain;
  for (let n = 1; ; n++) {
    const path = join(folder, `${n === 1 ? stem : `${stem}-${n}`}.md`);
    const exists = await stat(path).then(
      () => true,
      () => false,
    );
    if (!exists) return path;
  }
}

/** Puts a text in the place of a file at once, with the permissions that the file had. */
async function replaceFile(file: string, text: string): Promise<void> {
  const mode = await stat(file).then(
    (stats) => stats.mode,
    () => undefined,
  );
  const temporary = join(dirname(file), `.${basename(file)}.${randomUUID()}.tmp`);
  const handle = await open(temporary, "wx");
  try {
    if (mode !== undefined) await handle.chmod(mode);
    await handle.writeFile(text);
    await handle.sync();
    await handle.close();
    await rename(temporary, file);
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(temporary, { force: true });
    throw error;
  }
}

function refused(field: string, message: string, nextAction: string): HerdError {
  return invalidRequest("overrides", "bad_override", message, nextAction, { field });
}
