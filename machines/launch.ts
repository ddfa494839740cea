import type { WorkerEvent, WorkerInput } from "./vocabulary.ts";

/** What a launch brings; the actor's id is its run id, so that it is the same actor after every restart. */
export function launched({ event }: { event: unknown }): WorkerInput {
  return (event as Extract<WorkerEvent, { type: "worker.launch" }>).input;
}
