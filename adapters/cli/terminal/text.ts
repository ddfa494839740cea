import { columnsOf, visible } from "../../../runtime/visitor.ts";

export { columnsOf, fit, visible } from "../../../runtime/visitor.ts";

/** The text filled with spaces to so many columns. */
export function pad(text: string, columns: number, side: "left" | "right" = "right"): string {
  const space = " ".repeat(Math.max(0, columns - columnsOf(text)));
  return side === "right" ? text + space : space + text;
}

/** Several lines from outside: each one visible, the line ends as they are. */
export function visibleLines(text: string): string {
  return text.split(/\r?\n/).map(visible).join("\n");
}

/** Columns of equal width, two spaces apart; those named in `right` end instead of begin together. */
export function table(rows: readonly (readonly string[])[], right: ReadonlySet<number>): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, columnsOf(cell));
  }
  return rows.map((row) =>
    row
      .map((cell, index) => pad(cell, widths[index] as number, right.has(index) ? "left" : "right"))
      .join("  ")
      .trimEnd(),
  );
}
