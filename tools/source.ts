/**
 * A reading of TypeScript text that is good enough for rules about imports and test titles: it knows where comments,
 * strings, templates and regular expressions are, so that a pattern over the rest meets code alone.
 */

/** A string or template literal: `start` is its opening quote, `end` the position after its closing one. */
export interface Literal {
  start: number;
  end: number;
  /** What stands between the quotes, escapes and `${}` as written. */
  raw: string;
}

export interface Source {
  /**
   * The text at its full length, with comments, regular expressions and the insides of strings replaced by spaces.
   * Quotes, line ends and the code inside `${}` stay.
   */
  code: string;
  /** The literals by the position of their opening quote. */
  literals: Map<number, Literal>;
}

/** Words after which a slash begins a regular expression and not a division. */
const beforeRegex = new Set("return typeof case in of delete void throw new await yield else do instanceof".split(" "));

/** Separates the code of a file from its comments and literals. */
export function scan(text: string): Source {
  const code = text.split("");
  const literals = new Map<number, Literal>();
  /** Templates whose `${}` we are inside of, with the braces opened since. */
  const templates: { start: number; depth: number }[] = [];

  const blank = (from: number, to: number): number => {
    for (let i = from; i < to; i++) if (code[i] !== "\n") code[i] = " ";
    return to;
  };
  const keep = (start: number, end: number) => {
    literals.set(start, { start, end, raw: text.slice(start + 1, end - 1) });
    return end;
  };

  /** Reads template text from `from` to the closing quote or the next `${`; gives the position after it. */
  const template = (start: number, from: number): number => {
    for (let i = from; i < text.length; i++) {
      if (text[i] === "\\") i++;
      else if (text[i] === "`") {
        blank(from, i);
        return keep(start, i + 1);
      } else if (text[i] === "$" && text[i + 1] === "{") {
        blank(from, i);
        templates.push({ start, depth: 0 });
        return i + 2;
      }
    }
    return blank(from, text.length);
  };

  let at = text.startsWith("#!") ? blank(0, lineEnd(text, 0)) : 0;
  while (at < text.length) {
    const char = text[at];
    const inside = templates.at(-1);
    if (char === "/" && text[at + 1] === "/") at = blank(at, lineEnd(text, at));
    else if (char === "/" && text[at + 1] === "*") at = blank(at, after(text, "*/", at + 2));
    else if (char === '"' || char === "'") {
      const end = stringEnd(text, at);
      blank(at + 1, end - 1);
      at = keep(at, end);
    } else if (char === "`") at = template(at, at + 1);
    else if (char === "}" && inside?.depth === 0) {
      templates.pop();
      at = template(inside.start, at + 1);
    } else if (char === "/") {
      const end = mayBeginRegex(code, at) ? regexEnd(text, at) : undefined;
      at = end === undefined ? at + 1 : blank(at, end);
    } else {
      if (inside && char === "{") inside.depth++;
      if (inside && char === "}") inside.depth--;
      at++;
    }
  }
  return { code: code.join(""), literals };
}

/** The line, counted from 1, that a position lies on. */
export function lineOf(text: string, position: number): number {
  return text.slice(0, position).split("\n").length;
}

/** The position after the bracket that closes the one at `open`; the end of the code when none does. */
export function closing(code: string, open: number): number {
  let depth = 0;
  for (let at = open; at < code.length; at++) {
    const char = code[at] as string;
    if ("([{".includes(char)) depth++;
    else if (")]}".includes(char) && --depth === 0) return at + 1;
  }
  return code.length;
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}

function after(text: string, mark: string, from: number): number {
  const found = text.indexOf(mark, from);
  return found === -1 ? text.length : found + mark.length;
}

/** A string that its line does not close ends there: such text does not compile anyway. */
function stringEnd(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === text[start]) return i + 1;
    else if (text[i] === "\n") return i;
  }
  return text.length;
}

function mayBeginRegex(code: readonly string[], at: number): boolean {
  let i = at - 1;
  while (i >= 0 && /\s/.test(code[i] as string)) i--;
  if (i < 0) return true;
  if (!/[\w$]/.test(code[i] as string)) return !/[)\]"'`.]/.test(code[i] as string);
  const end = i + 1;
  while (i >= 0 && /[\w$]/.test(code[i] as string)) i--;
  return beforeRegex.has(code.slice(i + 1, end).join(""));
}

/** The position after a regular expression's flags, or undefined when the slash was a division after all. */
function regexEnd(text: string, start: number): number | undefined {
  let inClass = false;
  for (let i = start + 1; i < text.length; i++) {
    const char = text[i];
    if (char === "\n") return undefined;
    if (char === "\\") i++;
    else if (char === "[") inClass = true;
    else if (char === "]") inClass = false;
    else if (char === "/" && !inClass) {
      let end = i + 1;
      while (/[a-z]/.test(text[end] ?? "")) end++;
      return end;
    }
  }
  return undefined;
}
