import { table, visible } from "../terminal/text.ts";
import { written, type Choice } from "./answer.ts";
import type { Count, Tally } from "./count.ts";
import type { Survey } from "./survey.ts";
import { bytesOf, countOf, numberOf } from "../words.ts";

/** The result of a census: a table for people, and the same as data. */
export type Report = {
  table: string;
  folder: string;
  languages: ({ language: string } & Tally)[];
  total: Tally;
  leftOut: string[];
  /** Names in the answer that are no folder. */
  unknown: string[];
  unreadable: Count["unreadable"];
  /** Parts whose worker came to no result, and why. */
  failed: Failure[];
};

export type Failure = { part: string; message: string };

/** Unreadable files that the table names. */
const NAMED = 10;

/** Everything that a census found, as its result. */
export function reportOf(found: {
  folder: string;
  survey: Survey;
  choice: Choice;
  count: Count;
  failed: Failure[];
}): Report {
  const { folder, survey, choice, count, failed } = found;
  const languages = Object.entries(count.languages)
    .map(([language, tally]) => ({ language, ...tally }))
    .toSorted((a, b) => b.lines - a.lines || b.bytes - a.bytes || a.language.localeCompare(b.language));
  const data = {
    folder,
    languages,
    total: totalOf(languages),
    leftOut: choice.leaveOut,
    unknown: choice.unknown,
    unreadable: count.unreadable,
    failed,
  };
  return { table: tableOf(data, survey), ...data };
}

function totalOf(tallies: readonly Tally[]): Tally {
  const total = { files: 0, lines: 0, bytes: 0 };
  for (const { files, lines, bytes } of tallies) {
    total.files += files;
    total.lines += lines;
    total.bytes += bytes;
  }
  return total;
}

function tableOf(data: Omit<Report, "table">, survey: Survey): string {
  const rows = [
    ["language", "files", "lines", "bytes"],
    ...data.languages.map(({ language, ...tally }) => row(language, tally)),
    row("total", data.total),
  ];
  return [
    `Census of ${visible(data.folder)}`,
    "",
    ...table(rows, new Set([1, 2, 3])).map((line) => `  ${line}`),
    "",
    ...remarks(data, survey),
  ].join("\n");
}

function row(name: string, { files, lines, bytes }: Tally): string[] {
  return [name, ...[files, lines, bytes].map(numberOf)];
}

function remarks({ leftOut, unknown, unreadable, failed }: Omit<Report, "table">, survey: Survey): string[] {
  const lines = [
    `Left out: ${leftOut.length === 0 ? "nothing" : leftOut.map((name) => sized(name, survey)).join(", ")}.`,
  ];
  if (unknown.length > 0) lines.push(`No such folder, so not left out: ${unknown.map(written).join(", ")}.`);
  if (unreadable.count > 0) {
    const named = unreadable.paths.slice(0, NAMED).map(written);
    if (unreadable.count > named.length) named.push("…");
    lines.push(`Not readable, so not counted: ${numberOf(unreadable.count)} (${named.join(", ")}).`);
  }
  for (const { part, message } of failed) lines.push(`Not counted: ${part}, because its worker failed: ${message}`);
  return lines;
}

function sized(name: string, { folders }: Survey): string {
  const seen = folders.find((folder) => folder.name === name);
  return seen ? `${written(name)} (${countOf(seen.files, "file")}, ${bytesOf(seen.bytes)})` : written(name);
}
