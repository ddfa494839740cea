import type { ParkedEntry } from "../../runtime/index.ts";
import { askedBy, untilOf } from "./asks.ts";
import { columnsOfOutput } from "./output.ts";
import { fit, table, visible } from "./terminal/text.ts";

/**
 * Entries as lines of columns; the deadline has one where any has a deadline.
 * @param status whether they can differ in it.
 */
export function entryTable(entries: readonly ParkedEntry[], { status }: { status: boolean }): string[] {
  const columns: [string, (entry: ParkedEntry) => string][] = [["id", ({ id }) => id]];
  if (status) columns.push(["status", (entry) => entry.status]);
  columns.push(["label", ({ label }) => visible(label)]);
  if (entries.some(({ expiresAt }) => expiresAt !== undefined)) columns.push(["until", untilOf]);
  columns.push(["", saysOf]);
  const rows = entries.map((entry) => columns.map(([, cell]) => cell(entry)));
  return table([columns.map(([name]) => name), ...rows], new Set()).map((line) => fit(line, columnsOfOutput() - 1));
}

/** What an entry is about, on one line: what it asks, or what came of it. */
export function saysOf(entry: ParkedEntry): string {
  const { status, result, error } = entry;
  if (status === "asking" || status === "running") return askedBy(entry);
  const what = result ?? (error as { message?: string } | undefined)?.message ?? error ?? "";
  return visible((typeof what === "string" ? what : JSON.stringify(what)).split("\n")[0] as string);
}
