/**
 * Named points at which a test may end the process, to show that nothing is lost or done twice whatever
 * instant it dies at. Outside tests nobody listens and a point costs one comparison.
 */
export const FAILPOINTS = [
  "step.before-commit",
  "step.after-commit",
  "order.before",
  "order.after",
  "delivery.before",
  "delivery.after",
  "ack.before-flush",
  "launch.between",
  "close.child-gone",
  "door.before-visit",
] as const;

/** One of the points in `FAILPOINTS`. */
export type Failpoint = (typeof FAILPOINTS)[number];

let listener: ((name: Failpoint) => void) | undefined;

/** Called by the engine when it passes a point. */
export function passFailpoint(name: Failpoint): void {
  if (listener !== undefined) listener(name);
}

/** Puts one listener on all points, or takes it away. For tests only. */
export function onFailpoint(next: ((name: Failpoint) => void) | undefined): void {
  listener = next;
}
