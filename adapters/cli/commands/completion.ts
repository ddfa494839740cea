import tab from "@bomb.sh/tab/commander";
import type { Command } from "commander";
import { listAll } from "../listing.ts";
import { withHerd } from "../reach.ts";

const EXAMPLES = `
Examples:
  source <(herd completion bash)                                     for this shell alone
  herd completion bash >> ~/.bashrc
  herd completion zsh > "\${fpath[1]}/_herd"
  herd completion fish > ~/.config/fish/completions/herd.fish`;

/** The commands that take the label of a worker. */
const OF_A_LABEL = ["reply", "steer", "close"];

/**
 * `herd completion`: the script that has a shell complete commands, options and labels. Added last, because it looks at
 * the commands before it.
 * @param labels of the workers that the command that is being typed could mean.
 */
export function addCompletion(program: Command, labels: readonly string[]): void {
  const root = tab(program, { completionCommandName: "completion" });
  for (const name of OF_A_LABEL) {
    const label = root.commands.get(name)?.arguments.get("label");
    if (label) label.handler = (complete) => labels.forEach((each) => complete(each, ""));
  }
  program.commands.find((command) => command.name() === "completion")?.addHelpText("after", EXAMPLES);
}

/**
 * The labels that can be completed. They are read before the shell's question is looked at, which is answered at once.
 * @param args as the shell's script gives them: `complete`, `--`, and the words that are typed so far.
 */
export async function labelsFor([complete, , command = "", ...words]: readonly string[]): Promise<string[]> {
  if (complete !== "complete" || !OF_A_LABEL.includes(command)) return [];
  try {
    return await withHerd(directoryIn(words), { reads: true }, async ({ herd }) => {
      const workers = (await listAll(herd)).flatMap((listing) => listing.workers);
      const meant = workers.filter((row) => row.parentLabel === undefined && (command !== "reply" || row.question));
      return meant.map(({ label }) => label);
    });
  } catch {
    // Whoever presses Tab wants a word or none, never an error in the middle of the line.
    return [];
  }
}

function directoryIn(words: readonly string[]): string {
  const joined = words.find((word) => word.startsWith("--directory="));
  if (joined !== undefined) return joined.slice("--directory=".length);
  const at = words.findIndex((word) => word === "-d" || word === "--directory");
  return words[at === -1 ? words.length : at + 1] ?? process.env["HERD_DIRECTORY"] ?? ".herd";
}
