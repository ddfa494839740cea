import type { Herd, OwnerRow, ParkedEntry, Subject } from "../../runtime/index.ts";
import { Refusal, UsageError } from "./errors.ts";
import { commandFor } from "./invocation.ts";
import { visible } from "./terminal/text.ts";

/** An entry, and a subject on which it waits. */
export interface FoundEntry {
  subject: Subject;
  entry: ParkedEntry;
}

/**
 * A subject as it is written in a shell, and as lists show it: `shop?order=7&customer=c-17`, its parts encoded as in an
 * address; anything without a question mark is an owner id.
 * @throws UsageError when there is no key, or one without a value.
 */
export function subjectIn(text: string | undefined): Subject | undefined {
  if (text === undefined) return undefined;
  const [scope = "", query] = text.split(/\?(.*)/s);
  if (query === undefined) return { scope: "owner", keys: { id: text } };
  const pairs = query.split("&").map((pair) => pair.split(/=(.*)/s).slice(0, 2).map(decoded));
  if (pairs.some(([name, value]) => !name || value === undefined)) {
    throw new UsageError("write a subject as SCOPE?KEY=VALUE&KEY=VALUE, or an owner's id");
  }
  return { scope: decoded(scope), keys: Object.fromEntries(pairs as [string, string][]) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** An owner as the subject that it is. */
export function subjectOf({ id, scope, keys }: OwnerRow): Subject {
  return scope === undefined ? { scope: "owner", keys: { id } } : { scope, keys: keys ?? {} };
}

/** What waits on a subject, or on any, oldest first as far as they tell, each once. */
export async function entriesOf(herd: Herd, subject?: Subject): Promise<FoundEntry[]> {
  const subjects = subject ? [subject] : (await herd.owners()).map(subjectOf);
  const found = new Map<string, FoundEntry>();
  for (const each of subjects) {
    for (const entry of await herd.parked(each)) {
      // What several subjects see is of the first that does: one visit reaches as much as it can.
      if (!found.has(entry.id)) found.set(entry.id, { subject: each, entry });
    }
  }
  return [...found.values()];
}

/**
 * The entries with these ids, each once.
 * @throws Refusal that names those which are not there.
 */
export async function findEntries(
  herd: Herd,
  ids: readonly string[],
  { directory, subject }: { directory: string; subject?: Subject | undefined },
): Promise<FoundEntry[]> {
  const entries = new Map((await entriesOf(herd, subject)).map((found) => [found.entry.id, found]));
  const missing = ids.filter((id) => !entries.has(id)).map(visible);
  if (missing.length > 0) {
    throw new Refusal(
      `Nothing is parked under ${missing.join(", ")} (any more). Next: ${commandFor(directory, "parked")} shows what is.`,
    );
  }
  return [...new Set(ids)].map((id) => entries.get(id) as FoundEntry);
}
