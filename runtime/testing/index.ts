/** `pi-herd/testing`: a herd whose clock, crashes and workers a test controls. */
export { createTestHerd } from "./test-herd.ts";
export type { RecordingOwner, TestHerd, TestHerdOptions } from "./test-herd.ts";
export { ScriptedAgent, ScriptedRun } from "./scripted.ts";
export { TestClock } from "./clock.ts";
export { armFailpoint, FAILPOINTS, watchFailpoints } from "./failpoints.ts";
export type { Failpoint } from "./failpoints.ts";
export { memoryStore } from "../store/memory.ts";
export { faultyStore, FaultPlan, InjectedFault } from "../store/faulty.ts";
export type { FaultPoint, HeldBatch } from "../store/faulty.ts";
