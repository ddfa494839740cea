import { Worker } from "node:worker_threads";
import type { Backend, BackendEvent, BackendFactory, BackendHost, Identity, Order } from "pi-herd";

/** What a thread is told, and what it says. */
export type Told = { type: "task" | "answer" | "steer" | "refused"; text: string };
export type Said = { type: "ask"; question: string } | { type: "done"; text: string };

/** Runs every worker in a thread of this process, with `program` as the thread's code. */
export function threads(program: URL): BackendFactory {
  return (host) => new Threads(program, host);
}

class Threads implements Backend {
  readonly name = "threads";
  readonly #program: URL;
  readonly #host: BackendHost;
  readonly #threads = new Map<string, Worker>();
  /** Which assignment a run is at, for everything that is reported of it. */
  readonly #requests = new Map<string, string | undefined>();
  readonly #performed = new Set<string>();

  constructor(program: URL, host: BackendHost) {
    this.#program = program;
    this.#host = host;
  }

  perform(order: Order): void {
    const { runId, orderId, kind } = order;
    // A stop is repeated until the proof was reported; everything else is done once.
    if (kind !== "stop" && this.#performed.has(`${runId} ${orderId}`)) return;
    this.#performed.add(`${runId} ${orderId}`);
    this.#requests.set(runId, order.requestId);
    const thread = this.#threads.get(runId);
    if (kind === "stop") void this.#stop(runId, thread);
    else if (kind === "start") this.#start(runId, order.task);
    else if (thread === undefined) {
      const message = "a thread has no session that it could go on from";
      this.#report(runId, { type: "start.failed", stage: "agent_start", message });
    } else if (kind === "task") this.#turn(runId, thread, { type: "task", text: order.task });
    else if (kind === "answer") this.#turn(runId, thread, { type: "answer", text: order.message });
    else if (kind === "steer" || kind === "deliver") {
      thread.postMessage({ type: "steer", text: kind === "steer" ? order.message : order.text } satisfies Told);
      this.#report(runId, { type: "delivered", orderId });
    }
  }

  /** Threads end with their process, so what is not in the map is proven absent. */
  async identify(runId: string): Promise<Identity> {
    return this.#threads.has(runId) ? "present" : "absent";
  }

  async close(): Promise<void> {
    const all = [...this.#threads.values()];
    this.#threads.clear();
    await Promise.all(all.map((thread) => thread.terminate()));
  }

  #start(runId: string, task: string): void {
    const thread = new Worker(this.#program, { workerData: { runId } });
    this.#threads.set(runId, thread);
    thread.once("online", () => {
      this.#report(runId, { type: "accepted", place: { paneId: `thread-${thread.threadId}` } });
      this.#turn(runId, thread, { type: "task", text: task });
    });
    thread.on("message", (said: Said) => void this.#heard(runId, thread, said));
    thread.once("error", ({ message }) => {
      this.#report(runId, { type: "settled", outcome: { status: "failed", error: { code: "thread_error", message } } });
    });
    thread.once("exit", () => {
      if (this.#threads.get(runId) === thread && this.#threads.delete(runId)) this.#report(runId, { type: "exited" });
    });
  }

  #turn(runId: string, thread: Worker, told: Told): void {
    this.#report(runId, { type: "turn.started" });
    thread.postMessage(told);
  }

  async #heard(runId: string, thread: Worker, said: Said): Promise<void> {
    if (said.type === "done") {
      return this.#report(runId, { type: "settled", outcome: { status: "completed", text: said.text } });
    }
    const requestId = this.#requests.get(runId);
    try {
      const turn = { batch: ["ask_owner"], ...(requestId !== undefined && { requestId }) };
      await this.#host.askOwner(runId, { question: said.question }, turn);
      this.#report(runId, { type: "turn.ended" });
    } catch (error) {
      thread.postMessage({ type: "refused", text: String(error) } satisfies Told);
    }
  }

  async #stop(runId: string, thread: Worker | undefined): Promise<void> {
    this.#threads.delete(runId);
    // Resolves when the thread has ended: that is the proof.
    await thread?.terminate();
    this.#report(runId, { type: "gone" });
  }

  #report(runId: string, event: BackendEvent): void {
    // A herd whose store takes nothing any more asks what lives when it is opened again.
    this.#host.report(runId, event, this.#requests.get(runId)).catch(() => undefined);
  }
}
