import { createTestHerd, type TestHerdOptions } from "../../runtime/testing/index.ts";

/** Waiting runs stay in memory, or are parked out of it at once: no promise of a function worker depends on which. */
export const modes = [
  { name: "waiting in memory", options: {} as { parkAfter?: number } },
  { name: "parked at once", options: { parkAfter: 0 } as { parkAfter?: number } },
];

/** `createTestHerd` in one of the modes. */
export const inMode = (mode: { parkAfter?: number }) => (options: TestHerdOptions) =>
  createTestHerd({ ...mode, ...options });

let current: object = {};

/** With which options every herd of a test file is opened from here on. @returns how to end that. */
export function playIn(options: object): () => void {
  current = options;
  return () => (current = {});
}

/** The options that hold now. */
export function playing(): object {
  return current;
}
