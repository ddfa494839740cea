import type { OwnerListing } from "../listing.ts";
import { fit, visible } from "./text.ts";
import { renderTree } from "./tree.ts";

/** Every owner with its workers below it, in lines that are never wider than allowed. */
export function herdLines(
  listings: readonly OwnerListing[],
  { columns, notes }: { columns: number; notes: ReadonlyMap<string, string> },
): string[] {
  return listings.flatMap(({ owner, workers }, index) => {
    const waiting =
      owner.results === 0 ? "" : `  ${owner.results} ${owner.results === 1 ? "result waits" : "results wait"}`;
    const tree = renderTree(workers, { columns: columns - 2, rows: Number.POSITIVE_INFINITY, notes });
    return [
      ...(index > 0 ? [""] : []),
      fit(`${visible(owner.id)}${waiting}`, columns - 1),
      ...tree.map((line) => `  ${line}`),
    ];
  });
}

/** At most so many lines; the last one says how many are left out. */
export function firstLines(lines: readonly string[], rows: number): string[] {
  if (lines.length <= rows) return [...lines];
  const shown = lines.slice(0, Math.max(1, rows - 1));
  return [...shown, `… and ${lines.length - shown.length} more lines`];
}
