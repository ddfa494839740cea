import { withoutUndefined } from "../errors.ts";
import type { Definition } from "./definition.ts";
import type { Finding } from "./finding.ts";
import type { Fields } from "./fields.ts";
import type { DefinitionFile } from "./parse.ts";

export type LayerName = "bundled" | "project" | "global";

/** A file in its layer. Of two layers the one with the higher `rank` overlays the other. */
export interface LayeredFile {
  layer: LayerName;
  rank: number;
  /** Project files only: the canonical folder of the project. */
  projectCwd?: string;
  content: DefinitionFile;
}

/**
 * Lays the files of one name over each other, the lowest layer first: a field that is given replaces, whole lists
 * too, and so does a body that is not blank (or it is appended: `bodyMode`). The order of the files does not count.
 *
 * One broken file disables the definition, whatever the others say: what its author wanted is not known. So do two
 * files in one layer.
 *
 * Source: specification of definitions, sources and precedence.
 * @returns the findings, and the definition unless the files overlay nothing: no prompt and no description anywhere.
 */
export function overlay(files: readonly LayeredFile[]): { definition?: Definition; findings: Finding[] } {
  const sorted = files.toSorted((a, b) => a.rank - b.rank || compare(a.content.file, b.content.file));
  const layers = sorted.filter((file, index) => file.rank !== sorted[index - 1]?.rank);
  const [first] = layers;
  if (first === undefined) return { findings: [] };
  const { name } = first.content;
  const findings = [...sorted.flatMap(({ content }) => content.findings), ...duplicates(sorted)];
  if (first.content.fields.bodyMode !== undefined) findings.push(bodyModeOnFirst(first.content));
  findings.push(...hidden(layers));

  const { fields, body } = merge(layers);
  const description = fields.description ?? firstLine(body);
  const disabled = findings.find(({ effect }) => effect === "disabled");
  if (description === undefined && disabled === undefined) return { findings: [...findings, nothing(first.content)] };
  const { bodyMode: _, ...policy } = fields;
  const definition = {
    ...policy,
    name,
    description: description ?? disabled?.message,
    enabled: disabled === undefined && fields.enabled !== false,
    systemPromptMode: fields.systemPromptMode ?? "append",
    body,
    extensionSource: first.layer,
    overrideSource: layers.length > 1 ? layers.at(-1)?.layer : undefined,
    projectCwd: layers.findLast(({ projectCwd }) => projectCwd !== undefined)?.projectCwd,
  };
  return { definition: withoutUndefined(definition) as Definition, findings };
}

/** Texts by their code units: the same order on every machine, whatever its language. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function merge(layers: readonly LayeredFile[]): { fields: Fields; body: Definition["body"] } {
  let fields: Fields = {};
  let body: Definition["body"] = [];
  for (const { content } of layers) {
    fields = { ...fields, ...content.fields };
    if (content.body.trim() === "") continue;
    const part = { text: content.body, file: content.file };
    body = content.fields.bodyMode === "append" ? [...body, part] : [part];
  }
  return { fields, body };
}

/** Which file hides what of which other file. */
function hidden(layers: readonly LayeredFile[]): Finding[] {
  const findings: Finding[] = [];
  const givenBy = new Map<string, LayeredFile[]>();
  for (const layered of layers) {
    const { fields, body, file, name } = layered.content;
    const given = Object.keys(fields).filter((field) => field !== "bodyMode");
    if (body.trim() !== "") given.push("body");
    const from = new Map<LayeredFile, string[]>();
    for (const field of given) {
      const below = givenBy.get(field) ?? [];
      const appends = field === "body" && fields.bodyMode === "append";
      if (!appends) for (const other of below) from.set(other, [...(from.get(other) ?? []), field]);
      givenBy.set(field, appends ? [...below, layered] : [layered]);
    }
    for (const [below, hiddenFields] of from) {
      findings.push({
        file: below.content.file,
        name,
        rule: "a higher layer overlays a lower one",
        effect: "hidden",
        message:
          `${file} (${layered.layer}) overlays ${below.content.file} (${below.layer}) of "${name}": ` +
          hiddenFields.join(", "),
      });
    }
  }
  return findings;
}

function duplicates(sorted: readonly LayeredFile[]): Finding[] {
  const rule = "a layer has one definition of a name";
  return sorted.flatMap(({ rank, content: { file, name } }) => {
    const inLayer = sorted.filter((other) => other.rank === rank).map(({ content }) => content.file);
    if (inLayer.length === 1) return [];
    const message = `"${name}" is disabled: it is defined twice in one layer, in ${inLayer.join(" and in ")}`;
    return [{ file, name, rule, effect: "disabled" as const, message }];
  });
}

function bodyModeOnFirst({ file, name }: DefinitionFile): Finding {
  const rule = "only a file that overlays another one has a bodyMode";
  const message = `"${name}" is disabled: ${file}: ${rule}, and this one overlays nothing`;
  return { file, name, field: "bodyMode", rule, effect: "disabled", message };
}

function nothing({ file, name }: DefinitionFile): Finding {
  const rule = "a first definition has a description or a role prompt";
  const message = `${file} is left out: it has neither a description nor a role prompt, and no "${name}" to overlay`;
  return { file, name, rule, effect: "ignored", message };
}

/** What stands in for a description: the first line of the role prompt, without marks of a heading. */
function firstLine(body: Definition["body"]): string | undefined {
  const lines = body.flatMap(({ text }) => text.split("\n")).map((line) => line.replace(/^\s*#+\s/, "").trim());
  const line = lines.find((it) => it !== "" && !it.startsWith("@"));
  return line !== undefined && line.length > 200 ? `${[...line].slice(0, 199).join("")}…` : line;
}
