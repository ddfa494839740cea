import { messageOf } from "../../../runtime/client.ts";
import type { Log } from "../../host/log.ts";
import { endLeftOver } from "./process.ts";
import type { PromptFiles } from "./prompts.ts";
import type { ProcessRecord, ProcessRecords } from "./records.ts";

/**
 * What an earlier host left behind when it was killed: processes that nobody can reach any more, and prompts. Only for who
 * has the store: what the host that serves it runs is not left behind.
 */
export class LeftOvers {
  readonly #records: ProcessRecords;
  readonly #prompts: PromptFiles;
  readonly #log: Log;
  readonly #tokenOf: (record: ProcessRecord) => string;
  /** Runs whose processes could not be proven gone. */
  readonly #unproven = new Set<string>();
  #swept: Promise<void> | undefined;

  /** @param tokenOf the token that a process had. */
  constructor(records: ProcessRecords, prompts: PromptFiles, log: Log, tokenOf: (record: ProcessRecord) => string) {
    this.#tokenOf = tokenOf;
    this.#records = records;
    this.#prompts = prompts;
    this.#log = log;
  }

  /** Ends all of it, once. @throws Error when it cannot be seen what there is; then it is tried again. */
  sweep(): Promise<void> {
    const sweep = this.#swept ?? this.#sweep();
    this.#swept = sweep;
    sweep.catch(() => (this.#swept = undefined));
    return sweep;
  }

  /** Whether nothing of an earlier host is left of a run; what could not be proved is looked at again. */
  async isProvenGone(runId: string): Promise<boolean> {
    try {
      await this.sweep();
    } catch (error) {
      this.#log.error({ runId, error: messageOf(error) }, "cannot tell which workers of the last host live");
      return false;
    }
    if (this.#unproven.has(runId)) await this.#end(runId);
    return !this.#unproven.has(runId);
  }

  async #sweep(): Promise<void> {
    await this.#prompts.removeAll().catch((error: unknown) => {
      this.#log.error({ error: messageOf(error) }, "the prompts of the last host's workers stay");
    });
    await Promise.all((await this.#records.runs()).map((runId) => this.#end(runId)));
  }

  async #end(runId: string): Promise<void> {
    this.#unproven.add(runId);
    try {
      const record = await this.#records.read(runId);
      if (record === undefined || (await endLeftOver(record, this.#tokenOf(record)))) this.#unproven.delete(runId);
    } catch (error) {
      this.#log.error({ runId, error: messageOf(error) }, "cannot tell whether a worker of the last host lives");
    }
  }
}
