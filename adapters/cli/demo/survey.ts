import { lstat, open } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { eachOf, foldersIn, walk, type WalkOptions } from "./walk.ts";

/** How much lies somewhere. */
export type Size = { files: number; bytes: number };

/** What a folder holds, seen from outside: its folders, biggest first, and the files that lie loose in it. */
export type Survey = {
  folders: ({ name: string } & Size)[];
  /** Folders beyond those that are listed. */
  smaller: { folders: number } & Size;
  loose: Size;
  /** Names of files in it that say what its owner leaves out elsewhere. */
  evidence: string[];
};

/** As many folders as one list can hold for a person to choose from. */
const LISTED = 200;

/** Files that are evidence for what is generated. */
const EVIDENCE = [".gitignore"];

/** Names that generated folders have, and what is in them. */
const generated = new Map(
  Object.entries({
    "build output": "dist build out target obj _build bazel-bin bazel-out .output storybook-static",
    "installed packages": "node_modules bower_components jspm_packages vendor Pods Carthage deps",
    "Python environment": ".venv venv site-packages .eggs",
    cache:
      ".cache .turbo .parcel-cache .gradle .terraform __pycache__ .mypy_cache .pytest_cache .ruff_cache .tox .nox .npm .yarn .pnpm-store .sass-cache",
    "framework output": ".next .nuxt .svelte-kit .angular .astro .docusaurus .expo DerivedData .dart_tool",
    "test coverage": "coverage htmlcov .nyc_output",
    "a herd's store": ".herd",
  }).flatMap(([what, names]) => names.split(" ").map((name) => [name, what] as const)),
);

/** What a folder of this name most likely holds that nobody wrote by hand. */
export function generatedKind(name: string): string | undefined {
  return generated.get(name);
}

/** The folders in `root` that look generated, in the order of the alphabet: what a person most likely leaves out. */
export async function generatedFolders(root: string, own?: string): Promise<string[]> {
  const names = await foldersIn(root);
  return names.filter((name) => generatedKind(name) !== undefined && join(root, name) !== own).toSorted();
}

/** Looks at a folder without reading any file. */
export async function survey(root: string, options: WalkOptions): Promise<Survey> {
  const sizes = new Map<string, Size>();
  const evidence: string[] = [];
  for await (const visit of walk(root, options)) {
    // The folder directly in `root`; empty for the root itself.
    const top = relative(root, visit.folder).split(sep)[0] ?? "";
    if ("unreadable" in visit && top === "") break;
    const size = sizes.get(top) ?? { files: 0, bytes: 0 };
    sizes.set(top, size);
    if ("unreadable" in visit) continue;
    if (top === "") evidence.push(...(await evidenceIn(root, visit.files)));
    await eachOf(visit.files, async (file) => {
      const bytes = await sizeOf(file);
      if (bytes === undefined) return;
      size.files++;
      size.bytes += bytes;
    });
  }
  const loose = sizes.get("");
  if (loose === undefined) throw new Error(`${root} is gone or cannot be read any more`);
  sizes.delete("");
  const folders = [...sizes]
    .map(([name, size]) => ({ name, ...size }))
    .toSorted((a, b) => b.bytes - a.bytes || b.files - a.files || a.name.localeCompare(b.name));
  return { folders: folders.slice(0, LISTED), smaller: sum(folders.slice(LISTED)), loose, evidence };
}

async function evidenceIn(root: string, files: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const name of EVIDENCE) {
    const path = join(root, name);
    if (files.includes(path) && (await isReadable(path))) found.push(name);
  }
  return found;
}

async function isReadable(path: string): Promise<boolean> {
  try {
    await (await open(path, "r")).close();
    return true;
  } catch {
    return false;
  }
}

function sum(sizes: readonly Size[]): Survey["smaller"] {
  const total = { folders: sizes.length, files: 0, bytes: 0 };
  for (const { files, bytes } of sizes) {
    total.files += files;
    total.bytes += bytes;
  }
  return total;
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await lstat(file)).size;
  } catch {
    return undefined;
  }
}
