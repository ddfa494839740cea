import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";
import type { Herd, ParkedEntry } from "../../../runtime/index.ts";
import { entryOf } from "../asks.ts";
import { entriesOf } from "../entries.ts";
import { saysOf } from "../entry-table.ts";
import { usualDirectory } from "../invocation.ts";
import { listAll } from "../listing.ts";
import { withHerd } from "../reach.ts";

const EXAMPLES = `
Examples:
  source <(herd completion bash)                                     for this shell alone
  herd completion bash >> ~/.bashrc
  herd completion zsh > "\${fpath[1]}/_herd"
  herd completion fish > ~/.config/fish/completions/herd.fish`;

/** What can stand for a worker or an entry, and what it is. */
interface Word {
  word: string;
  says: string;
}

/** The commands whose first argument names something that is open, and what it can be. */
const FIRST: Record<string, (herd: Herd) => Promise<Word[]>> = {
  reply: (herd) => labelsOf(herd, { asking: true }),
  steer: (herd) => labelsOf(herd, { asking: false }),
  close: (herd) => labelsOf(herd, { asking: false }),
  resume: (herd) => entryIdsOf(herd, ({ status, to }) => status !== "running" && to !== "user"),
  cancel: (herd) => entryIdsOf(herd, () => true),
  take: (herd) => entryIdsOf(herd, ({ status }) => status === "finished" || status === "failed"),
  answer: async (herd) => (await herd.inbox.list()).map(entryOf).map(wordOf),
};

/**
 * `herd completion`: the script that has a shell complete commands, options, labels and ids. Added last, because it looks
 * at the commands before it.
 * @param words those that the command that is being typed could begin with.
 */
export function addCompletion(program: Command, words: readonly Word[]): void {
  const root = tab(program, { completionCommandName: "completion" });
  for (const name of Object.keys(FIRST)) {
    const [first] = root.commands.get(name)?.arguments.values() ?? [];
    if (first) first.handler = (complete) => words.forEach(({ word, says }) => complete(word, says));
  }
  program.commands.find((command) => command.name() === "completion")?.addHelpText("after", EXAMPLES);
}

/**
 * The words that can be completed. They are read before the shell's question is looked at, which is answered at once.
 * @param args as the shell's script gives them: `complete`, `--`, and the words that are typed so far.
 */
export async function wordsFor([complete, , command = "", ...words]: readonly string[]): Promise<Word[]> {
  const first = Object.hasOwn(FIRST, command) ? FIRST[command] : undefined;
  if (complete !== "complete" || first === undefined) return [];
  try {
    return await withHerd(directoryIn(words), { reads: true }, ({ herd }) => first(herd));
  } catch {
    // Whoever presses Tab wants a word or none, never an error in the middle of the line.
    return [];
  }
}

async function labelsOf(herd: Herd, { asking }: { asking: boolean }): Promise<Word[]> {
  const workers = (await listAll(herd)).flatMap((listing) => listing.workers);
  const meant = workers.filter((row) => row.parentLabel === undefined && (!asking || row.question));
  return meant.map(({ label }) => ({ word: label, says: "" }));
}

async function entryIdsOf(herd: Herd, isMeant: (entry: ParkedEntry) => boolean): Promise<Word[]> {
  const entries = (await entriesOf(herd)).map(({ entry }) => entry);
  return entries.filter(isMeant).map(wordOf);
}

const wordOf = (entry: ParkedEntry): Word => ({ word: entry.id, says: saysOf(entry) });

function directoryIn(words: readonly string[]): string {
  const joined = words.find((word) => word.startsWith("--directory="));
  if (joined !== undefined) return joined.slice("--directory=".length);
  const at = words.findIndex((word) => word === "-d" || word === "--directory");
  return words[at === -1 ? words.length : at + 1] ?? process.env["HERD_DIRECTORY"] ?? usualDirectory();
}
