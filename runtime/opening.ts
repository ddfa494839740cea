import { HerdError, messageOf } from "./errors.ts";
import type { StoreLockedError } from "./store/store.ts";

/** Why a store cannot be opened, and what to do about it. */

/** There is nothing to read in this folder. */
export function noStore(directory: string, cause?: unknown): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: "no_store",
    message: `There is no herd in ${directory} yet`,
    nextAction: "name the folder of a herd, or run a program that makes one there",
    operation: "open",
    ...(cause !== undefined && { cause }),
  });
}

/** The operating system or the database refused it. */
export function unavailable(cause: unknown): HerdError {
  if ((cause as NodeJS.ErrnoException | undefined)?.code === "LEVEL_CORRUPTION") return damaged(cause);
  return new HerdError({
    category: "internal_failure",
    reason: "store_unavailable",
    message: `The store cannot be opened: ${messageOf(cause)}`,
    nextAction: "use a directory that this process may write, or make this one usable",
    operation: "createHerd",
    cause,
  });
}

/** The database says so of itself. Nothing was changed. */
function damaged(cause: unknown): HerdError {
  return new HerdError({
    category: "internal_failure",
    reason: "store_damaged",
    message: messageOf(cause),
    nextAction: "copy the folder, restore your last backup, and keep the copy to find out what is missing",
    operation: "open",
    cause,
  });
}

/** Another process has it. */
export function storeLocked({ location, holder }: StoreLockedError, waitedMs: number): HerdError {
  const who = holder
    ? `process ${holder.pid} (${holder.command}), since ${holder.since}`
    : "another process that left no name";
  return new HerdError({
    category: "worker_busy",
    reason: "store_locked",
    message: `The store at ${location} is in use by ${who}${waitedMs > 0 ? `; waited ${waitedMs} ms` : ""}`,
    nextAction:
      "reach it with connectHerd or the herd command, end that process, use another directory, or raise waitForLockMs " +
      "if it is about to close",
    operation: "createHerd",
    details: { location, ...(holder && { holder }) },
  });
}
