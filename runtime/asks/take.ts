import { acknowledgeIn } from "../deliveries/record.ts";
import type { Result } from "../deliveries/result.ts";
import type { Engine } from "../engine.ts";
import { HerdError, invalidRequest } from "../errors.ts";
import type { OutcomeRecord, OwnerRef } from "../kernel/records.ts";
import { keys } from "../store/keys.ts";
import type { Found } from "./found.ts";
import { parkedOn } from "./parked.ts";

const OPERATION = "take";

/**
 * Takes an outcome that waits on a subject, which acknowledges it: it is given once, also when two take at once.
 *
 * What can happen twice: nothing; a process that ends between the acknowledgement and its caller leaves the result to
 * be read by its handle.
 * @param id which one; the oldest unless set.
 * @returns the result, a failed one too; undefined when none waits and none was named.
 * @throws HerdError `entry_gone` when the named one is not there (any more), `visit_request` when it is a question,
 * `being_delivered` while a receiver has it.
 */
export async function take(engine: Engine, owner: OwnerRef, id?: string): Promise<Result | undefined> {
  const parked = await parkedOn(engine, owner);
  if (id !== undefined) {
    const named = parked.find(({ entry }) => entry.id === id);
    if (named === undefined) throw entryGone(id);
    if (named.delivery === undefined) throw nothingToTake(id, named.entry.status);
    if (engine.deliveries.isLeased(named.delivery)) throw beingDelivered(OPERATION, id);
    return (await claim(engine, named)) ?? Promise.reject(entryGone(id));
  }
  for (const found of parked) {
    if (found.delivery === undefined || engine.deliveries.isLeased(found.delivery)) continue;
    // Another taker may have been faster; the next one is as good.
    const result = await claim(engine, found);
    if (result) return result;
  }
  return undefined;
}

/** Acknowledges it in one step; undefined when it is acknowledged already, or a receiver has it by now. */
async function claim(engine: Engine, { request, delivery }: Found): Promise<Result | undefined> {
  if (delivery === undefined) return undefined;
  const { deliveryId, owner, tree } = delivery;
  const claimed = await engine.kernel.run(
    tree,
    (step) => {
      if (step.read(keys.delivery(owner, deliveryId)) === undefined || engine.deliveries.isLeased(delivery))
        return false;
      acknowledgeIn(engine, step, delivery);
      return true;
    },
    { operation: OPERATION, refusable: true },
  );
  const outcome = engine.kernel.committed<OutcomeRecord>(keys.outcome(request.requestId));
  return claimed && outcome ? engine.result(request, outcome, engine.deliveries.attempt(delivery, 1)) : undefined;
}

function entryGone(id: string): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: "entry_gone",
    message: `Nothing parked on this subject has the id ${JSON.stringify(id)} (any more)`,
    nextAction: "list what is parked and act on what is there now",
    operation: OPERATION,
    ids: { id },
  });
}

function nothingToTake(id: string, status: string): HerdError {
  return invalidRequest(
    OPERATION,
    "visit_request",
    `The entry ${JSON.stringify(id)} is ${status} and has no outcome to take`,
    "answer it, or wait until it has ended",
    { field: "id", rule: "finished_payload", ids: { id } },
  );
}

/** What nobody may take while its owner's receiver has it. */
export function beingDelivered(operation: string, id: string): HerdError {
  return new HerdError({
    category: "worker_busy",
    reason: "being_delivered",
    message: `The outcome ${JSON.stringify(id)} is being delivered to its owner's receiver`,
    nextAction: "leave it to the receiver, or try again if that fails",
    operation,
    ids: { id },
  });
}
