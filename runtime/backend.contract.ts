import { describe, expect, test } from "vitest";
import type { Backend, BackendEvent, BackendFactory, Order } from "./backend.ts";

/** What a suite needs to make a backend's workers move. */
export interface BackendUnderTest {
  factory: BackendFactory;
  /** Lets the worker of a run do its task to the end; resolves when the backend has reported that. */
  finish(runId: string): Promise<void>;
  /** Frees what the test made. */
  dispose?(): Promise<void> | void;
}

type Reported = { runId: string; event: BackendEvent };

/**
 * The promises of the backend port, for any implementation: call it from a vitest file.
 *
 * @example
 * backendContract("tmux", () => ({ factory: tmuxBackend(options), finish: (runId) => typeInto(runId, "done") }));
 */
export function backendContract(name: string, make: () => BackendUnderTest | Promise<BackendUnderTest>): void {
  async function attached() {
    const under = await make();
    const reported: Reported[] = [];
    const backend = under.factory({
      report: async (runId, event) => {
        reported.push({ runId, event });
        return true;
      },
      askOwner: async () => ({ askId: "ask", assignmentRequestId: "request" }),
      subagent: async () => ({ ok: false }),
    });
    return { under, backend, reported };
  }

  const start = (runId: string, orderId = "start"): Order => ({
    kind: "start",
    orderId,
    runId,
    label: "worker",
    requestId: "request",
    task: "do it",
    files: [],
    agent: "agent",
    cwd: process.cwd(),
    timeoutMs: 300_000,
    owner: "owner",
    sessionId: "00000000-0000-4000-8000-000000000000",
  });
  const stop = (runId: string): Order => ({
    kind: "stop",
    orderId: "stop",
    runId,
    label: "worker",
    requestId: "request",
  });
  const of = (reported: Reported[], runId: string, type: BackendEvent["type"]) =>
    reported.filter((entry) => entry.runId === runId && entry.event.type === type);

  async function until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise((resolve) => setImmediate(resolve));
  }

  async function withBackend(
    body: (parts: { backend: Backend; under: BackendUnderTest; reported: Reported[] }) => Promise<void>,
  ) {
    const { under, backend, reported } = await attached();
    try {
      await body({ backend, under, reported });
    } finally {
      await backend.close(0);
      await under.dispose?.();
    }
  }

  describe(`the backend ${name}`, () => {
    test("has a name that stays the same", async () => {
      await withBackend(async ({ backend, under }) => {
        expect(backend.name).toMatch(/\S/);
        const other = under.factory({
          report: async () => true,
          askOwner: async () => ({ askId: "", assignmentRequestId: "" }),
          subagent: async () => ({ ok: false }),
        });
        expect(other.name).toBe(backend.name);
        await other.close(0);
      });
    });

    test("reports the acceptance, the start of the first turn and one end of a task", async () => {
      await withBackend(async ({ backend, under, reported }) => {
        backend.perform(start("run-1"));
        await under.finish("run-1");
        await until(() => of(reported, "run-1", "settled").length > 0);
        expect(of(reported, "run-1", "accepted")).toHaveLength(1);
        expect(of(reported, "run-1", "turn.started").length).toBeGreaterThan(0);
        expect(of(reported, "run-1", "settled")).toHaveLength(1);
      });
    });

    test("carries the same order out once, however often it comes", async () => {
      await withBackend(async ({ backend, under, reported }) => {
        backend.perform(start("run-1"));
        backend.perform(start("run-1"));
        await under.finish("run-1");
        await until(() => of(reported, "run-1", "settled").length > 0);
        backend.perform(start("run-1"));
        await new Promise((resolve) => setImmediate(resolve));
        expect(of(reported, "run-1", "settled")).toHaveLength(1);
      });
    });

    test("proves a stopped run absent and reports it gone", async () => {
      await withBackend(async ({ backend, reported }) => {
        backend.perform(start("run-1"));
        expect(await backend.identify("run-1")).toBe("present");
        backend.perform(stop("run-1"));
        await until(() => of(reported, "run-1", "gone").length > 0);
        expect(await backend.identify("run-1")).toBe("absent");
      });
    });

    test("proves a run that it never had absent", async () => {
      await withBackend(async ({ backend }) => {
        expect(await backend.identify("nobody")).toBe("absent");
      });
    });

    test("keeps runs apart", async () => {
      await withBackend(async ({ backend, under, reported }) => {
        backend.perform(start("run-1"));
        backend.perform(start("run-2"));
        await under.finish("run-2");
        await until(() => of(reported, "run-2", "settled").length > 0);
        expect(of(reported, "run-1", "settled")).toHaveLength(0);
      });
    });
  });
}
