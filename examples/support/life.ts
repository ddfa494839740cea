/**
 * One life of a program that runs an example on a folder, from its start to its end or until it is killed:
 *
 * `node --import ./checkout.ts life.ts EXAMPLE FOLDER [POINT]`
 *
 * It prints what happens after that is on disk. At the point it is told it prints the point's name and stands still,
 * so that what kills it then kills it exactly there.
 */
import { appendFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { createHerd, type AgentDefinition, type Worker } from "pi-herd";
import { ANSWER, examples, type ExampleName } from "./scripted.ts";

const [example, folder, point] = process.argv.slice(2) as [ExampleName, string, string?];

/** A point that every life passes, and one stands still at. */
async function reach(name: string): Promise<void> {
  if (name !== point) return;
  console.log(name);
  await new Promise(() => undefined);
}

/** The agent as it is, with points at its start and after everything that its worker has journalled. */
function watched(name: string, agent: AgentDefinition): AgentDefinition {
  return {
    ...agent,
    async run(task, worker) {
      await reach(`${name} starts`);
      return agent.run(task, watchedWorker(name, worker));
    },
  };
}

function watchedWorker(name: string, worker: Worker): Worker {
  let steps = 0;
  const step: Worker["step"] = async (...given) => {
    const value = await worker.step(...given);
    await reach(`${name} has turn ${++steps}`);
    return value;
  };
  const askOwnerTool: Worker["askOwnerTool"] = async (...given) => {
    const answer = await worker.askOwnerTool(...given);
    await reach(`${name} has the answer`);
    return answer;
  };
  const assign: Worker["assign"] = async (request) => {
    const child = await worker.assign(request);
    const result = child.result.bind(child);
    child.result = async (options) => {
      const read = await result(options);
      await reach(`${name} has the child's result`);
      return read;
    };
    return child;
  };
  return Object.assign(Object.create(worker) as Worker, { step, askOwnerTool, assign });
}

// It does not outlive the test that started it, nor end while it stands still.
process.stdin.on("end", () => process.exit(1)).resume();

const called = join(folder, "model-calls");
const { writer, translator } = await examples[example]((name) => appendFileSync(called, `${name}\n`));
// Written at the end otherwise, which a kill leaves out; the next life starts in half the time.
flushCompileCache();
const herd = await createHerd({
  directory: join(folder, "herd"),
  agents: { writer: watched("writer", writer), translator: watched("translator", translator) },
});
herd.on("state", ({ from, runId, agent }) => {
  if (from === undefined) console.log(`new ${agent} ${runId}`);
});
herd.on("held", ({ diagnostic }) => {
  console.error(diagnostic);
  process.exit(1);
});
const owner = herd.owner("me", {
  async onQuestion(question) {
    console.log(`asked ${question.askId} ${question.question}`);
    await reach("the question waits");
    await question.reply(ANSWER);
  },
  onResult: ({ requestId, text }) => console.log(`result ${requestId} ${text}`),
});
const run = await owner.assign({ id: "greeting", agent: "writer", task: "Write a greeting" });
const { requestId, status, text } = await run.result();
console.log(`${status} ${requestId} ${text}`);
await herd.close();
process.exit(0);
