import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runChild } from "./child.ts";
import { processesOf } from "./processes.ts";

/** A launch in a real process, ended at every point between its claim and its answer, and run again. */

const ROLLED_BACK = "pane_not_ready rolled back";

test.each([
  ["before anything is on disk", "step.before-commit:1", ["accepted completed", "accepted completed"]],
  ["between the claim and the start", "launch.between:1", [ROLLED_BACK, ROLLED_BACK]],
  ["before the start goes out", "order.before:1", [ROLLED_BACK, ROLLED_BACK]],
  ["once the process is started", "order.after:1", ["accepted completed", "accepted completed"]],
  ["before the acceptance is on disk", "step.before-commit:2", ["accepted completed", "accepted completed"]],
  ["once the acceptance is on disk", "step.after-commit:2", ["accepted completed", "accepted completed"]],
])("a launch that dies %s has one answer, whoever asks again, and leaves no process", async (_, failpoint, answers) => {
  const directory = await mkdtemp(join(tmpdir(), "pi-herd-launch-"));
  onTestFinished(async () => {
    for (const pid of processesOf(directory)) process.kill(pid, "SIGKILL");
    await rm(directory, { recursive: true, force: true });
  });
  const killed = await runChild("launching.ts", [directory], {
    env: { HERD_FAILPOINT: failpoint },
    patienceMs: 20_000,
  });
  expect(killed).toMatchObject({ signal: "SIGKILL", patienceOver: false });
  const again = await runChild("launching.ts", [directory], { patienceMs: 20_000 });
  expect(again.errors).toBe("");
  const told = JSON.parse(again.lines.at(-1) ?? "{}");
  // The label is free for the next one, whatever became of the first.
  expect(told.answers).toEqual([...answers, "accepted completed"]);
  expect(told.processes).toBe(0);
});
