import { setup, stopChild, type DoneActorEvent, type ErrorActorEvent } from "xstate";
import { launched } from "./launch.ts";
import type { SupervisorContext, SupervisorEvent } from "./vocabulary.ts";
import { worker } from "./worker.ts";

const definition = setup({
  types: {
    context: {} as SupervisorContext,
    events: {} as SupervisorEvent | DoneActorEvent<unknown, string> | ErrorActorEvent<unknown, string>,
    input: {} as { owner: SupervisorContext["owner"] },
  },
  actors: { worker },
  actions: {
    removeWorker: stopChild((_, { runId }: { runId: string }) => runId),
  },
});

const spawnWorker = definition.spawnChild("worker", { id: (args) => launched(args).runId, input: launched });

/** The root of one tree: an owner, whose direct workers are its children. It only starts and removes them. */
export const supervisor = definition.createMachine({
  id: "supervisor",
  version: "1",
  description: "An owner with its direct workers.",
  context: ({ input }) => ({ owner: input.owner }),
  initial: "attending",
  on: {
    "worker.rested": { actions: { type: "removeWorker", params: ({ event }) => event } },
    "xstate.done.actor.*": {
      actions: { type: "removeWorker", params: ({ event }) => ({ runId: event.actorId }) },
    },
    // The engine undoes the whole command; the chart only keeps one broken worker from taking the others along.
    "xstate.error.actor.*": {
      actions: { type: "removeWorker", params: ({ event }) => ({ runId: event.actorId }) },
    },
  },
  states: {
    attending: {
      description: "Starts a worker for every assignment; a worker that ended is removed.",
      on: {
        "worker.launch": {
          actions: spawnWorker,
        },
      },
    },
  },
});
