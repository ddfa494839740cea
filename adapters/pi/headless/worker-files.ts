import { messageOf } from "../../../runtime/client.ts";
import type { Log } from "../../host/log.ts";
import type { PromptFiles } from "./prompts.ts";
import type { ProcessRecord, ProcessRecords } from "./records.ts";
import type { HeadlessRun } from "./run.ts";

/** What workers have on the disk of their host. What cannot be tidied up is logged, and breaks nothing off. */
export class WorkerFiles {
  readonly records: ProcessRecords;
  readonly #prompts: PromptFiles;
  readonly #log: Log;
  #removing: Promise<unknown> = Promise.resolve();

  constructor(records: ProcessRecords, prompts: PromptFiles, log: Log) {
    this.records = records;
    this.#prompts = prompts;
    this.#log = log;
  }

  /**
   * Keeps what the next host has to know of a worker's process.
   * @throws Error when nothing is known of a first process; what is known of a worker is no reason to lose its work.
   */
  async keep(run: HeadlessRun, record: ProcessRecord): Promise<void> {
    try {
      await run.keep(record);
    } catch (error) {
      if (run.isFirst) throw error;
      const { runId, label } = run;
      this.#log.error({ runId, label, error: messageOf(error) }, "a worker's process is not on record");
    }
  }

  /** Removes the record of a worker that is over, in the background. */
  forget(runId: string, run: HeadlessRun | undefined): void {
    this.#removing = Promise.all([this.#removing, this.#removeRecord(runId, run)]);
  }

  /** Resolves once nothing is being removed in the background any more. */
  async forgotten(): Promise<void> {
    await this.#removing;
  }

  /** Removes the prompts of a process that has read them, or is gone. Those that stay are removed at the next start of the host. */
  async removePrompts(runId: string): Promise<void> {
    await this.#prompts.remove(runId).catch((error: unknown) => {
      this.#log.error({ runId, error: messageOf(error) }, "prompts stay");
    });
  }

  /** What its process still does about its record comes before. */
  async #removeRecord(runId: string, run: HeadlessRun | undefined): Promise<void> {
    try {
      await run?.process?.ended;
      await run?.kept();
      await this.records.remove(runId);
    } catch (error) {
      this.#log.error({ runId, error: messageOf(error) }, "the record of a worker's process stays");
    }
  }
}
