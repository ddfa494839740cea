import type { Found } from "./found.ts";
import type { Suspended } from "./visit-shapes.ts";

/** What a run waits for, from its open asks, oldest first. */
export function suspendedOn(asks: readonly Found[]): Suspended {
  const ids = asks.map(({ entry }) => entry.id);
  const owners = new Set(asks.map(({ entry }) => entry.requestId));
  const expiresAt = asks.flatMap(({ entry }) => entry.expiresAt ?? []).toSorted()[0];
  return {
    interactionId: ids[0] as string,
    interactionIds: ids,
    callerInteractionIds: asks.flatMap(({ entry }) => (entry.to === "user" ? [] : [entry.id])),
    ...(owners.size === 1 && { resumeOwner: [...owners][0] as string }),
    ...(expiresAt !== undefined && { expiresAt }),
  };
}
