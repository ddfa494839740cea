/**
 * Which other files and packages a source file refers to, by whatever spelling of import.
 */
import { isBuiltin } from "node:module";
import { posix } from "node:path";
import { lineOf, type Source } from "./source.ts";

export interface SourceFile {
  /** From the repository's root, with forward slashes. */
  path: string;
  text: string;
}

export interface Reference {
  line: number;
  /** As written between the quotes. */
  specifier: string;
  /** Gone at run time, because only types are imported. */
  typeOnly: boolean;
  /** The file that a relative specifier means, from the repository's root. */
  target?: string;
  /** The package that a bare specifier means, without its subpath. */
  package?: string;
  /** A module of Node itself. */
  builtin: boolean;
}

/** `import … from`, `export … from`; the clause is captured to see whether it is about types alone. */
const statement = /(?<![.\w$])(?:import|export)\b(?<clause>[\w$\s{},*]*?)\bfrom\s*(?=["'])/g;
const sideEffect = /(?<![.\w$])import\s*(?=["'])/g;
const call = /(?<![.\w$])(?:import|require)\s*\(\s*(?=["'`])/g;

/** Everything that a file imports, re-exports, imports on demand or requires, in the order of its lines. */
export function references(path: string, text: string, { code, literals }: Source): Reference[] {
  const found: Reference[] = [];
  const add = (start: number, quote: number, typeOnly: boolean) => {
    const specifier = literals.get(quote)?.raw;
    if (specifier !== undefined) found.push(resolve(path, specifier, lineOf(text, start), typeOnly));
  };
  for (const match of code.matchAll(statement)) {
    add(match.index, match.index + match[0].length, /^\s*type\s+[\w$*{]/.test(match.groups?.["clause"] ?? ""));
  }
  for (const match of code.matchAll(sideEffect)) add(match.index, match.index + match[0].length, false);
  for (const match of code.matchAll(call)) {
    const quote = match.index + match[0].length;
    add(match.index, quote, isTypePosition(code, match.index, literals.get(quote)?.end ?? quote));
  }
  return found.toSorted((a, b) => a.line - b.line);
}

/** `typeof import("x")` and `import("x").Name` are types; `await import("x")` and its like are not. */
function isTypePosition(code: string, start: number, end: number): boolean {
  return /\btypeof\s*$/.test(code.slice(0, start)) || /^\s*\)\s*\.\s*[A-Z]/.test(code.slice(end));
}

function resolve(path: string, specifier: string, line: number, typeOnly: boolean): Reference {
  const common = { line, specifier, typeOnly };
  if (specifier.startsWith(".")) {
    return { ...common, builtin: false, target: posix.join(posix.dirname(path), specifier) };
  }
  if (isBuiltin(specifier)) return { ...common, builtin: true };
  const parts = specifier.split("/");
  return { ...common, builtin: false, package: parts.slice(0, specifier.startsWith("@") ? 2 : 1).join("/") };
}
