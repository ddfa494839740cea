import type { AskRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { keys } from "../store/keys.ts";

const KIND = "expiry";

/** What stands in the due row of an ask. */
export interface ExpiryRow {
  tree: string;
  runId: string;
}

/** Notes when an ask has waited long enough. */
export function startExpiry(step: Step, { askId, runId, parked }: AskRecord): void {
  if (parked?.expiresAt === undefined) return;
  step.put(keys.due(parked.expiresAt, KIND, askId), { tree: step.tree.id, runId } satisfies ExpiryRow);
}

/** It is answered or given up. */
export function endExpiry(step: Step, { askId, parked }: AskRecord): void {
  if (parked?.expiresAt !== undefined) step.del(keys.due(parked.expiresAt, KIND, askId));
}
