/** How the tests of the documentation read its pages. */
import { readFile } from "node:fs/promises";

export function page(name: string): Promise<string> {
  return readFile(new URL(`../../docs/${name}`, import.meta.url), "utf8");
}

/** The text under a heading of the second level, up to the next one. */
export function sectionOf(text: string, heading: string): string {
  const [, rest] = text.split(`\n## ${heading}\n`);
  if (rest === undefined) throw new Error(`the page has no heading "${heading}"`);
  return rest.split(/^## /m, 1)[0] as string;
}

/** The code in the first cell of every row of the tables in a text. */
export function firstCells(text: string): string[] {
  return [...text.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name as string);
}

/** The contents of fenced blocks; `info` is what stands after the fence. */
export function blocksOf(text: string, info: string): string[] {
  return fences(text)
    .filter((block) => block.info === info)
    .map((block) => block.content);
}

/** Every fenced block with the heading that it stands under. */
export function fences(text: string): { info: string; content: string; heading: string }[] {
  return [...text.matchAll(/^```(.+)\n([\s\S]*?)^```$/gm)].map(({ 1: info = "", 2: content = "", index }) => {
    const heading =
      text
        .slice(0, index)
        .match(/^#+ .*$/gm)
        ?.at(-1) ?? "";
    return { info, content, heading: heading.replace(/^#+ /, "") };
  });
}
