/**
 * `node launching.ts DIRECTORY`: assigns one task to a worker in a process, always under the same id, and prints what
 * became of it. Ended in the middle and run again, it has to come to one answer.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHerd, HerdError, type Result } from "../../runtime/index.ts";
import "../../runtime/testing/index.ts";
import { processBackend, processesOf } from "./processes.ts";

const [directory = ""] = process.argv.slice(2);
const definitions = join(directory, "agents");
mkdirSync(definitions, { recursive: true });
writeFileSync(join(definitions, "worker.md"), "---\ndescription: works in a process\n---\nWork.\n");

const herd = await createHerd({
  directory: join(directory, "herd"),
  definitions: [definitions],
  backends: [processBackend(directory)],
  tickMs: 20,
  waitForLockMs: 10_000,
});
const results: Result[] = [];
const owner = herd.owner("crash", { onResult: (result) => void results.push(result) });
const answers: string[] = [];
for (const id of ["launch", "launch", "next"]) {
  try {
    const run = await owner.assign({ id, agent: "worker", label: "worker", task: "Do it" });
    answers.push(`accepted ${(await run.result()).status}`);
  } catch (error) {
    if (!(error instanceof HerdError)) throw error;
    answers.push(`${error.category}${error.rollbackOccurred ? " rolled back" : ""}`);
  }
}
await herd.close();
const left = processesOf(directory).length;
console.log(JSON.stringify({ answers, results: results.length, processes: left }));
