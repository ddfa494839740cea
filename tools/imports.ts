/**
 * Import direction: which folder may read which, and what else must stay where it belongs.
 *
 * `node tools/imports.ts` checks the repository, one line for each violation.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { findCircles, type Edge } from "./circles.ts";
import { references, type Reference, type SourceFile } from "./references.ts";
import { root } from "./run.ts";
import { closing, lineOf, scan, type Source } from "./source.ts";

export interface Violation {
  file: string;
  line: number;
  what: string;
  rule: string;
  mend: string;
}

/** The packages that `package.json` lists: what users get with the product, and what only this repository has. */
export interface Packages {
  published: ReadonlySet<string>;
  all: ReadonlySet<string>;
}

interface Module extends SourceFile {
  source: Source;
  references: Reference[];
}

interface Rule {
  rule: string;
  mend: string;
  /** What is wrong, with its position; nothing when the file keeps the rule. */
  find: (module: Module, packages: Packages) => { line: number; what: string }[];
}

const storePackages = new Set(["level", "abstract-level", "classic-level"]);
const machinePackages = new Set(["xstate", "zod"]);
const privateMembers = ["_snapshot", "_parent", "_syncSnapshot", "_processingStatus", "_stop", "_relay"];

/** The folders of the product, with the files that each may read in the others. */
const mayRead: Record<string, RegExp> = {
  machines: /^machines\//,
  runtime: /^(machines|runtime)\//,
  adapters: /^(machines\/|adapters\/|runtime\/(index|backend|client|visitor)\.ts$)/,
  visualizations: /^(machines\/|visualizations\/|runtime\/index\.ts$)/,
};
const published = new Set(["machines", "runtime", "adapters"]);
const folders = /^(machines|runtime|adapters|visualizations|test|bench|docs|examples|tools)\//;

const folderOf = (path: string) => path.split("/")[0] as string;
const among = (module: Module, wrong: (reference: Reference) => boolean) =>
  module.references.filter(wrong).map(({ line, specifier }) => ({ line, what: `imports "${specifier}"` }));

/** A folder of the product that reads a file which `mayRead` does not grant. */
function readsTooMuch(path: string, { target }: Reference): boolean {
  const allowed = mayRead[folderOf(path)];
  return target !== undefined && allowed !== undefined && folders.test(target) && !allowed.test(target);
}

const rules: Rule[] = [
  {
    rule: "machines import only themselves, xstate and zod",
    mend: "let the kernel bring it in an event, or move the code to runtime/",
    find: (module) =>
      among(module, ({ target, package: name }) => {
        if (folderOf(module.path) !== "machines") return false;
        return target === undefined ? !machinePackages.has(name ?? "") : !target.startsWith("machines/");
      }),
  },
  {
    rule: "imports point down only: adapters, then runtime, then machines",
    mend: "move the shared part down, or hand it in as an option",
    find: (module) => among(module, (it) => folderOf(module.path) === "runtime" && readsTooMuch(module.path, it)),
  },
  {
    rule: "adapters read runtime/index.ts, runtime/backend.ts, runtime/client.ts, runtime/visitor.ts and machines/ alone",
    mend: "export what is needed from one of the four",
    find: (module) => among(module, (it) => folderOf(module.path) === "adapters" && readsTooMuch(module.path, it)),
  },
  {
    rule: "visualizations read machines/ and runtime/index.ts alone",
    mend: "export what is needed from runtime/index.ts",
    find: (module) =>
      among(module, (it) => folderOf(module.path) === "visualizations" && readsTooMuch(module.path, it)),
  },
  {
    rule: "nothing is imported from outside the repository",
    mend: "add it to the repository or to package.json",
    find: (module) => among(module, ({ target }) => target?.startsWith("../") ?? false),
  },
  {
    rule: "only runtime/store knows the database",
    mend: "use the store port, runtime/store/store.ts",
    find: (module) =>
      among(module, ({ package: name }) => {
        if (module.path.startsWith("runtime/store/") || module.path === "bench/raw.ts") return false;
        return name !== undefined && storePackages.has(name);
      }),
  },
  {
    rule: "what is published imports only packages that users get with it",
    mend: "list it in package.json under dependencies, or as a peer",
    find: (module, packages) =>
      among(module, ({ package: name }) => {
        const folder = folderOf(module.path);
        if (name === undefined || name === "pi-herd" || folder === "machines") return false;
        return published.has(folder) && !packages.published.has(name);
      }),
  },
  {
    rule: "only packages that package.json lists are imported",
    mend: "list it in package.json",
    find: (module, packages) =>
      among(module, ({ package: name }) => {
        if (name === undefined || name === "pi-herd" || published.has(folderOf(module.path))) return false;
        return !packages.all.has(name);
      }),
  },
  {
    rule: "only examples and tests import the package by its name",
    mend: "import the file by its relative path, because dist/ may be missing or old",
    find: (module) => among(module, ({ package: name }) => name === "pi-herd" && folderOf(module.path) !== "examples"),
  },
  {
    rule: "XState's private members are touched in runtime/kernel alone",
    mend: "use a function of runtime/kernel, or add one there with a contract test",
    find: (module) => (module.path.startsWith("runtime/kernel/") ? [] : privateUses(module)),
  },
  {
    rule: "one observer sits on an actor system, the kernel's",
    mend: "listen to what the kernel gives out after the commit",
    find: (module) => (module.path.startsWith("runtime/kernel/") ? [] : inspections(module)),
  },
];

function privateUses({ text, source: { code, literals } }: Module) {
  const names = privateMembers.join("|");
  const found: { position: number; name: string }[] = [];
  const member = new RegExp(String.raw`\.\s*(${names})\b`, "g");
  const destructured = new RegExp(String.raw`\{[^{}()]*\b(${names})\b[^{}()]*\}\s*=(?![=>])`, "g");
  for (const pattern of [member, destructured]) {
    for (const match of code.matchAll(pattern)) found.push({ position: match.index, name: match[1] as string });
  }
  for (const match of code.matchAll(/[\w$)\]](?:\?\.)?\[(?=["'`])/g)) {
    const name = literals.get(match.index + match[0].length)?.raw;
    if (name && privateMembers.includes(name)) found.push({ position: match.index, name });
  }
  return found.map(({ position, name }) => ({ line: lineOf(text, position), what: `touches ${name}` }));
}

function inspections({ text, source: { code } }: Module) {
  const calls = [...code.matchAll(/\bsystem\s*(?:\?\.|\.)\s*inspect\s*\(/g)].map(({ index }) => index);
  const options = [...code.matchAll(/\bcreateActor\s*(?:<[^()]*>)?\(/g)].flatMap((match) => {
    const open = match.index + match[0].length - 1;
    const inspect = /\binspect\s*[:,}(]/.exec(code.slice(open, closing(code, open)));
    return inspect ? [open + inspect.index] : [];
  });
  return [...calls, ...options].map((position) => ({ line: lineOf(text, position), what: "inspects actors" }));
}

/** Tests may import anything; nothing is built from them. */
export function isTest(path: string): boolean {
  return path.startsWith("test/") || /\.(test|type-test)\.[cm]?[jt]s$/.test(path);
}

/** Every violation in these files, in the order of files and lines. */
export function checkImports(files: readonly SourceFile[], packages: Packages): Violation[] {
  const modules = files
    .filter(({ path }) => !isTest(path))
    .map((file): Module => {
      const source = scan(file.text);
      return { ...file, source, references: references(file.path, file.text, source) };
    });
  const violations = modules.flatMap((module) =>
    rules.flatMap(({ rule, mend, find }) =>
      find(module, packages).map((found) => ({ file: module.path, ...found, rule, mend })),
    ),
  );
  violations.push(...circles(modules));
  return violations.toSorted((a, b) => a.file.localeCompare(b.file) || a.line - b.line);
}

function circles(modules: readonly Module[]): Violation[] {
  const paths = new Set(modules.map(({ path }) => path));
  const edges = modules.flatMap(({ path, references: all }): Edge[] =>
    all.flatMap(({ target, line, typeOnly }) =>
      target !== undefined && paths.has(target) ? [{ from: path, to: target, line, typeOnly }] : [],
    ),
  );
  return findCircles(edges).map(({ edge, path, kind }) => ({
    file: edge.from,
    line: edge.line,
    what: `closes the circle ${path.join(" → ")}`,
    rule: kind === "value" ? "files do not import each other in circles" : "types do not circle across folders",
    mend: "move what both need into a file that imports neither",
  }));
}

/** A violation as one line. */
export function describe({ file, line, what, rule, mend }: Violation): string {
  return `${file}:${line}: ${what}. Rule: ${rule}. What to do: ${mend}.`;
}

/** The source files of the repository. */
export function readSources(folder = root): SourceFile[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return folders.test(`${entry.name}/`) ? readFolder(folder, entry.name) : [];
    return isSource(entry.name) ? [readSource(folder, entry.name)] : [];
  });
}

function readFolder(base: string, path: string): SourceFile[] {
  return readdirSync(join(base, path), { withFileTypes: true }).flatMap((entry) => {
    const inside = posix.join(path, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : readFolder(base, inside);
    return isSource(entry.name) ? [readSource(base, inside)] : [];
  });
}

const isSource = (name: string) => /\.[cm]?[jt]s$/.test(name);
const readSource = (base: string, path: string) => ({ path, text: readFileSync(join(base, path), "utf8") });

/** The packages that the repository's `package.json` lists. */
export function readPackages(): Packages {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
  const names = (...groups: (keyof Manifest)[]) => groups.flatMap((group) => Object.keys(manifest[group] ?? {}));
  const withProduct = names("dependencies", "peerDependencies", "optionalDependencies");
  return { published: new Set(withProduct), all: new Set([...withProduct, ...names("devDependencies")]) };
}

type Manifest = Partial<
  Record<"dependencies" | "peerDependencies" | "optionalDependencies" | "devDependencies", Record<string, string>>
>;

if (import.meta.main) {
  const files = readSources();
  const violations = checkImports(files, readPackages());
  for (const violation of violations) console.error(describe(violation));
  if (violations.length > 0) process.exitCode = 1;
  else console.log(`imports of ${files.length} files keep the rules`);
}
