import { activeRequest } from "../../machines/projection.ts";
import type { WorkerContext } from "../../machines/vocabulary.ts";
import type { Engine } from "../engine.ts";
import { withoutUndefined } from "../errors.ts";
import type { AskRecord, DeliveryRecord, OutcomeRecord, OwnerRef, RequestRecord } from "../kernel/records.ts";
import type { Tree } from "../kernel/tree.ts";
import { treeIdOf } from "../owners.ts";
import { askIdOf, keys, prefixed } from "../store/keys.ts";
import type { ParkedEntry } from "./entry.ts";

/** An entry with what it stands for, and its place in the order. */
export interface Found {
  entry: ParkedEntry;
  /** UTC milliseconds. */
  at: number;
  request: RequestRecord;
  /** Of an outcome. */
  delivery?: DeliveryRecord;
}

/**
 * Everything that waits on a subject, oldest first, each once. An owner sees what waits for itself; a subject with a
 * scope also what waits on every other one of that scope that shares a key with it.
 */
export async function parkedOn(engine: Engine, owner: OwnerRef): Promise<Found[]> {
  const trees = await treesOf(engine, owner);
  const found = await Promise.all(trees.map((tree) => parkedIn(engine, tree)));
  return found.flat().toSorted((a, b) => a.at - b.at || (a.entry.id < b.entry.id ? -1 : 1));
}

/** The trees in which something for this owner may wait. */
async function treesOf(engine: Engine, owner: OwnerRef): Promise<string[]> {
  const { scope, keys: subject = {} } = owner;
  if (scope === undefined) return [treeIdOf(owner)];
  const rows = await Promise.all(
    Object.entries(subject).map(([name, value]) => engine.kernel.range(prefixed(keys.subject(scope, name, value, "")))),
  );
  return [...new Set(rows.flat().map(([key]) => key.slice(key.lastIndexOf("!") + 1)))];
}

/** What waits for the owner of one tree. */
async function parkedIn(engine: Engine, treeId: string): Promise<Found[]> {
  const asked = await engine.kernel.run(treeId, ({ tree }) => askedIn(engine, tree), { operation: "parked" });
  const deliveries = await engine.kernel.range(prefixed(keys.delivery(treeId, "")));
  const outcomes = deliveries.flatMap(([, text]) => {
    const delivery = JSON.parse(text) as DeliveryRecord;
    const found = delivery.kind === "result" ? outcomeOf(engine, delivery) : undefined;
    return found ? [found] : [];
  });
  // It may have ended since its question was looked at.
  const ended = new Set(outcomes.map(({ entry }) => entry.requestId));
  return [...asked.filter(({ entry }) => !ended.has(entry.requestId)), ...outcomes];
}

/** The last question of every assignment that has not ended: open, or answered. */
function askedIn(engine: Engine, tree: Tree): Found[] {
  const found: Found[] = [];
  for (const { path, state, context } of tree.workers()) {
    // A worker below another one asks that one.
    if (path.includes("/") || context.asks === 0) continue;
    const requestId = activeRequest(state, context);
    const request = requestId === undefined ? undefined : engine.request(requestId);
    if (request) found.push(...askedBy(engine, request, context));
  }
  return found;
}

function askedBy(engine: Engine, request: RequestRecord, context: WorkerContext): Found[] {
  const askId = context.ask?.askId ?? askIdOf(request.requestId, context.asks);
  const ask = engine.kernel.committed<AskRecord>(keys.ask(askId));
  if (ask === undefined || ask.abandoned) return [];
  const entry: ParkedEntry = {
    id: ask.askId,
    status: ask.answer ? "running" : "asking",
    requestId: request.requestId,
    label: request.label,
    to: "caller",
    askedBy: [request.agent],
    question: ask.question,
    answerFormat: "text",
    createdAt: new Date(ask.askedAt).toISOString(),
    ...(request.metadata !== undefined && { metadata: request.metadata }),
  };
  return [{ entry, at: ask.askedAt, request }];
}

function outcomeOf(engine: Engine, delivery: DeliveryRecord): Found | undefined {
  const request = engine.request(delivery.requestId);
  const ended = engine.kernel.committed<OutcomeRecord>(keys.outcome(delivery.requestId));
  if (request === undefined || ended === undefined) return undefined;
  const { outcome, endedAt } = ended;
  const { requestId, label, metadata } = request;
  const entry = withoutUndefined({
    id: requestId,
    status: outcome.status === "completed" ? ("finished" as const) : ("failed" as const),
    requestId,
    label,
    result: outcome.status === "completed" ? (outcome.data ?? outcome.text) : undefined,
    error: outcome.status === "completed" ? undefined : outcome.error,
    metadata,
  }) as ParkedEntry;
  return { entry, at: endedAt, request, delivery };
}
