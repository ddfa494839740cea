import type { Engine } from "../engine.ts";
import { withoutUndefined } from "../errors.ts";
import type { AskRecord, DeliveryRecord, OutcomeRecord, OwnerRef, ParkedRecord } from "../kernel/records.ts";
import { addressOf, ownerKeyOf } from "../owners.ts";
import { keys, prefixed } from "../store/keys.ts";
import type { ParkedEntry } from "./entry.ts";
import { oldestFirst, type Found } from "./found.ts";

/**
 * Everything that waits on a subject, oldest first, each once. An owner sees what waits for itself; a subject with a
 * scope also what waits on every other one of that scope that shares a key with it.
 */
export async function parkedOn(engine: Engine, owner: OwnerRef): Promise<Found[]> {
  const owners = await ownersOn(engine, owner);
  const found = await Promise.all(owners.map((key) => parkedFor(engine, key)));
  return found.flat().toSorted(oldestFirst);
}

/** The keys of the owners for whom something that this one sees may wait. */
export async function ownersOn(engine: Engine, owner: OwnerRef): Promise<string[]> {
  const { scope, keys: subject = {} } = owner;
  if (scope === undefined) return [ownerKeyOf(owner)];
  const rows = await Promise.all(
    Object.entries(subject).map(([name, value]) => engine.kernel.range(prefixed(keys.subject(scope, name, value, "")))),
  );
  return [...new Set(rows.flat().map(([key]) => key.slice(key.lastIndexOf("!") + 1)))];
}

/** What waits for one owner, as it is on disk: no tree is read for it. */
async function parkedFor(engine: Engine, owner: string): Promise<Found[]> {
  const { kernel } = engine;
  const [asked, deliveries] = await Promise.all([
    kernel.range(prefixed(keys.parked(owner, ""))),
    kernel.range(prefixed(keys.delivery(owner, ""))),
  ]);
  const outcomes = deliveries.flatMap(([, text]) => {
    const delivery = JSON.parse(text) as DeliveryRecord;
    return delivery.kind === "result" ? outcomeOf(engine, delivery) : [];
  });
  const questions = asked.flatMap(([, text]) =>
    (JSON.parse(text) as ParkedRecord).askIds.flatMap((askId) => questionOf(engine, askId)),
  );
  // It may have ended since its questions were looked at.
  const ended = new Set(outcomes.map(({ entry }) => entry.requestId));
  return [...questions.filter(({ entry }) => !ended.has(entry.requestId)), ...outcomes];
}

/** The entry of a question as it is on disk; none when it is given up or its assignment is gone. */
export function questionOf(engine: Engine, askId: string): [Found] | [] {
  const ask = engine.kernel.committed<AskRecord>(keys.ask(askId));
  const request = ask && engine.request(ask.requestId);
  if (request === undefined || ask === undefined || ask.abandoned) return [];
  const { parked, askedAt } = ask;
  const entry = withoutUndefined({
    id: askId,
    status: ask.answer ? ("running" as const) : ("asking" as const),
    requestId: request.requestId,
    label: request.label,
    to: parked?.to ?? "caller",
    askedBy: parked?.askedBy ?? [request.agent],
    question: ask.question,
    answerFormat: parked?.answerFormat ?? "text",
    options: parked?.options,
    schema: parked?.schema,
    payload: parked?.payload,
    groupId: parked?.groupId,
    createdAt: new Date(askedAt).toISOString(),
    expiresAt: parked?.expiresAt === undefined ? undefined : new Date(parked.expiresAt).toISOString(),
    onExpiry: parked?.onExpiry,
    metadata: request.metadata,
  }) as ParkedEntry;
  return [{ entry, at: askedAt, order: ask.deliveryId, request, ask }];
}

function outcomeOf(engine: Engine, delivery: DeliveryRecord): [Found] | [] {
  const request = engine.request(delivery.requestId);
  const ended = engine.kernel.committed<OutcomeRecord>(keys.outcome(delivery.requestId));
  if (request === undefined || ended === undefined) return [];
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
  return [{ entry, at: endedAt, order: delivery.deliveryId, request, delivery }];
}

/**
 * Entries of a subject by their ids, looked up one by one, so that it does not matter how much else is parked there.
 * @returns those that are there, by id.
 */
export async function findEntries(
  engine: Engine,
  owner: OwnerRef,
  ids: readonly string[],
): Promise<Map<string, Found>> {
  const found = new Map<string, Found>();
  if (ids.length === 0) return found;
  // Waits for what was queued before, so that what is told here is on disk.
  const owners = new Set(await ownersOn(engine, owner));
  await engine.kernel.settled();
  for (const id of ids) {
    const [entry] = [...listedQuestion(engine, id, owners), ...listedOutcome(engine, id, owners)];
    if (entry) found.set(id, entry);
  }
  return found;
}

function listedQuestion(engine: Engine, askId: string, owners: ReadonlySet<string>): [Found] | [] {
  const [found] = questionOf(engine, askId);
  if (found?.ask === undefined || !owners.has(found.ask.owner)) return [];
  const row = engine.kernel.committed<ParkedRecord>(keys.parked(found.ask.owner, found.ask.requestId));
  return row?.askIds.includes(askId) ? [found] : [];
}

function listedOutcome(engine: Engine, requestId: string, owners: ReadonlySet<string>): [Found] | [] {
  const request = engine.request(requestId);
  const deliveryId = request && engine.kernel.committed<OutcomeRecord>(keys.outcome(requestId))?.deliveryId;
  if (request === undefined || deliveryId === undefined || !owners.has(addressOf(request))) return [];
  const delivery = engine.kernel.committed<DeliveryRecord>(keys.delivery(addressOf(request), deliveryId));
  return delivery ? outcomeOf(engine, delivery) : [];
}
