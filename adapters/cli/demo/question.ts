import { table, visible } from "../terminal/text.ts";
import { written } from "./answer.ts";
import { generatedKind, type Size, type Survey } from "./survey.ts";
import { bytesOf, countOf, numberOf } from "../words.ts";

/** Folders that one question shows; a person reads no more of them. */
const SHOWN = 25;

/** The question of a census: what lies in the folder, and which of it to leave out. */
export function questionAbout(folder: string, { folders, smaller, loose }: Survey): string {
  const hidden = folders.slice(SHOWN);
  const rows = [
    ["folder", "files", "bytes", ""],
    ...folders.slice(0, SHOWN).map(({ name, ...size }) => [written(name), ...cells(size), looks(name)]),
    ...more(hidden, smaller),
    ["(loose files)", ...cells(loose), ""],
  ];
  return [
    `Which folders do I leave out of the census of ${visible(folder)}?`,
    "",
    ...table(rows, new Set([1, 2])).map((line) => `  ${line}`),
    "",
    `Answer with names, separated by spaces or commas, or with "none".`,
  ].join("\n");
}

const cells = ({ files, bytes }: Size) => [numberOf(files), bytesOf(bytes)];

function looks(name: string): string {
  const kind = generatedKind(name);
  return kind === undefined ? "" : `looks generated: ${kind}`;
}

function more(hidden: readonly Size[], smaller: Survey["smaller"]): string[][] {
  const total = { ...smaller, folders: smaller.folders + hidden.length };
  for (const { files, bytes } of hidden) {
    total.files += files;
    total.bytes += bytes;
  }
  return total.folders === 0 ? [] : [[`(${countOf(total.folders, "smaller folder")})`, ...cells(total), ""]];
}
