import { execFileSync, spawn } from "node:child_process";
import type { Backend, BackendFactory, BackendHost, Identity, Order } from "../../runtime/backend.ts";

/** What a process of a worker does: it is there until it is ended. Its arguments say whose it is. */
const IDLE = "setInterval(() => undefined, 60_000)";

/** The processes whose arguments hold a mark, by their ids. */
export function processesOf(mark: string): number[] {
  const lines = execFileSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" }).split("\n");
  const idle = lines.filter((line) => line.includes(mark) && line.includes(IDLE));
  return idle.map((line) => Number.parseInt(line, 10));
}

/**
 * Workers in real processes that outlive the herd, as panes do. A process only stands for its worker: what that does is
 * done here, so that a test needs no model.
 *
 * @param mark tells this test's processes from others.
 */
export function processBackend(mark: string): BackendFactory {
  return (host) => new ProcessBackend(host, mark);
}

class ProcessBackend implements Backend {
  readonly name = "crash-processes";
  readonly #host: BackendHost;
  readonly #mark: string;

  constructor(host: BackendHost, mark: string) {
    this.#host = host;
    this.#mark = mark;
  }

  perform(order: Order): void {
    void this.#carryOut(order);
  }

  async identify(runId: string): Promise<Identity> {
    return processesOf(this.#of(runId)).length > 0 ? "present" : "absent";
  }

  async close(): Promise<void> {}

  async #carryOut(order: Order): Promise<void> {
    const { kind, runId, requestId } = order;
    const report = (event: Parameters<BackendHost["report"]>[1]) => this.#host.report(runId, event, requestId);
    if (kind === "stop") {
      await this.#end(runId);
      await this.#host.report(runId, { type: "gone" });
    } else if (kind === "start" || kind === "resume") {
      if (processesOf(this.#of(runId)).length === 0) this.#start(runId);
      if (kind === "start") await report({ type: "accepted" });
      await report({ type: "turn.started" });
      await report({ type: "settled", outcome: { status: "completed", text: "done" } });
    }
  }

  #start(runId: string): void {
    spawn(process.execPath, ["-e", IDLE, this.#of(runId)], { detached: true, stdio: "ignore" }).unref();
  }

  async #end(runId: string): Promise<void> {
    for (const pid of processesOf(this.#of(runId))) process.kill(pid, "SIGKILL");
    while (processesOf(this.#of(runId)).length > 0) await new Promise((resolve) => setImmediate(resolve));
  }

  #of(runId: string): string {
    return `${this.#mark}/${runId}`;
  }
}
