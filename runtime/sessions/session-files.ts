import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../errors.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { AskRecord, OutcomeRecord, RequestRecord, SteerRecord } from "../kernel/records.ts";
import { asksOf, keys, prefixed } from "../store/keys.ts";

/**
 * Session files trail the work by a while and are written a few at a time: making a file costs the disk as much as a
 * commit does, and most assignments end before theirs is written for the first time.
 */
const TRAIL_MS = 500;
const BURST = 8;

/**
 * The session file of every function worker: who it was, its task, questions, answers and result, a JSON object a
 * line. It is written from the store after the commit, whole each time, so a missing or old one is simply made again.
 */
export class SessionFiles {
  readonly #kernel: Kernel;
  readonly #folder: string | undefined;
  readonly #dirty = new Set<string>();
  #writing: Promise<void> | undefined;
  /** Set when the herd closes: how long there is time to write. */
  #until: number | undefined;
  #hurry: (() => void) | undefined;
  #warned = false;
  #made: Promise<unknown> | undefined;

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
    const { directory } = kernel.store;
    this.#folder = directory === undefined ? undefined : join(directory, "sessions");
  }

  /** Where a session's file is, or undefined for a store without a folder. */
  pathOf(sessionId: string): string | undefined {
    return this.#folder === undefined ? undefined : join(this.#folder, `${sessionId}.jsonl`);
  }

  /** The assignment has news that belong into its session file. */
  mark(requestId: string): void {
    if (this.#folder === undefined) return;
    this.#dirty.add(requestId);
    this.#writing ??= this.#drain().finally(() => (this.#writing = undefined));
  }

  /** The assignment is pruned: its file goes too. */
  async remove(sessionId: string): Promise<void> {
    const path = this.pathOf(sessionId);
    if (path !== undefined) await rm(path, { force: true });
  }

  /** Writes what is outstanding, for at most so many milliseconds; what is left is made again when it is needed. */
  async flush(forMs: number): Promise<void> {
    this.#until = performance.now() + forMs;
    this.#hurry?.();
    while (this.#writing) await this.#writing;
  }

  async #drain(): Promise<void> {
    for (let written = 0; this.#dirty.size > 0; written++) {
      if (this.#until === undefined && written % BURST === 0) await this.#trail();
      if (this.#until !== undefined && performance.now() >= this.#until) return this.#dirty.clear();
      const [requestId] = this.#dirty as Iterable<string> as [string];
      this.#dirty.delete(requestId);
      await this.#write(requestId);
    }
  }

  /** Waits a while, or until somebody is in a hurry. The process may end meanwhile: rows are what counts. */
  async #trail(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#hurry = resolve;
      setTimeout(resolve, TRAIL_MS).unref();
    });
    this.#hurry = undefined;
  }

  async #write(requestId: string): Promise<void> {
    const request = this.#kernel.committed<RequestRecord>(keys.request(requestId));
    const path = request && this.pathOf(request.sessionId);
    if (request === undefined || path === undefined) return;
    try {
      const lines = await this.#linesOf(request);
      this.#made ??= mkdir(this.#folder as string, { recursive: true, mode: 0o700 });
      await this.#made;
      await writeFile(`${path}.new`, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
      await rename(`${path}.new`, path);
    } catch (error) {
      // The rows are what counts; the file is made again at the next news.
      this.#made = undefined;
      if (this.#warned) return;
      this.#warned = true;
      process.emitWarning(`session files cannot be written: ${messageOf(error)}`, { type: "HerdSessionFileWarning" });
    }
  }

  async #linesOf(request: RequestRecord): Promise<object[]> {
    const { sessionId, agent, cwd, requestId, task, files, acceptedAt } = request;
    const at = (time: number) => new Date(time).toISOString();
    const lines: object[] = [
      { type: "session", id: sessionId, cwd, timestamp: at(acceptedAt) },
      { type: "managed", agentDefinition: agent },
      { type: "task", requestId, text: task, files, timestamp: at(acceptedAt) },
    ];
    for (const [, text] of await this.#kernel.store.range(asksOf(requestId))) {
      const { askId, question, askedAt, answer, files: evidence } = JSON.parse(text) as AskRecord;
      lines.push({ type: "question", askId, text: question, files: evidence, timestamp: at(askedAt) });
      if (answer) {
        lines.push({ type: "answer", askId, text: answer.message, files: answer.files, timestamp: at(answer.at) });
      }
    }
    for (const [, text] of await this.#kernel.store.range(prefixed(keys.steer(requestId, "")))) {
      const { steerId, message, files: evidence, at: steeredAt } = JSON.parse(text) as SteerRecord;
      lines.push({ type: "steer", steerId, text: message, files: evidence, timestamp: at(steeredAt) });
    }
    const ended = this.#kernel.committed<OutcomeRecord>(keys.outcome(requestId));
    if (ended) lines.push({ type: "result", requestId, ...ended.outcome, timestamp: at(ended.endedAt) });
    return lines;
  }
}
