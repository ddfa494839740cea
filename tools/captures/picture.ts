import { element, text, type Markup } from "../../bench/svg.ts";
import { rowText, type Cell, type Screen, type Style } from "./screen.ts";

/** The grid, in pixels. */
const CELL = { width: 8, height: 18 } as const;
const MARGIN = 14;
/** Where letters stand in a row. */
const BASELINE = 13;
/** With which the letters of most such fonts are as wide as a cell. */
const FONT_SIZE = 13.3;
const FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace";
/** The terminal's own colours. */
const PAPER = "#18181e";
const INK = "#d4d4d4";

/** Cells beside each other that look the same. */
interface Run {
  column: number;
  width: number;
  words: string;
  style: Style;
}

/**
 * A picture of a screen: every run of cells has its place and its width, so that the grid holds with any font. The same
 * screen always gives the same picture.
 * @param title what it shows, for those who do not see it.
 */
export function pictureOf(screen: Screen, { title, columns }: { title: string; columns: number }): string {
  const [width, height] = [columns * CELL.width + 2 * MARGIN, screen.length * CELL.height + 2 * MARGIN];
  const papers = screen.flatMap((row, index) => papersOf(row, index));
  const rows = screen.flatMap((row, index) => rowOf(row, index) ?? []);
  const attributes = {
    xmlns: "http://www.w3.org/2000/svg",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": title,
    "font-family": FONT,
    "font-size": FONT_SIZE,
    fill: INK,
  };
  const board = element("rect", { width, height, rx: 8, fill: PAPER });
  const parts = [element("title", {}, text(title)), board, ...papers, ...rows];
  return `${element("svg", attributes, ...parts.map((part) => `\n${part}` as Markup), "\n" as Markup)}\n`;
}

/** The text that a picture shows, without blanks at the ends of lines and empty lines at its end. */
export function textIn(picture: string): string {
  const rows = [...picture.matchAll(/<text [^>]*data-row="(\d+)"[^>]*>(.*?)<\/text>/g)];
  const lines: string[] = [];
  for (const [, number = "", content = ""] of rows) {
    let line = "";
    for (const [, x = "", words = ""] of content.matchAll(/<tspan x="([\d.]+)"[^>]*>([^<]*)<\/tspan>/g)) {
      const column = (Number(x) - MARGIN) / CELL.width;
      line = line.padEnd(column) + plain(words);
    }
    lines[Number(number)] = line.trimEnd();
  }
  return Array.from(lines, (line) => line ?? "").join("\n");
}

function papersOf(row: readonly Cell[], index: number): Markup[] {
  return runsOf(row, (style) => paperOf(style)).flatMap(({ column, width, style }) => {
    const fill = paperOf(style);
    if (fill === undefined) return [];
    const place = { x: MARGIN + column * CELL.width, y: MARGIN + index * CELL.height };
    return element("rect", { ...place, width: width * CELL.width, height: CELL.height, fill });
  });
}

function rowOf(row: readonly Cell[], index: number): Markup | undefined {
  if (rowText(row).trim() === "") return undefined;
  const spans = runsOf(row, (style) => JSON.stringify(inkOf(style))).flatMap(spanOf);
  const y = MARGIN + index * CELL.height + BASELINE;
  return element("text", { y, "data-row": index, "xml:space": "preserve" }, ...spans);
}

/** Its blanks at both ends are nothing to draw, unless they are underlined. */
function spanOf({ column, words, width, style }: Run): Markup[] {
  const trimmed = style.underline ? words : words.trim();
  if (trimmed === "") return [];
  const before = style.underline ? 0 : words.length - words.trimStart().length;
  const after = style.underline ? 0 : words.length - words.trimEnd().length;
  const place = { x: MARGIN + (column + before) * CELL.width, textLength: (width - before - after) * CELL.width };
  return [element("tspan", { ...place, ...inkOf(style) }, text(trimmed))];
}

function inkOf({ ink, paper, bold, dim, italic, underline, inverse }: Style): Record<string, string | number> {
  const fill = inverse ? (paper ?? PAPER) : ink;
  return {
    ...(fill !== undefined && { fill }),
    ...(bold && { "font-weight": 700 }),
    ...(dim && { "fill-opacity": 0.6 }),
    ...(italic && { "font-style": "italic" }),
    ...(underline && { "text-decoration": "underline" }),
  };
}

function paperOf({ ink, paper, inverse }: Style): string | undefined {
  return inverse ? (ink ?? INK) : paper;
}

/** @param look what makes two cells look the same. */
function runsOf(row: readonly Cell[], look: (style: Style) => string | undefined): Run[] {
  const runs: Run[] = [];
  for (const [column, { text: char, style }] of row.entries()) {
    const last = runs.at(-1);
    if (last !== undefined && look(last.style) === look(style)) {
      last.width++;
      last.words += char;
    } else runs.push({ column, width: 1, words: char, style });
  }
  return runs;
}

function plain(markup: string): string {
  return markup.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
}
