import { join } from "node:path";
import { createHerd, type Herd } from "../../runtime/index.ts";
import { crashAgents } from "./agents.ts";
import type { Ledger } from "./ledger.ts";
import type { Random } from "./random.ts";

/** Where a campaign keeps the store and the ledger of a round. */
export const storeOf = (directory: string): string => join(directory, "herd");
export const ledgerOf = (directory: string): string => join(directory, "ledger.jsonl");

/**
 * Opens the store of a campaign, every time with other limits, so that runs are parked and queued.
 * @param tight commands may be refused because too much waits for the disk.
 */
export async function openCrashHerd(
  directory: string,
  ledger: Ledger,
  random: Random,
  { tight = false } = {},
): Promise<Herd> {
  const parkAfter = random.pick([undefined, undefined, 0, 40]);
  const concurrency = random.pick([undefined, undefined, 5]);
  return createHerd({
    directory: storeOf(directory),
    agents: crashAgents({ session: ledger.session, write: (fact) => ledger.write(fact), random }),
    tickMs: random.pick([20, 50, 100]),
    maxChildren: random.pick([256, 12]),
    maxInFlight: tight ? random.pick([1_000, 1_000, 8]) : 1_000,
    maxParkedRuns: random.pick([1_000, 3]),
    maxTrees: random.pick([1_000, 3]),
    // A campaign ends the process more often than any crash loop.
    restarts: 1_000_000,
    waitForLockMs: 10_000,
    ...(parkAfter !== undefined && { parkAfter }),
    ...(concurrency !== undefined && { concurrency }),
  });
}
