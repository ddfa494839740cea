import { fileURLToPath } from "node:url";
import type { Definition } from "./definition.ts";
import type { Finding } from "./finding.ts";
import { readDefinitionFolder } from "./folder.ts";
import { compare, overlay, type LayeredFile, type LayerName } from "./overlay.ts";
import type { DefinitionFile } from "./parse.ts";
import { canonical, canonicalFolder } from "../paths.ts";
import { projectFolderOf, whyLeftOut } from "./project.ts";
import { SourceList, type DefinitionSource, type DefinitionSources } from "./source.ts";

export type { Finding } from "./finding.ts";
export type { DefinitionSource, DefinitionSources } from "./source.ts";

/** What definition files come to. */
export interface Roster {
  /** Every definition by its name, in the order of the names. */
  definitions: ReadonlyMap<string, Definition>;
  /** What is wrong with the files, or has no effect. */
  findings: readonly Finding[];
}

/** The folder of the definitions that come with the package; the lowest layer. */
export const bundledFolder: string = fileURLToPath(new URL("bundled", import.meta.url));

interface Folder {
  /** The path as its source has it. */
  source: string;
  /** Canonical. */
  path: string;
  layer: LayerName;
  projectCwd?: string;
}

type Parser = typeof import("./parse.ts");

interface CachedFile {
  content: Buffer;
  parsed: DefinitionFile | Finding;
}

/** What was read last for one project, or for all folders that are none. */
interface Made {
  from: string;
  parsed: readonly (DefinitionFile | Finding)[];
  roster: Roster;
}

/**
 * What the definition files of some folders come to, over those of the package, without a herd: every definition by its
 * name, and what is wrong with the files.
 * @param cwd where whoever looks works: of all projects only the one in this folder counts.
 */
export async function readDefinitions(sources: readonly (string | DefinitionSource)[], cwd?: string): Promise<Roster> {
  return new Definitions(sources).current(cwd);
}

/** The agent definitions of some folders, over those that come with the package. */
export class Definitions {
  readonly #sources: SourceList;
  /**
   * What was parsed last, by source and file: what one owner does not see stays for the others. Contents are compared,
   * because times of files are too coarse to tell edits.
   */
  readonly #files = new Map<string, ReadonlyMap<string, CachedFile>>();
  /** By the project's folder; "" for all that are none. */
  readonly #made = new Map<string, Made>();

  /**
   * @param sources a text is a global folder. Layers lie in this order, whatever the order here: bundled, project,
   *   global; of several global folders a later one overlays an earlier one.
   */
  constructor(sources: DefinitionSources) {
    this.#sources = new SourceList(sources);
  }

  /**
   * The roster as the files are now. Files that did not change are not parsed again, and while none of them changes
   * it is the same object. Whatever is wrong with a file or folder is a finding; nothing is thrown for it.
   * @param cwd where whoever looks works: of all projects only the one in this folder counts.
   */
  async current(cwd?: string): Promise<Roster> {
    // What reads YAML is loaded when there are definition files to read.
    const parser = await import("./parse.ts");
    const { sources, findings: aboutSources } = this.#sources.current();
    const placed = await placedIn(sources, cwd);
    this.#forget(placed);
    const { folders, findings: leftOut } = await this.#folders(placed);
    const findings = [...aboutSources, ...leftOut];
    const layered: LayeredFile[] = [];
    const noDefinitions: Finding[] = [];
    for (const [index, { source, path, layer, projectCwd }] of folders.entries()) {
      const inside = await readDefinitionFolder(path);
      findings.push(...inside.findings);
      const files = new Map<string, CachedFile>();
      for (const { file, content } of inside.files) {
        const parsed = this.#parse(parser, source, file, content, files);
        if ("effect" in parsed) noDefinitions.push(parsed);
        else layered.push({ layer, rank: rankOf(layer, index), content: parsed, ...(projectCwd && { projectCwd }) });
      }
      this.#files.set(source, files);
    }
    const parsed = [...noDefinitions, ...layered.map(({ content }) => content)];
    const from = JSON.stringify([folders, findings]);
    const project = placed.here ?? "";
    const last = this.#made.get(project);
    if (last?.from === from && sameItems(last.parsed, parsed)) return last.roster;
    const roster = rosterOf(layered, [...findings, ...noDefinitions]);
    this.#made.set(project, { from, parsed, roster });
    return roster;
  }

  #parse(
    parser: Parser,
    source: string,
    file: string,
    content: Buffer | { problem: string },
    files: Map<string, CachedFile>,
  ) {
    if ("problem" in content) return parser.brokenFile(file, "a definition file can be read", content.problem);
    const before = this.#files.get(source)?.get(file);
    const cached = before?.content.equals(content)
      ? before
      : { content, parsed: parser.parseDefinition(file, content) };
    files.set(file, cached);
    return cached.parsed;
  }

  /** Nothing is kept of sources that went away. */
  #forget({ sources, projects }: Placed): void {
    const paths = new Set([bundledFolder, ...sources.map(({ path }) => path)]);
    for (const path of this.#files.keys()) if (!paths.has(path)) this.#files.delete(path);
    for (const project of this.#made.keys()) if (project !== "" && !projects.has(project)) this.#made.delete(project);
  }

  /** The folders that count, lowest layer first, each once. */
  async #folders({ sources, projects, here }: Placed): Promise<{ folders: Folder[]; findings: Finding[] }> {
    const findings: Finding[] = [];
    const bundled: Folder = { source: bundledFolder, path: bundledFolder, layer: "bundled" };
    const folders = new Map<string, Folder>([[bundledFolder, bundled]]);
    const layers = (["project", "global"] as const).flatMap((name) => sources.filter(({ layer }) => layer === name));
    for (const source of layers) {
      const { layer } = source;
      const path = await canonical(source.path);
      if (path === undefined || folders.has(path)) continue;
      if (layer === "global") folders.set(path, { source: source.path, path, layer });
      else if (here !== undefined && projects.get(here)?.has(source)) {
        const finding = await whyLeftOut(source, here);
        if (finding) findings.push(finding);
        else folders.set(path, { source: source.path, path, layer, projectCwd: here });
      }
    }
    return { folders: [...folders.values()], findings };
  }
}

/** Sources as one who works in a folder sees them. */
interface Placed {
  sources: readonly DefinitionSource[];
  /** Those of projects, by the canonical folders of these. */
  projects: ReadonlyMap<string, ReadonlySet<DefinitionSource>>;
  /** The project in which that folder is, if it is one's own. */
  here: string | undefined;
}

async function placedIn(sources: readonly DefinitionSource[], cwd: string | undefined): Promise<Placed> {
  const projects = new Map<string, Set<DefinitionSource>>();
  for (const source of sources) {
    if (source.layer !== "project") continue;
    const project = await projectFolderOf(source);
    projects.set(project, (projects.get(project) ?? new Set()).add(source));
  }
  const folder = cwd === undefined ? undefined : await canonicalFolder(cwd);
  return { sources, projects, here: folder !== undefined && projects.has(folder) ? folder : undefined };
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

/** Every global folder is a layer of its own; those of a project share one, because none of them stands above another. */
function rankOf(layer: LayerName, index: number): number {
  if (layer === "bundled") return 0;
  return layer === "project" ? 1 : 2 + index;
}

function sameItems(before: readonly unknown[], now: readonly unknown[]): boolean {
  return before.length === now.length && before.every((item, index) => item === now[index]);
}
