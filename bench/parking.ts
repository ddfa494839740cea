import { spawn } from "node:child_process";
import { createHerd, type AgentDefinition } from "../runtime/index.ts";

/** Runs that ask once and wait. */
export const agents = {
  asks: { description: "Asks once", run: (_task, worker) => worker.ask({ question: "Go on?" }) },
} satisfies Record<string, AgentDefinition>;

/** The subject at a place; all of them share the key `desk`. */
export function subjectAt(index: number): { scope: string; keys: Record<string, string> } {
  return { scope: "bench", keys: { desk: "all", order: String(index) } };
}

/** Parks so many asks in a store, in a process of its own, so that nothing of that is left in this one. */
export async function parkElsewhere(directory: string, asks: number, subjects: number): Promise<void> {
  const args = [import.meta.filename, directory, String(asks), String(subjects)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit"] });
  const code = await new Promise((resolve) => child.once("exit", resolve));
  if (code !== 0) throw new Error(`the process that parks ended with ${String(code)}`);
}

if (process.argv[1] === import.meta.filename) {
  const [directory = "", asks = "0", subjects = "1"] = process.argv.slice(2);
  // What is parked is measured, not the parking.
  process.removeAllListeners("warning");
  const herd = await createHerd({
    directory,
    agents,
    durability: "process",
    maxParkedRuns: 1,
    maxConcurrentCaller: null,
    tickMs: 0,
  });
  for (let at = 0; at < Number(asks); at += 200) {
    await Promise.all(
      Array.from({ length: Math.min(200, Number(asks) - at) }, (_, index) =>
        herd.visit({ subject: subjectAt((at + index) % Number(subjects)), start: { agent: "asks", task: "work" } }),
      ),
    );
  }
  await herd.close();
}
