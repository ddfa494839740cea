import type { Command } from "commander";
import type { Herd } from "../../../runtime/index.ts";
import { subjectOf } from "../entries.ts";
import type { OwnerListing } from "../listing.ts";
import { quoted } from "../../host/herd-command.ts";
import { calledAs, commandFor } from "../invocation.ts";
import { listAll, listInJson } from "../listing.ts";
import { columnsOfOutput, withCommonOptions, withOwnerOption, write, type CommonOptions } from "../output.ts";
import { withHerd, type Reached } from "../reach.ts";
import { atRest, nobodyRuns } from "../resting.ts";
import { herdLines } from "../terminal/herd-lines.ts";

interface ListOptions extends CommonOptions {
  owner?: string;
}

/** `herd list`: what runs, what asks, and what waits for its owner. */
export function addList(program: Command): void {
  withOwnerOption(
    withCommonOptions(program.command("list").description("show every owner's workers, questions and waiting results")),
  ).action(async (options: ListOptions) => {
    await withHerd(options.directory, { reads: true }, (reached) => list(reached, options));
  });
}

async function list(reached: Reached, options: ListOptions): Promise<void> {
  const { herd, directory, isRunning } = reached;
  if (options.json) {
    const value = { directory, running: isRunning, owners: await listInJson(herd, options.owner) };
    return write(JSON.stringify(value, undefined, 2));
  }
  const listings = await listAll(herd, options.owner);
  const result = await firstResult(herd, listings);
  await write(textOf(isRunning ? listings : atRest(listings, directory), result, reached, options));
}

/** The request of a result that waits for one of these owners. */
async function firstResult(herd: Herd, listings: readonly OwnerListing[]): Promise<string | undefined> {
  const { owner } = listings.find((each) => each.owner.results > 0) ?? {};
  const entries = owner === undefined ? [] : await herd.parked(subjectOf(owner));
  return entries.find(({ status }) => status === "finished" || status === "failed")?.id;
}

function textOf(
  listings: readonly OwnerListing[],
  result: string | undefined,
  { directory, isRunning }: Reached,
  options: ListOptions,
): string {
  const lines = herdLines(listings, { columns: columnsOfOutput(), notes: new Map() });
  if (lines.length === 0) {
    return `Nothing is open in ${directory}. Next: run a program that assigns something, or try ${calledAs(process)} demo first.`;
  }
  return [...lines, "", ...nextSteps(listings, result, { directory, isRunning }, options)].join("\n").trimEnd();
}

/** What somebody who reads this may want to do. */
function nextSteps(
  listings: readonly OwnerListing[],
  result: string | undefined,
  { directory, isRunning }: Pick<Reached, "directory" | "isRunning">,
  options: ListOptions,
): string[] {
  const rows = listings.flatMap(({ owner, workers }) => workers.map((worker) => ({ owner, worker })));
  const asking = rows.filter(({ worker }) => worker.question && !worker.parentLabel);
  const [first] = asking;
  const steps: string[] = [];
  if (first) {
    const { label } = first.worker;
    const isShared = rows.filter(({ worker }) => worker.label === label).length > 1;
    const whose = isShared ? ["--owner", quoted(first.owner.id)] : [];
    const count = asking.length === 1 ? "A question waits" : `${asking.length} questions wait`;
    steps.push(`${count} for an answer: ${commandFor(options.directory, "reply", label, '"…"', ...whose)}`);
  }
  if (result !== undefined) {
    const waiting = listings.reduce((sum, { owner }) => sum + owner.results, 0);
    const count = waiting === 1 ? "A result waits for its owner" : `${waiting} results wait for their owners`;
    steps.push(`${count}; to see ${waiting === 1 ? "it" : "one"}: ${commandFor(options.directory, "result", result)}`);
  }
  if (!isRunning) steps.push(nobodyRuns(directory));
  return steps;
}
