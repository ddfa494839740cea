import type { Outcome } from "../../machines/vocabulary.ts";
import { chainOf } from "../asks/chain.ts";
import type { Found } from "../asks/found.ts";
import { questionOf } from "../asks/parked.ts";
import { parkedJson, sentinelJson } from "../asks/seed-json.ts";
import { suspendedOn } from "../asks/suspended.ts";
import type { Done } from "../asks/visit-step.ts";
import type { Engine, RunRecords } from "../engine.ts";
import { HerdError, withoutUndefined } from "../errors.ts";
import type { AskRecord, OutcomeRecord, ParkedRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import { keys, prefixed } from "../store/keys.ts";
import type { DoorRun } from "./shapes.ts";

/** A record as it is stored. */
interface RunRow {
  runId: string;
  door: string;
  agent: string;
  status: DoorRun["status"];
  /** UTC milliseconds. */
  startedAt: number;
  finishedAt?: number;
  /** The assignment whose next outcome ends it. */
  requestId?: string;
  result?: unknown;
  error?: { code: string; message: string };
  resumed: string[];
}

type Ended = Outcome | OutcomeRecord["outcome"];

/** The records of submitted runs: each ends once, with whatever its run comes to next. */
export class Runs implements RunRecords {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** In the batch of the visit that a submission is. */
  begin(step: Step, record: Pick<RunRow, "runId" | "door" | "agent">, done: Done): void {
    const { action, requestId = "", answered = [], top } = done;
    const row: RunRow = { ...record, status: "running", startedAt: step.now, resumed: answered };
    if (action === "taken") {
      row.resumed.push(requestId);
      return this.#finish(step, row, endOf(step.read<OutcomeRecord>(keys.outcome(requestId))?.outcome));
    }
    if (top === undefined) return this.#finish(step, row, { status: "succeeded" });
    step.put(keys.submitted(top), { runId: row.runId });
    this.#put(step, { ...row, requestId: top });
  }

  /** An assignment ended: in that batch its record does. */
  ended(step: Step, requestId: string, outcome: Ended): void {
    const row = this.#of(step, requestId);
    if (row) this.#finish(step, row, endOf(outcome));
  }

  /**
   * A question of a run is about to be answered: a record that stood open until now has ended with its questions. One of a
   * submission that answers begins after that.
   */
  answers(step: Step, runId: string): void {
    const top = chainOf(step.tree, runId)[0]?.context.assignment?.requestId;
    const row = top === undefined ? undefined : this.#of(step, top);
    if (row === undefined) return;
    const asks = [...step.tree.workers()].flatMap(({ context }) => {
      const requestId = context.assignment?.requestId ?? "";
      const listed = step.read<ParkedRecord>(keys.parked(step.tree.ownerKey, requestId))?.askIds ?? [];
      const open = listed.filter((askId) => step.read<AskRecord>(keys.ask(askId))?.answer === undefined);
      return open.flatMap((askId) => questionOf(this.#engine, askId));
    });
    if (asks.length > 0) this.#finish(step, row, parkedAs(asks));
  }

  /** A worker resumed or took an entry: the record that it belongs to, if it does, says so. */
  async noted(runId: string, ids: readonly string[]): Promise<void> {
    const { kernel } = this.#engine;
    for (const tree of kernel.trees()) {
      const top = chainOf(tree, runId)[0]?.context.assignment?.requestId;
      const link = top === undefined ? undefined : kernel.read<{ runId: string }>(keys.submitted(top));
      if (link === undefined) continue;
      await kernel.run(
        tree.id,
        (step) => {
          const row = step.read<RunRow>(keys.run(link.runId));
          if (row) step.put(keys.run(row.runId), { ...row, resumed: [...row.resumed, ...ids] });
        },
        { operation: "visit" },
      );
      return;
    }
  }

  /**
   * A record as it stands now.
   * @throws HerdError `target_not_found`.
   */
  async view(runId: string): Promise<DoorRun> {
    const { kernel } = this.#engine;
    await kernel.settled();
    const row = kernel.committed<RunRow>(keys.run(runId));
    if (row === undefined) throw notFound(runId);
    if (row.status === "running" && row.requestId !== undefined) await this.look(row.requestId);
    return viewOf(kernel.read<RunRow>(keys.run(runId)) ?? row);
  }

  /** Every record, as a list shows it. */
  async list(): Promise<DoorRun[]> {
    const { kernel } = this.#engine;
    const rows = (await kernel.range(prefixed(keys.run("")))).map(([, text]) => JSON.parse(text) as RunRow);
    // Of a run that came to its questions when this process was not there yet, nobody has ended the record.
    for (const { status, requestId } of rows) {
      if (status === "running" && requestId !== undefined) await this.look(requestId);
    }
    return rows
      .map((row) => (row.status === "running" ? (kernel.read<RunRow>(keys.run(row.runId)) ?? row) : row))
      .toSorted((a, b) => a.startedAt - b.startedAt || (a.runId < b.runId ? -1 : 1))
      .map((row) => {
        const { result: _, error: __, resumed_interactions: ___, ...shown } = viewOf(row);
        return shown;
      });
  }

  /** Ends the record of a run that waits for answers by now. */
  async look(requestId: string): Promise<void> {
    const { kernel, visits } = this.#engine;
    const request = this.#engine.request(requestId);
    const next = request && (await visits.now(request));
    if (request === undefined || next?.type !== "asks" || this.#engine.options.passive) return;
    await kernel.run(
      request.tree,
      (step) => {
        const row = this.#of(step, requestId);
        if (row) this.#finish(step, row, parkedAs(next.asks));
      },
      { operation: "run" },
    );
  }

  #of(step: Step, requestId: string): RunRow | undefined {
    const { id, ownerKey, owner } = step.tree;
    // Submissions start runs in trees of their own, or resume some on a subject.
    if (id === ownerKey && owner.scope === undefined) return undefined;
    const link = step.read<{ runId: string }>(keys.submitted(requestId));
    return link && step.read<RunRow>(keys.run(link.runId));
  }

  #finish(step: Step, row: RunRow, end: Pick<RunRow, "status" | "result" | "error">): void {
    if (row.requestId !== undefined) step.del(keys.submitted(row.requestId));
    this.#put(step, { ...row, ...end, finishedAt: step.now });
    const due = step.now + this.#engine.options.retention.resultsMs;
    step.put(keys.due(due, "forget", row.runId), { key: keys.run(row.runId) });
  }

  #put(step: Step, row: RunRow): void {
    step.put(keys.run(row.runId), row);
  }
}

function endOf(outcome: Ended | undefined): Pick<RunRow, "status" | "result" | "error"> {
  if (outcome === undefined) return { status: "lost" };
  if (outcome.status === "completed") return { status: "succeeded", result: outcome.data ?? outcome.text };
  return { status: outcome.error.code === "worker_lost" ? "lost" : "failed", error: outcome.error };
}

/** A run that asks its caller ends with exactly these asks; one that asks people alone with what it waits for. */
function parkedAs(asks: readonly Found[]): Pick<RunRow, "status" | "result"> {
  const callers = asks.filter(({ entry }) => entry.to !== "user");
  const result =
    callers.length > 0 ? { asks: callers.map(({ entry }) => parkedJson(entry)) } : sentinelJson(suspendedOn(asks));
  return { status: "parked", result };
}

function viewOf({ runId, door, agent, status, startedAt, finishedAt, result, error, resumed }: RunRow): DoorRun {
  const at = (ms: number) => new Date(ms).toISOString();
  const begun = { run_id: runId, door, agent, status, started_at: at(startedAt) };
  if (finishedAt === undefined) return begun;
  return withoutUndefined({
    ...begun,
    finished_at: at(finishedAt),
    result,
    error,
    resumed_interactions: resumed,
  }) as DoorRun;
}

function notFound(runId: string): HerdError {
  return new HerdError({
    category: "target_not_found",
    reason: "target_not_found",
    message: `There is no run ${JSON.stringify(runId)} in this store`,
    nextAction: "use the id that the submit door gave; ended ones are kept for the time set in retention",
    operation: "run",
    ids: { runId },
  });
}
