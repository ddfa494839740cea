import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Definition } from "./definition.ts";
import type { Finding } from "./finding.ts";
import { expandHome } from "../paths.ts";
import { readDefinitionFolder } from "./folder.ts";
import { compare, overlay, type LayeredFile, type LayerName } from "./overlay.ts";
import { brokenFile, parseDefinition, type DefinitionFile } from "./parse.ts";
import { canonical, projectFolderOf, whyLeftOut, type DefinitionSource } from "./source.ts";

export type { Finding } from "./finding.ts";
export type { DefinitionSource } from "./source.ts";

export interface Roster {
  /** Every definition by its name, in the order of the names. */
  definitions: ReadonlyMap<string, Definition>;
  findings: readonly Finding[];
}

/** The folder of the definitions that come with the package; the lowest layer. */
export const bundledFolder: string = fileURLToPath(new URL("bundled", import.meta.url));

interface Folder {
  path: string;
  layer: LayerName;
  projectCwd?: string;
}

interface CachedFile {
  content: Buffer;
  parsed: DefinitionFile | Finding;
}

/** The agent definitions of some folders, over those that come with the package. */
export class Definitions {
  readonly #sources: readonly DefinitionSource[];
  /** What was parsed last, by path. Contents are compared, because times of files are too coarse to tell edits. */
  #files: ReadonlyMap<string, CachedFile> = new Map();
  #last: { made: string; parsed: readonly (DefinitionFile | Finding)[]; roster: Roster } | undefined;

  /**
   * @param sources a text is a global folder. Layers lie in this order, whatever the order here: bundled, project,
   *   global; of several global folders a later one overlays an earlier one.
   */
  constructor(sources: readonly (string | DefinitionSource)[]) {
    const given = sources.map((source) =>
      typeof source === "string" ? { path: source, layer: "global" as const } : source,
    );
    this.#sources = given.map((source) => ({ ...source, path: resolve(expandHome(source.path)) }));
  }

  /**
   * The roster as the files are now. Files that did not change are not parsed again, and while none of them changes
   * it is the same object. Whatever is wrong with a file or folder is a finding; nothing is thrown for it.
   */
  async current(): Promise<Roster> {
    const { folders, findings } = await this.#folders();
    const files = new Map<string, CachedFile>();
    const layered: LayeredFile[] = [];
    const noDefinitions: Finding[] = [];
    for (const [index, { path, layer, projectCwd }] of folders.entries()) {
      const inside = await readDefinitionFolder(path);
      findings.push(...inside.findings);
      for (const { file, content } of inside.files) {
        const parsed = this.#parse(file, content, files);
        if ("effect" in parsed) noDefinitions.push(parsed);
        else layered.push({ layer, rank: rankOf(layer, index), content: parsed, ...(projectCwd && { projectCwd }) });
      }
    }
    this.#files = files;
    const parsed = [...noDefinitions, ...layered.map(({ content }) => content)];
    const made = JSON.stringify([folders, findings]);
    const last = this.#last;
    if (last?.made === made && sameItems(last.parsed, parsed)) return last.roster;
    const roster = rosterOf(layered, [...findings, ...noDefinitions]);
    this.#last = { made, parsed, roster };
    return roster;
  }

  #parse(file: string, content: Buffer | { problem: string }, files: Map<string, CachedFile>) {
    if ("problem" in content) return brokenFile(file, "a definition file can be read", content.problem);
    const before = this.#files.get(file);
    const cached = before?.content.equals(content) ? before : { content, parsed: parseDefinition(file, content) };
    files.set(file, cached);
    return cached.parsed;
  }

  /** The folders that count, lowest layer first, each once. */
  async #folders(): Promise<{ folders: Folder[]; findings: Finding[] }> {
    const findings: Finding[] = [];
    const folders = new Map<string, Folder>([[bundledFolder, { path: bundledFolder, layer: "bundled" }]]);
    const layers = (["project", "global"] as const).flatMap((name) =>
      this.#sources.filter(({ layer }) => layer === name),
    );
    for (const source of layers) {
      const path = await canonical(source.path);
      if (path === undefined || folders.has(path)) continue;
      if (source.layer === "global") folders.set(path, { path, layer: "global" });
      else {
        const projectCwd = await projectFolderOf(source);
        const finding = await whyLeftOut(source, projectCwd);
        if (finding) findings.push(finding);
        else folders.set(path, { path, layer: "project", projectCwd });
      }
    }
    return { folders: [...folders.values()], findings };
  }
}

function rosterOf(layered: readonly LayeredFile[], before: readonly Finding[]): Roster {
  const findings = [...before];
  const definitions = new Map<string, Definition>();
  const byName = Map.groupBy(layered, ({ content }) => content.name);
  for (const name of [...byName.keys()].toSorted(compare)) {
    const result = overlay(byName.get(name) as LayeredFile[]);
    findings.push(...result.findings);
    if (result.definition) definitions.set(name, result.definition);
  }
  return { definitions, findings };
}

/** Every global folder is a layer of its own; projects share one, because none of them stands above another. */
function rankOf(layer: LayerName, index: number): number {
  if (layer === "bundled") return 0;
  return layer === "project" ? 1 : 2 + index;
}

function sameItems(before: readonly unknown[], now: readonly unknown[]): boolean {
  return before.length === now.length && before.every((item, index) => item === now[index]);
}
