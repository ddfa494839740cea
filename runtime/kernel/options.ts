import { HerdError } from "../errors.ts";
import type { CommitterOptions } from "../store/committer.ts";
import type { OwnerRef } from "./records.ts";
import type { Recorder, Step } from "./step.ts";

/** The row format this version reads and writes. */
export const FORMAT = 1;

export interface KernelOptions extends Omit<CommitterOptions, "fenced"> {
  /** Trees kept in memory while nothing happens in them; a soft limit. */
  maxTrees: number;
  /** Reads without changing anything: no epoch, no commands. */
  passive: boolean;
  /** Whether anything is executed while this herd has the store. */
  executes: boolean;
  now(): number;
  record: Recorder;
  /** Whether steps note which workers changed their state. */
  notesChanges(): boolean;
  /** A step is complete and about to be queued. */
  captured(step: Step): void;
  fenced(error: HerdError): void;
}

export interface StepOptions {
  /** What the command is called in errors. */
  operation: string;
  /** Acknowledgements: the promise resolves at once, the batch follows with the next one. */
  lazy?: boolean;
  /** Whose tree it is, needed when the tree is new. */
  owner?: OwnerRef;
  /**
   * An owner's command: refused as `overloaded` while too much waits for the disk. What workers and the engine itself
   * do has begun already and is never refused; there is at most one such command for each run under way.
   */
  refusable?: boolean;
}

/** The store was written by a version that keeps its rows in another way. */
export function unknownFormat(format: string): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "store_format",
    message: `The store has format ${format}, this version of pi-herd reads format ${FORMAT}`,
    nextAction: "open it with the version of pi-herd that wrote it, or upgrade pi-herd",
    operation: "open",
  });
}
