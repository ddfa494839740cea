/** What a terminal shows, read from its text with the sequences that colour it (`tmux capture-pane -p -e -N`). */

/** How a cell looks; colours as `#rrggbb`, undefined for the terminal's own. */
export interface Style {
  ink?: string | undefined;
  paper?: string | undefined;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  inverse?: boolean;
}

export interface Cell {
  /** What stands in it; nothing in the second cell of a wide character. */
  text: string;
  style: Style;
}

export type Screen = Cell[][];

/** The sixteen colours that have names. */
const NAMED =
  "1d1f21 cc6666 b5bd68 f0c674 81a2be b294bb 8abeb7 c5c8c6 767676 d54e53 b9ca4a e7c547 7aa6da c397d8 70c0b1 eaeaea"
    .split(" ")
    .map((hex) => `#${hex}`);
/** The steps of red, green and blue in the cube of 216 colours. */
const STEPS = [0, 95, 135, 175, 215, 255];

/** What a number of a sequence says, but for colours. */
const SAYS: Record<number, Style> = {
  0: { ink: undefined, paper: undefined, bold: false, dim: false, italic: false, underline: false, inverse: false },
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  39: { ink: undefined },
  49: { paper: undefined },
};

/** An escape sequence. One that says how text looks has its numbers in a group; the others show nothing here. */
const SEQUENCE =
  // oxlint-disable-next-line no-control-regex
  /\u001B(?:\[(?<numbers>[\d;:]*)m|\[[\d;:?]*[A-Za-ln-z]|\][^\u0007\u001B]*(?:\u0007|\u001B\\)|[()].|.)/gu;
const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });
/** What takes two cells: East Asian wide characters, and pictures. */
const WIDE =
  /^(?:\p{Emoji_Presentation}|.\uFE0F|[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}])/u;

/** Reads it, one list of cells a line. A style lasts over the ends of lines, as it does in a terminal. */
export function readScreen(text: string): Screen {
  let style: Style = {};
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => {
      const cells: Cell[] = [];
      let read = 0;
      for (const { 0: sequence, index, groups } of line.matchAll(SEQUENCE)) {
        cells.push(...cellsOf(line.slice(read, index), style));
        read = index + sequence.length;
        const numbers = groups?.["numbers"];
        if (numbers !== undefined) style = restyled(style, numbers);
      }
      cells.push(...cellsOf(line.slice(read), style));
      return cells;
    });
}

/** The text of it, without blanks at the ends of lines. */
export function textOf(screen: Screen): string {
  return screen.map(rowText).join("\n");
}

export function rowText(row: readonly Cell[]): string {
  return row
    .map(({ text }) => text)
    .join("")
    .trimEnd();
}

function cellsOf(text: string, style: Style): Cell[] {
  return [...graphemes.segment(text)].flatMap(({ segment }) => {
    const cell = { text: segment, style };
    return WIDE.test(segment) ? [cell, { text: "", style }] : [cell];
  });
}

function restyled(style: Style, parameters: string): Style {
  const numbers = parameters.split(/[;:]/).map(Number);
  const next = { ...style };
  while (numbers.length > 0) {
    const number = numbers.shift() as number;
    if (number === 38) next.ink = longColour(numbers);
    else if (number === 48) next.paper = longColour(numbers);
    else Object.assign(next, SAYS[number] ?? shortColour(number));
  }
  return next;
}

/** One of the sixteen, by the number of its own that it has as ink and as paper. */
function shortColour(number: number): Style {
  if (number >= 30 && number <= 37) return { ink: NAMED[number - 30] };
  if (number >= 40 && number <= 47) return { paper: NAMED[number - 40] };
  if (number >= 90 && number <= 97) return { ink: NAMED[number - 82] };
  if (number >= 100 && number <= 107) return { paper: NAMED[number - 92] };
  return {};
}

/** One of 256, or any; takes what it is told with off the list. */
function longColour(numbers: number[]): string | undefined {
  const kind = numbers.shift();
  if (kind === 2) return hex(numbers.splice(0, 3));
  if (kind !== 5) return undefined;
  const number = numbers.shift() ?? 0;
  if (number < 16) return NAMED[number];
  if (number >= 232) return hex(Array.from({ length: 3 }, () => 8 + 10 * (number - 232)));
  const place = number - 16;
  return hex([Math.floor(place / 36), Math.floor(place / 6) % 6, place % 6].map((step) => STEPS[step] as number));
}

function hex(parts: readonly number[]): string {
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}
