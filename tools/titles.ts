/**
 * The titles of the tests in a file, and whether those tests run.
 */
import { closing, lineOf, scan, type Source } from "./source.ts";

export interface FoundTest {
  /** As written, a template with its `${}`. */
  title: string;
  line: number;
  /** `never` for skip, todo and expected failure; `sometimes` when a condition decides. */
  runs: "always" | "sometimes" | "never";
}

type Kind = "test" | "group";

/** A name that declares tests or groups of them: vitest's own, or one that the file derived from those. */
interface Declarer {
  kind: Kind;
  runs: FoundTest["runs"];
}

interface Declaration extends Declarer {
  start: number;
  end: number;
  title: string | undefined;
}

const own = Object.entries({ test: "test", it: "test", describe: "group", suite: "group" }) as [string, Kind][];
/** Modifiers that are called with something else before they are called with the title. */
const withArguments = new Set(["each", "for", "skipIf", "runIf", "extend", "override", "scoped"]);
const never = new Set(["skip", "todo", "fails"]);
const sometimes = new Set(["skipIf", "runIf"]);

/** Every test that the text declares with a literal title. */
export function findTests(text: string): FoundTest[] {
  const source = scan(text);
  const declarers = new Map<string, Declarer>(own.map(([name, kind]) => [name, { kind, runs: "always" }]));
  for (const [name, declarer] of derived(source, declarers)) declarers.set(name, declarer);
  const all = [...declarers].flatMap(([name, declarer]) => declarations(source, name, declarer));
  const groups = all.filter(({ kind }) => kind === "group");
  return all
    .filter((it) => it.kind === "test" && it.title !== undefined)
    .map(({ title, start, end, runs }) => ({
      title: title as string,
      line: lineOf(text, start),
      runs: groups.filter((it) => it.start < start && end <= it.end).reduce((so, it) => worse(so, it.runs), runs),
    }))
    .toSorted((a, b) => a.line - b.line);
}

/** `const e2e = test.skipIf(!tmux)`, `const mine = test.extend({ … })`, `const e2e = tmux ? test : test.skip`. */
function derived({ code, literals }: Source, declarers: ReadonlyMap<string, Declarer>): [string, Declarer][] {
  const found: [string, Declarer][] = [];
  for (const match of code.matchAll(/\b(?:const|let)\s+(\w+)\s*=\s*([^;]*?)\b(test|it|describe|suite)\b/g)) {
    const [whole, name, before, base] = match as unknown as [string, string, string, string];
    const declarer = declarers.get(base) as Declarer;
    if (/\?\s*$/.test(before)) found.push([name, { ...declarer, runs: "sometimes" }]);
    if (before !== "") continue;
    const { runs, at } = modifiers(code, literals, match.index + whole.length, declarer.runs);
    if (code[at] !== "(") found.push([name, { ...declarer, runs }]);
  }
  return found;
}

function declarations({ code, literals }: Source, name: string, declarer: Declarer): Declaration[] {
  return [...code.matchAll(new RegExp(String.raw`(?<![.\w$])${name}\b`, "g"))].flatMap((match) => {
    const start = match.index;
    const { runs, at } = modifiers(code, literals, start + name.length, declarer.runs);
    if (code[at] !== "(") return [];
    const end = closing(code, at);
    const literal = literals.get(skipSpace(code, at + 1));
    const sole = literal && /^\s*[,)]/.test(code.slice(literal.end));
    const rest = sole ? code.slice(literal.end, end) : "";
    return [
      {
        kind: declarer.kind,
        start,
        end,
        title: sole ? unescape(literal.raw) : undefined,
        runs: worse(runs, fromOptions(rest), declarer.kind === "test" ? fromBody(rest) : "always"),
      },
    ];
  });
}

/** Follows `.each([…]).skip` and the like from `at`; gives the position where the call with the title should be. */
function modifiers(code: string, literals: Source["literals"], from: number, initial: FoundTest["runs"]) {
  let runs = initial;
  let at = skipSpace(code, from);
  for (let name = match(code, /\.\s*(\w+)/y, at); name; name = match(code, /\.\s*(\w+)/y, at)) {
    const modifier = name[1] as string;
    if (never.has(modifier)) runs = "never";
    else if (sometimes.has(modifier)) runs = worse(runs, "sometimes");
    at = skipSpace(code, at + name[0].length);
    at += match(code, /<[^;]*?>\s*(?=[(`])/y, at)?.[0].length ?? 0;
    if (!withArguments.has(modifier)) continue;
    if (code[at] === "(") at = closing(code, at);
    else if (code[at] === "`") at = literals.get(at)?.end ?? at + 1;
    at = skipSpace(code, at);
  }
  return { runs, at };
}

/** `test("…", { skip: true }, …)`. */
function fromOptions(rest: string): FoundTest["runs"] {
  const options = /^\s*,\s*\{([^{}]*)\}/.exec(rest)?.[1] ?? "";
  if (/\b(skip|todo|fails)\s*:\s*true\b/.test(options)) return "never";
  return /\b(skip|todo|fails)\s*[:,}]/.test(options) ? "sometimes" : "always";
}

/** A test that may skip itself: `context.skip(…)`. */
function fromBody(rest: string): FoundTest["runs"] {
  return /\b(?:\w+\.)?skip\s*\(/.test(rest) ? "sometimes" : "always";
}

function worse(...all: FoundTest["runs"][]): FoundTest["runs"] {
  if (all.includes("never")) return "never";
  return all.includes("sometimes") ? "sometimes" : "always";
}

function match(code: string, pattern: RegExp, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(code);
}

const skipSpace = (code: string, at: number) => at + (match(code, /\s*/y, at)?.[0].length ?? 0);

const escapes: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", v: "\v", 0: "\0", "\n": "" };

/** What a literal's text means once its escapes are read. */
function unescape(raw: string): string {
  return raw.replaceAll(/\\(?:u\{([\da-f]+)\}|u([\da-f]{4})|x([\da-f]{2})|([\s\S]))/gi, (_, a, b, c, char: string) => {
    const point = a ?? b ?? c;
    return point === undefined ? (escapes[char] ?? char) : String.fromCodePoint(Number.parseInt(point, 16));
  });
}
