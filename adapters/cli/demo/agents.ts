import { join } from "node:path";
import type { AgentDefinition, Assignment, Worker } from "../../../runtime/index.ts";
import { chooseFolders, written, type Choice } from "./answer.ts";
import { addCount, countFiles, noCount, type Count } from "./count.ts";
import { questionAbout } from "./question.ts";
import { reportOf, type Failure, type Report } from "./report.ts";
import { survey, type Survey } from "./survey.ts";
import { foldersIn } from "./walk.ts";
import { countOf } from "../words.ts";

/**
 * The agents of `herd demo`: `census` looks at a folder, asks its owner what to leave out, has a `counter` count each
 * part and puts the counts together.
 *
 * They are plain async functions. After the process died, or after a long wait, a function starts again from its
 * first line: what it did through `worker` is given back from the journal instead of done again, and all else runs
 * once more. So whatever looks at the world stands in a `step`, and the lines between only work with what steps,
 * answers and children gave them.
 *
 * @param store the herd's own folder, which no census counts.
 */
export function censusAgents(store: string) {
  return {
    census: {
      description: "Counts a folder's files, lines and bytes by language; its task is the folder",
      subagents: ["counter"],
      run: (folder, worker) => census(folder, worker, store),
    },
    counter: {
      description: "Counts one part of a folder; its task is a part as JSON",
      // Disks gain little from more readers; the other parts wait in line.
      concurrency: 4,
      run: (task, worker) => counter(JSON.parse(task) as Part, worker, store),
    },
  } satisfies Record<string, AgentDefinition>;
}

/** What one counter counts: a folder of the root, or all that no other part has. */
type Part = {
  root: string;
  folder?: string;
  /** Folders of the root that it does not enter. */
  leaveOut: string[];
};

/** Folders with a counter of their own; the others go to one counter together with the loose files. */
const OWN_COUNTER = 40;

/** Takes a census of a folder. Its result is a table and the same as data. */
async function census(folder: string, worker: Worker, store: string): Promise<Report> {
  worker.report("looks at the folder");
  const seen = await worker.step("look", () => survey(folder, { leaveOut: new Set([store]), signal: worker.signal }));
  // The name lets a later version of this program word the question differently while this one is open.
  const answer = await worker.askOwner({
    name: "leave out",
    question: questionAbout(folder, seen),
    files: seen.evidence,
  });
  // A step, because folders come and go: after a crash the choice stays what it was.
  const choice = await worker.step("choose", async () => chooseFolders(answer, await foldersIn(folder)));
  const { count, failed } = await delegate(partsOf(folder, seen, choice), worker);
  return reportOf({ folder, survey: seen, choice, count, failed });
}

/** Cuts what is to be counted into parts that share no file and forget none. */
function partsOf(root: string, { folders }: Survey, { leaveOut }: Choice): Part[] {
  const own = folders
    .map(({ name }) => name)
    .filter((name) => !leaveOut.includes(name))
    .slice(0, OWN_COUNTER);
  return [
    ...own.map((folder) => ({ root, folder, leaveOut: [] })),
    // Told what it leaves to others, not what to take: it also finds folders that are new since the look.
    { root, leaveOut: [...own, ...leaveOut] },
  ];
}

/** Has every part counted by a child and adds up what they find. A child that fails takes nothing else down. */
async function delegate(parts: readonly Part[], worker: Worker): Promise<{ count: Count; failed: Failure[] }> {
  let done = 0;
  const report = () => worker.report(`${done} of ${parts.length} parts counted`);
  report();
  const results = await Promise.all(
    parts.map(async (part) => {
      const child = await assignCounter(part, worker);
      const result = await child.result();
      done++;
      report();
      return { part, ...result };
    }),
  );
  const count = noCount();
  const failed: Failure[] = [];
  for (const { part, status, data, error } of results) {
    if (status === "completed") addCount(count, data as Count);
    else failed.push({ part: nameOf(part), message: error?.message ?? status });
  }
  return { count, failed };
}

/** The name ties the child to its part: a re-run finds the child that it started, in whatever order. */
function assignCounter(part: Part, worker: Worker): Promise<Assignment> {
  const name = part.folder === undefined ? "rest" : `folder ${part.folder}`;
  return worker.assign({ name, agent: "counter", task: JSON.stringify(part) });
}

/** Counts one part, all in one step: a crash costs at most this part's work. */
async function counter(part: Part, worker: Worker, store: string): Promise<Count> {
  const name = nameOf(part);
  worker.report(name);
  return worker.step("count", () =>
    countFiles(join(part.root, part.folder ?? ""), {
      root: part.root,
      leaveOut: new Set([store, ...part.leaveOut.map((folder) => join(part.root, folder))]),
      signal: worker.signal,
      progress: (files) => worker.report(`${name}: ${countOf(files, "file")}`),
    }),
  );
}

function nameOf({ folder }: Part): string {
  return folder === undefined ? "the rest" : written(folder);
}
