import type { VisitOptions } from "../asks/visit.ts";
import type { Done } from "../asks/visit-step.ts";
import type { Engine } from "../engine.ts";
import { withoutUndefined } from "../errors.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Step } from "../kernel/step.ts";
import { keys } from "../store/keys.ts";
import type { Operation } from "../store/store.ts";
import { nextFire } from "./cron.ts";
import type { DoorDocument, SavedDoor } from "./document.ts";

/** When a schedule fires next, and the run of its last fire. */
interface ScheduleState {
  /** UTC milliseconds; absent when it never fires again. */
  dueAt?: number;
  last?: string;
}

/** What schedules need of the doors that they are. */
export interface ScheduleDesk {
  /** Whether the door can be gone through in this process. */
  isReady(name: string, stored: SavedDoor): boolean;
  /** Visits; what goes along is in the same batch. */
  fire(name: string, alongside: NonNullable<VisitOptions["alongside"]>): Promise<void>;
  failed(door: SavedDoor, error: unknown): void;
}

/** Doors that time goes through. A fire, and when the next one is due, are one batch. */
export class Schedules {
  readonly #engine: Engine;
  readonly #desk: ScheduleDesk;
  /** Those whose fire is under way. */
  readonly #firing = new Set<string>();

  constructor(engine: Engine, desk: ScheduleDesk) {
    this.#engine = engine;
    this.#desk = desk;
  }

  /** A schedule is due. Whatever goes wrong is told, and it goes on with its next time. */
  async due(key: string, name: string, now: number): Promise<void> {
    if (this.#firing.has(name)) return;
    this.#firing.add(name);
    try {
      await this.#fire(key, name, now);
    } finally {
      this.#firing.delete(name);
    }
  }

  /**
   * Whether a schedule that is due fires in this process. It stays due where no worker goes on, and while its expressions are
   * functions of a program that is to come.
   */
  fires(name: string): boolean {
    if (!this.#engine.options.runWorkers) return false;
    const stored = this.#engine.kernel.read<SavedDoor>(keys.door(name));
    return stored === undefined || this.#desk.isReady(name, stored);
  }

  async #fire(key: string, name: string, now: number): Promise<void> {
    const { kernel } = this.#engine;
    const stored = kernel.read<SavedDoor>(keys.door(name));
    if (stored === undefined) return kernel.write([{ type: "del", key }]);
    const dueAt = nextFire(stored.cron as string, stored.timezone, now);
    const stateOf = (): ScheduleState | undefined => kernel.read<ScheduleState>(keys.schedule(name));
    try {
      if (stored.overlap === "start" || !(await this.#executes(stateOf()?.last))) {
        const alongside = (step: Step, { top }: Done) => {
          const state = step.read<ScheduleState>(keys.schedule(name));
          if (state === undefined) throw new Error(`the schedule "${name}" was removed`);
          for (const row of moved(key, name, state, { dueAt, last: top })) {
            if (row.type === "del") step.del(row.key);
            else step.put(row.key, JSON.parse(row.value));
          }
          return undefined;
        };
        await this.#desk.fire(name, alongside);
        return;
      }
    } catch (error) {
      // It stays due for whoever opens the herd again. One that was removed meanwhile is nobody's.
      if (this.#engine.closed || stateOf() === undefined) return;
      this.#desk.failed(stored, error);
      // What it took had failed: that was done.
      if (kernel.read(key) === undefined) return;
    }
    const state = stateOf();
    if (state) await kernel.write(moved(key, name, state, { dueAt }));
  }

  /** Whether a run is at work: one that has ended, or that waits for answers, is not. */
  async #executes(requestId: string | undefined): Promise<boolean> {
    const request = requestId === undefined ? undefined : this.#engine.request(requestId);
    return request !== undefined && (await this.#engine.visits.now(request)) === undefined;
  }
}

/**
 * A fire is over: its due row goes, and the next one comes. Where the schedule was given other times while it fired, those
 * stand. @param key the due row. @param last the run of this fire, if it started one.
 */
function moved(
  key: string,
  name: string,
  state: ScheduleState,
  { dueAt, last = state.last }: { dueAt: number | undefined; last?: string | undefined },
): Operation[] {
  const isThis = state.dueAt !== undefined && keys.due(state.dueAt, "schedule", name) === key;
  const next = withoutUndefined({ dueAt: isThis ? dueAt : state.dueAt, last });
  return [
    { type: "del", key },
    { type: "put", key: keys.schedule(name), value: JSON.stringify(next) },
    ...(isThis && dueAt !== undefined
      ? [{ type: "put" as const, key: keys.due(dueAt, "schedule", name), value: "{}" }]
      : []),
  ];
}

/** A schedule whose times stay the same keeps its next one, also when that has passed: a missed fire runs once. */
export function timing(kernel: Kernel, name: string, door: DoorDocument, before: SavedDoor | undefined): Operation[] {
  const state = kernel.read<ScheduleState>(keys.schedule(name));
  const same = before?.cron === door.cron && before?.timezone === door.timezone;
  if (door.kind === "schedule" && same && state) return [];
  const operations: Operation[] = [];
  if (state?.dueAt !== undefined) operations.push({ type: "del", key: keys.due(state.dueAt, "schedule", name) });
  if (door.kind !== "schedule") return [...operations, { type: "del", key: keys.schedule(name) }];
  const dueAt = nextFire(door.cron as string, door.timezone, kernel.now());
  const next: ScheduleState = { ...state, ...(dueAt !== undefined && { dueAt }) };
  operations.push({ type: "put", key: keys.schedule(name), value: JSON.stringify(next) });
  if (dueAt !== undefined) operations.push({ type: "put", key: keys.due(dueAt, "schedule", name), value: "{}" });
  return operations;
}

/** What stands in the store of a schedule's times, taken away. */
export function withoutTimes(kernel: Kernel, name: string): Operation[] {
  const state = kernel.read<ScheduleState>(keys.schedule(name));
  if (state === undefined) return [];
  const operations: Operation[] = [{ type: "del", key: keys.schedule(name) }];
  if (state.dueAt !== undefined) operations.push({ type: "del", key: keys.due(state.dueAt, "schedule", name) });
  return operations;
}
