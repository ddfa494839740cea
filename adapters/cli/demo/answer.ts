import { visible } from "../terminal/text.ts";

/** Which folders a census leaves out. */
export type Choice = {
  leaveOut: string[];
  /** Names in the answer that are no folder. */
  unknown: string[];
};

/** Words that alone mean that nothing is left out. A folder of such a name has to be put in quotes. */
const NOTHING = new Set(["none", "nothing", "no", "n", "-"]);

/** An answer that leaves nothing out. */
export const NONE = "none";

const PLAIN = /^[^\s,"'\p{Cc}]+$/u;
const WORD = /"(?:[^"\\]|\\.)*"|[^\s,]+/g;

/**
 * Reads an owner's answer: names separated by spaces or commas, those with either of them in double quotes, or a word
 * for nothing. A name that is no folder is kept apart, never guessed at.
 * @param folders the names that there are.
 */
export function chooseFolders(answer: string, folders: readonly string[]): Choice {
  const words = answer.match(WORD) ?? [];
  if (words.length === 1 && NOTHING.has((words[0] as string).toLowerCase())) return { leaveOut: [], unknown: [] };
  // The same name may be written with other code points: macOS decomposes what people type composed.
  const known = new Map(folders.map((name) => [name.normalize("NFC"), name]));
  const leaveOut = new Set<string>();
  const unknown = new Set<string>();
  for (const word of words) {
    const name = nameIn(word);
    const folder = known.get(name.normalize("NFC"));
    if (folder === undefined) unknown.add(name);
    else leaveOut.add(folder);
  }
  return { leaveOut: [...leaveOut], unknown: [...unknown] };
}

/** A name as it has to be written in an answer, safe to show. */
export function written(name: string): string {
  const plain = PLAIN.test(name) && visible(name) === name && !NOTHING.has(name.toLowerCase());
  return plain ? name : visible(JSON.stringify(name));
}

/** The answer that leaves these folders out. */
export function answerFor(folders: readonly string[]): string {
  return folders.length === 0 ? NONE : folders.map(written).join(" ");
}

function nameIn(word: string): string {
  if (!/^".*"$/s.test(word)) return word.replace(/^\.\//, "").replace(/\/+$/, "");
  try {
    return JSON.parse(word) as string;
  } catch {
    return word.slice(1, -1);
  }
}
