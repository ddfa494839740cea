import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { keyFile } from "../host/tokens.ts";
import { hostCommandFor } from "./invocation.ts";
import type { OwnerListing } from "./listing.ts";

/** What is said of a herd that no process has open: its workers stand still, and nothing of them is lost. */

/** Whether the herd in a folder is that of Pi sessions, which a background process has open. */
function isOfPi(directory: string): boolean {
  return existsSync(keyFile(directory));
}

/** When something that was stored is gone on with, as the end of a sentence. */
export function onceOpen(directory: string): string {
  if (!isOfPi(directory)) return `when a program that runs it opens ${directory}.`;
  return `once its Pi session is open again. No background process runs now.\n${without(directory)}`;
}

/** That nobody runs the workers, and what lets them go on. */
export function nobodyRuns(directory: string): string {
  if (!isOfPi(directory)) return "No program has this herd open: its workers go on when one does.";
  return (
    "No background process runs, and nothing is lost by that: workers go on once their Pi session is open again.\n" +
    without(directory)
  );
}

/**
 * The workers of Pi sessions whose background process is away. A command that wrote meanwhile could not tell whether they
 * live, and noted that; the next background process settles it.
 */
export function atRest(listings: readonly OwnerListing[], directory: string): OwnerListing[] {
  if (!isOfPi(directory)) return [...listings];
  return listings.map(({ owner, workers }) => ({
    owner,
    workers: workers.map((worker) => {
      const { diagnostic = "", ...known } = worker;
      if (!UNPROVEN.test(diagnostic)) return worker.state === "working" ? { ...worker, state: AT_REST } : worker;
      return { ...known, state: worker.question === undefined ? AT_REST : "blocked" };
    }),
  }));
}

/** What is shown of a worker that would be at work if somebody ran it. */
const AT_REST = "at rest";
const UNPROVEN = /^The backend ".*" cannot prove whether the process of /;

/** What to start so that workers go on. @param directory the folder of the herd, where that is known. */
export function whatRuns(directory?: string): string {
  if (directory === undefined || !isOfPi(directory)) return "start the program that runs this worker";
  return `open its Pi session, or run ${serve(directory)} in a shell`;
}

/** A worker that is started again has the environment of its session, where that is open. */
function without(directory: string): string {
  return `To go on without the session, with the keys that this shell has: ${serve(directory)}`;
}

/** The start of a background process, in a shell. */
function serve(directory: string): string {
  return hostCommandFor(resolve(directory), "serve");
}
