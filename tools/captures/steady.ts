import type { Cell, Screen } from "./screen.ts";

/** What is another one each time, and what stands for it. */
export interface Mask {
  pattern: RegExp;
  /** As long as what it replaces, or that stood in one row alone. */
  by: string;
}

/**
 * Replaces what differs from run to run. A long word is broken over rows that begin with a blank, so it is looked for in
 * the text of all rows without their ends.
 */
export function steady(screen: Screen, masks: readonly Mask[]): Screen {
  return masks.reduce(masked, screen);
}

function masked(screen: Screen, { pattern, by }: Mask): Screen {
  const rows = screen.map((row) => [...row]);
  const places = rows.flatMap((row, index) => inner(row).map((column) => ({ row: index, column })));
  const text = places.map(({ row, column }) => rows[row]?.[column]?.text || " ").join("");
  // From the end, so that what is still to come stays where it is.
  for (const { 0: found, index } of [...text.matchAll(pattern)].toReversed()) {
    const where = places.slice(index, index + found.length);
    const [first, last] = [where[0], where.at(-1)];
    if (first === undefined || last === undefined) continue;
    const { style } = (rows[first.row] as Cell[])[first.column] as Cell;
    if (found.length === by.length) {
      for (const [at, place] of where.entries())
        (rows[place.row] as Cell[])[place.column] = { text: by[at] as string, style };
    } else if (first.row === last.row) {
      const cells = [...by].map((char) => ({ text: char, style }));
      rows[first.row]?.splice(first.column, found.length, ...cells);
    } else throw new Error(`${JSON.stringify(found)} goes over several rows, and ${JSON.stringify(by)} is not as long`);
  }
  return rows;
}

/** The columns of a row without the blank before them and those after them. */
function inner(row: readonly Cell[]): number[] {
  const last = row.findLastIndex(({ text }) => text.trim() !== "");
  return Array.from({ length: Math.max(0, last) }, (_, index) => index + 1);
}
