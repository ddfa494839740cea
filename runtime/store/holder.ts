import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { StoreHolder } from "./store.ts";

/** The file in a herd's folder that names who has the store open. */
export function holderFile(directory: string): string {
  return join(directory, "holder.json");
}

/** The process that has a store open, as it says itself; undefined where the file is gone, or of a process that ended. */
export async function readHolder(directory: string): Promise<StoreHolder | undefined> {
  let found: unknown;
  try {
    found = JSON.parse(await readFile(holderFile(directory), "utf8"));
  } catch {
    return undefined;
  }
  return isHolder(found) && isAlive(found.pid) ? found : undefined;
}

function isHolder(value: unknown): value is StoreHolder {
  if (typeof value !== "object" || value === null) return false;
  const { pid, command, since } = value as Partial<Record<keyof StoreHolder, unknown>>;
  return Number.isInteger(pid) && (pid as number) > 0 && typeof command === "string" && typeof since === "string";
}

/** Whether there is a process of this number. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It is there, and another user's.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
