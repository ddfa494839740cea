import type { AskRecord, SteerRecord } from "../kernel/records.ts";
import { asksOf, keys, prefixed } from "../store/keys.ts";
import type { Execution } from "./execution.ts";
import type { Entry } from "./journal.ts";

/**
 * Reads what a run did, was told and asked in earlier executions, from disk.
 * @param opened called for every question that is open.
 */
export async function restore(
  { engine, request, journal, steers }: Execution,
  opened: (askId: string) => void,
): Promise<void> {
  const { requestId } = request;
  const { store } = engine.kernel;
  const prefix = keys.journal(requestId, "");
  for (const [key, text] of await store.range(prefixed(prefix))) {
    journal.set(key.slice(prefix.length), JSON.parse(text) as Entry);
  }
  for (const [, text] of await store.range(prefixed(keys.steer(requestId, "")))) {
    steers.add(JSON.parse(text) as SteerRecord);
  }
  for (const [, text] of await store.range(asksOf(requestId))) {
    const ask = JSON.parse(text) as AskRecord;
    // An answer that came while these rows were being read is newer than they are.
    const known = ask.journalKey === undefined ? undefined : journal.get(ask.journalKey);
    if (known?.kind === "ask" && known.ask.answer) continue;
    if (ask.journalKey !== undefined) journal.set(ask.journalKey, { kind: "ask", ask });
    if (!ask.answer && !ask.abandoned) opened(ask.askId);
  }
}
