import { existsSync } from "node:fs";
import { mkdir, realpath, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Place } from "../../machines/vocabulary.ts";
import { FUNCTIONS } from "../backend.ts";
import { claimSessionFile } from "../claims.ts";
import { messageOf } from "../errors.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { AskRecord, OutcomeRecord, RequestRecord, SteerRecord } from "../kernel/records.ts";
import type { Step } from "../kernel/step.ts";
import type { WorkerView } from "../kernel/tree.ts";
import { asksOf, keys, prefixed } from "../store/keys.ts";
import type { SavedSession } from "./reference.ts";

/** A part of a session, in the order of the parts: an assignment, or the lines that a fork began with. */
interface SessionRow {
  requestId?: string;
  lines?: object[];
  /** Where its backend keeps its file. */
  path?: string;
}

/** Stands for the number of the row that says where a backend keeps the file. */
const PATH = "path";

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
  #writes = 0;
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

  /** The same for a worker: only functions have their files here. */
  pathFor({ backend, sessionId }: { backend: string; sessionId: string }): string | undefined {
    return backend === FUNCTIONS ? this.pathOf(sessionId) : undefined;
  }

  /** The assignment has news that belong into its session file. */
  mark(requestId: string): void {
    if (this.#folder === undefined) return;
    this.#dirty.add(requestId);
    if (this.#writing) return;
    this.#writing = this.#drain().finally(() => (this.#writing = undefined));
    this.#kernel.inBackground(this.#writing);
  }

  /** An assignment is pruned: its session's file goes with the last one. @returns the rows that go with it. */
  async pruned(request: RequestRecord): Promise<string[]> {
    const { sessionId, requestId } = request;
    const rows = await this.#kernel.store.range(prefixed(keys.session(sessionId, "")));
    const rest = rows.filter(([, text]) => {
      const row = JSON.parse(text) as SessionRow;
      return row.requestId !== undefined && row.requestId !== requestId;
    });
    const gone =
      rest.length > 0 ? rows.filter(([, text]) => (JSON.parse(text) as SessionRow).requestId === requestId) : rows;
    const path = this.pathOf(sessionId);
    if (rest.length === 0 && path !== undefined && request.backend === FUNCTIONS) await rm(path, { force: true });
    return gone.map(([key]) => key);
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
      const late = this.#until !== undefined && performance.now() >= this.#until;
      if (late || this.#kernel.ended) return this.#dirty.clear();
      const [requestId] = this.#dirty as Iterable<string> as [string];
      this.#dirty.delete(requestId);
      await this.#write(() => this.#request(requestId)?.sessionId);
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

  /** The session of this id if the store has it: its file is here, or where its backend keeps it. */
  async stored(sessionId: string): Promise<SavedSession | undefined> {
    const rows = await this.#rows(sessionId);
    const request = this.#request(rows.find(({ requestId }) => requestId !== undefined)?.requestId);
    if (request === undefined) return undefined;
    const own = request.backend === FUNCTIONS;
    const path = own ? await this.#ensure(sessionId) : rows.at(-1)?.path;
    return { id: sessionId, path, cwd: request.cwd, agent: request.agent, stored: own };
  }

  /** A worker's backend says where its session's file is: that is the worker's alone. */
  located(step: Step, worker: Pick<WorkerView, "path" | "context">, place: Place): void {
    const { sessionPath } = place;
    if (sessionPath === undefined) return;
    step.put(keys.session(worker.context.sessionId, PATH), { path: sessionPath } satisfies SessionRow);
    claimSessionFile(step, worker, place);
  }

  /** The lines of a stored session, oldest first, without its header. */
  async lines(sessionId: string): Promise<object[]> {
    return (await this.#content(sessionId)).slice(1);
  }

  /** What a run that continues or forks a session begins with: every line before its own task. */
  async historyOf({ sessionId, requestId }: RequestRecord): Promise<object[]> {
    const lines: object[] = [];
    for (const row of await this.#rows(sessionId)) {
      if (row.requestId === requestId) break;
      lines.push(...(row.lines ?? (await this.#linesOf(this.#request(row.requestId)))));
    }
    return lines;
  }

  /** The runs that had this session, the first and the last: nothing else can be alive with it. */
  async runsOf(sessionId: string): Promise<RequestRecord[]> {
    const requests = (await this.#rows(sessionId)).flatMap(({ requestId }) => this.#request(requestId) ?? []);
    return [...new Map([requests[0], requests.at(-1)].flatMap((it) => (it ? [[it.runId, it]] : []))).values()];
  }

  /** In the batch that accepts a task: it belongs to this session from now on. */
  accepted(step: Step, { sessionId, requestId }: RequestRecord, number: string): void {
    step.put(keys.session(sessionId, number), { requestId } satisfies SessionRow);
    step.after(() => this.mark(requestId));
  }

  /** In the batch that accepts a fork: what it begins with. */
  copied(step: Step, sessionId: string, number: string, lines: readonly object[]): void {
    step.put(keys.session(sessionId, number), { lines: [...lines] } satisfies SessionRow);
  }

  async #ensure(sessionId: string): Promise<string | undefined> {
    const path = this.pathOf(sessionId);
    if (path === undefined) return undefined;
    if (!existsSync(path)) await this.#write(() => sessionId);
    return existsSync(path) ? realpath(path) : path;
  }

  /** @param which session; looked up where a store that was closed meanwhile does no harm. */
  async #write(which: () => string | undefined): Promise<void> {
    try {
      const sessionId = which();
      const path = sessionId === undefined ? undefined : this.pathOf(sessionId);
      if (sessionId === undefined || path === undefined) return;
      const lines = await this.#content(sessionId);
      if (lines.length === 0) return;
      this.#made ??= mkdir(this.#folder as string, { recursive: true, mode: 0o700 });
      await this.#made;
      // Somebody who needs the file now may write it at the same time.
      const made = `${path}.${++this.#writes}.new`;
      await writeFile(made, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
      await rename(made, path);
    } catch (error) {
      // The rows are what counts; the file is made again at the next news.
      this.#made = undefined;
      if (this.#warned || this.#kernel.ended) return;
      this.#warned = true;
      process.emitWarning(`session files cannot be written: ${messageOf(error)}`, { type: "HerdSessionFileWarning" });
    }
  }

  /** The whole file: who it was, then what every assignment of the session came to. */
  async #content(sessionId: string): Promise<object[]> {
    const rows = await this.#rows(sessionId);
    const first = this.#request(rows.find(({ requestId }) => requestId !== undefined)?.requestId);
    if (first === undefined || first.backend !== FUNCTIONS) return [];
    const { agent, cwd, acceptedAt } = first;
    const lines: object[] = [
      { type: "session", id: sessionId, cwd, timestamp: new Date(acceptedAt).toISOString() },
      { type: "managed", agentDefinition: agent },
    ];
    for (const row of rows) lines.push(...(row.lines ?? (await this.#linesOf(this.#request(row.requestId)))));
    return lines;
  }

  async #rows(sessionId: string): Promise<SessionRow[]> {
    const rows = await this.#kernel.store.range(prefixed(keys.session(sessionId, "")));
    return rows.map(([, text]) => JSON.parse(text) as SessionRow);
  }

  #request(requestId: string | undefined): RequestRecord | undefined {
    return requestId === undefined ? undefined : this.#kernel.committed<RequestRecord>(keys.request(requestId));
  }

  async #linesOf(request: RequestRecord | undefined): Promise<object[]> {
    if (request === undefined) return [];
    const { requestId, task, files, acceptedAt } = request;
    const at = (time: number) => new Date(time).toISOString();
    const lines: object[] = [{ type: "task", requestId, text: task, files, timestamp: at(acceptedAt) }];
    for (const [, text] of await this.#kernel.store.range(asksOf(requestId))) {
      const { askId, question, askedAt, answer, parked, files: evidence } = JSON.parse(text) as AskRecord;
      const payload = parked?.payload === undefined ? {} : { payload: parked.payload };
      lines.push({ type: "question", askId, text: question, ...payload, files: evidence, timestamp: at(askedAt) });
      if (answer) {
        const { message, files: given } = answer;
        // Only a parked ask is answered with more than text.
        const said = typeof message === "string" ? { text: message } : { text: JSON.stringify(message), data: message };
        lines.push({ type: "answer", askId, ...said, files: given, timestamp: at(answer.at) });
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
