import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { BackendEvent, BackendHost, Order } from "../../../runtime/backend.ts";
import { Dialogs } from "../../host/dialogs.ts";
import type { Log } from "../../host/log.ts";
import { headless } from "./headless.ts";

function processesOf(mark: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "latin1").includes(mark);
      } catch {
        return false;
      }
    })
    .map(Number);
}

test.runIf(process.platform === "linux")(
  "a worker that is stopped while it is being started leaves no process",
  async () => {
    const base = mkdtempSync(join(tmpdir(), "herd-stop-"));
    const cli = join(base, "pi.mjs");
    writeFileSync(cli, "setInterval(() => {}, 1000);");
    mkdirSync(join(base, "herd"));
    onTestFinished(() => {
      for (const pid of processesOf(base)) process.kill(pid, "SIGKILL");
      rmSync(base, { recursive: true, force: true });
    });
    const log = { info() {}, warn() {}, error() {} } as unknown as Log;
    const events: BackendEvent[] = [];
    const gone = Promise.withResolvers<void>();
    const report = async (_run: string, event: BackendEvent) => {
      events.push(event);
      if (event.type === "gone") gone.resolve();
      return true;
    };
    const host = { report } as unknown as BackendHost;
    const { factory, backend } = headless({
      directory: join(base, "herd"),
      agentDirectory: base,
      key: Buffer.alloc(32),
      extension: join(base, "extension.js"),
      rootOf: () => undefined,
      lastSaid: () => undefined,
      mayCome: async () => undefined,
      findPi: async () => ({ node: process.execPath, cli }),
      dialogs: new Dialogs({ opened: () => undefined, closed: () => undefined }, "/herd"),
      log,
    });
    factory(host);
    const launch = { owner: "ada", agent: "scout", cwd: base, sessionId: "s", label: "w" };
    const of = (order: object) =>
      ({ runId: "run", label: "w", requestId: "r", task: "t", files: [], ...order }) as unknown as Order;
    backend().perform(of({ kind: "start", timeoutMs: 10_000, orderId: "start", launch, ...launch }));
    backend().perform(of({ kind: "stop", orderId: "stop" }));
    await gone.promise;
    expect(events).toEqual([{ type: "gone" }]);
    expect(processesOf(base)).toEqual([]);
  },
);
