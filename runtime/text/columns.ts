/** Code points that take two columns: East Asian Wide and Fullwidth, and the emoji blocks. Pairs of first and last. */
const WIDE = [
  0x1100, 0x115f, 0x2e80, 0x303e, 0x3041, 0x33ff, 0x3400, 0x4dbf, 0x4e00, 0xa4cf, 0xa960, 0xa97f, 0xac00, 0xd7a3,
  0xf900, 0xfaff, 0xfe10, 0xfe19, 0xfe30, 0xfe6f, 0xff00, 0xff60, 0xffe0, 0xffe6, 0x16fe0, 0x18dff, 0x1aff0, 0x1b2ff,
  0x1f300, 0x1f64f, 0x1f900, 0x1f9ff, 0x20000, 0x3fffd,
];
/** Shown in two columns: drawn as a picture by itself, or made one by the selector after it. */
const PICTURE = /^\p{Emoji_Presentation}|^\p{Extended_Pictographic}\ufe0f|\ufe0f\u20e3/u;
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+$/u;

let segmenter: Intl.Segmenter | undefined;

/** The segmenter is made when it is first needed: it takes a tenth of the time of the whole import. */
function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return segmenter.segment(text);
}

/** How many columns a terminal needs for a text without line ends. */
export function columnsOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of graphemesOf(text)) columns += columnsOfGrapheme(segment);
  return columns;
}

/** The text within so many columns, its end replaced by an ellipsis when it has more. Graphemes stay whole. */
export function fit(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  if (columns < 1) return "";
  let kept = "";
  let used = 1;
  for (const { segment } of graphemesOf(text)) {
    used += columnsOfGrapheme(segment);
    if (used > columns) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** The text in lines of at most so many columns, broken at spaces where there are some. Graphemes stay whole. */
export function wrap(text: string, columns: number): string[] {
  if (columnsOf(text) <= columns) return [text];
  const lines: string[] = [];
  let line = "";
  let used = 0;
  // Where the last space of the line is, to break there.
  let space = 0;
  for (const { segment } of graphemesOf(text)) {
    const wide = columnsOfGrapheme(segment);
    while (used + wide > columns && line !== "") {
      const at = segment === " " || space === 0 ? line.length : space;
      lines.push(withoutSpacesAtEnd(line.slice(0, at)));
      line = line.slice(at);
      used = columnsOf(line);
      space = 0;
    }
    if (line === "" && segment === " " && lines.length > 0) continue;
    // What is wider than a whole line has no place anywhere.
    const shown = wide > columns ? "…" : segment;
    line += shown;
    used += columnsOf(shown);
    if (segment === " ") space = line.length;
  }
  if (line !== "") lines.push(withoutSpacesAtEnd(line));
  return lines;
}

/** Only spaces: every other kind of white space is part of the text. */
function withoutSpacesAtEnd(line: string): string {
  return line.replace(/ +$/, "");
}

function columnsOfGrapheme(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0;
  if (PICTURE.test(grapheme)) return 2;
  const code = grapheme.codePointAt(0) as number;
  for (let i = 0; i < WIDE.length; i += 2) {
    if (code < (WIDE[i] as number)) return 1;
    if (code <= (WIDE[i + 1] as number)) return 2;
  }
  return 1;
}
