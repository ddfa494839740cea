/**
 * The pages of the reference as they are published: what typedoc wrote without what only repeats, and an index.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../run.ts";
import { anchorsOf, headingsOf, type Heading } from "./headings.ts";
import { document, entryPoints, type EntryPoint } from "./typedoc.ts";

const COMMAND = "npm run api";

/** The text of every page by the name of its file. */
export async function referencePages(): Promise<Map<string, string>> {
  const written = await document();
  const linked = new Set(
    [...written.values()].flatMap((text) => [...text.matchAll(/\]\([^)#]*#([^)]+)\)/g)].map(second)),
  );
  const pages = new Map<string, string>();
  for (const entry of entryPoints) {
    const name = `${entry.page}.md`;
    pages.set(name, withLinks(withTitle(withoutRepetition(written.get(name) ?? "", linked), entry)));
  }
  return new Map([["README.md", indexOf(pages)], ...pages]);
}

const second = ([, group = ""]: RegExpExecArray) => group;

/** Without return types that the signature has too, and without anchors that nothing leads to. */
function withoutRepetition(text: string, linked: ReadonlySet<string>): string {
  return text
    .replaceAll(/^#+ Returns\n\n[^\n]+\n\n(?=#|\*\*\*\n|$)/gm, "")
    .replaceAll(/^#+ (?:Overrides|Inherited from)\n\n[^\n]+\n\n/gm, "")
    .replaceAll(/<a id="([^"]+)"><\/a> /g, (anchor, id: string) => (linked.has(id) ? anchor : ""))
    .replaceAll(/^\| -+ (?:\| -+ )*\|$/gm, (line) => line.replaceAll(/-+/g, "---"));
}

/** typedoc counts some properties as headings, and then expects a number where there is none: the name says what is meant. */
function withLinks(text: string): string {
  const headings = headingsOf(text);
  const anchors = anchorsOf(text);
  return text.replaceAll(/\[`([^`]+)`\]\(#([\w-]+)\)/g, (link, name: string, anchor: string) => {
    if (anchors.includes(anchor) || text.includes(`<a id="${anchor}">`)) return link;
    const meant = anchors[headings.findIndex(({ level, title }) => level === 3 && title === name)];
    return meant === undefined ? link : `[\`${name}\`](#${meant})`;
  });
}

/** The page begins with what the file of its entry point begins with. */
function withTitle(text: string, { name, file }: EntryPoint): string {
  const source = readFileSync(join(root, file), "utf8");
  const docstring = /^\/\*\*([\s\S]*?)\*\//.exec(source)?.[1];
  if (docstring === undefined) throw new Error(`${file} does not begin with a docstring that says what it is for`);
  const about = docstring.replaceAll(/\s*\n \* ?/g, " ").trim();
  return `${text.replace(/^# .*\n/, `# \`${name}\`\n\n${about}\n\nWritten by \`${COMMAND}\` from the docstrings.\n`).trimEnd()}\n`;
}

/** Every export with the first sentence about it and its methods. */
function indexOf(pages: ReadonlyMap<string, string>): string {
  const tables = entryPoints.map(({ name, page }) => {
    const file = `${page}.md`;
    const rows = rowsOf(pages.get(file) as string, file);
    return [`## [\`${name}\`](${file})`, "", "| export | what it is | methods |", "| --- | --- | --- |", ...rows].join(
      "\n",
    );
  });
  const about = `Everything that the package exports, one page for each way in. Written by \`${COMMAND}\` from the docstrings.`;
  return `${["# API reference", about, ...tables].join("\n\n")}\n`;
}

function rowsOf(text: string, file: string): string[] {
  const headings = headingsOf(text);
  const anchors = anchorsOf(text);
  const link = (heading: Heading) =>
    `[\`${heading.title.replace(/\(\)\??$|\?$/, "")}\`](${file}#${anchors[headings.indexOf(heading)]})`;
  const exports = headings.filter(({ level }) => level === 3);
  return exports.map((heading, index) => {
    const end = exports[index + 1]?.at ?? text.length;
    const methods = headings.filter(
      (it) => it.level === 5 && it.at > heading.at && it.at < end && it.title.includes("()"),
    );
    return `| ${link(heading)} | ${firstSentence(text.slice(heading.at, end))} | ${methods.map(link).join(" ")} |`;
  });
}

/** Of the first paragraph below a heading that is no signature. */
function firstSentence(section: string): string {
  const paragraphs = section.split("\n\n").slice(1);
  const about = paragraphs.find((paragraph) => !/^>|^```/.test(paragraph)) ?? "";
  if (/^#|^\||^\*\*\*/.test(about)) return "";
  const sentence = about.replaceAll("\n", " ").replace(/(?<=[.:;]) (?=[A-Z]).*$/, "");
  return sentence.replace(/[:;]$/, ".");
}
