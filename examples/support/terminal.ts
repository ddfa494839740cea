import { createInterface } from "node:readline/promises";
import { createHerd, type AgentDefinition } from "pi-herd";

/**
 * Gives the task of the command line to the agent `writer`, and its questions to the person at the terminal. Killed
 * and started again, the assignment that is open goes on instead.
 */
export async function runInTerminal(name: string, agents: { writer: AgentDefinition; translator: AgentDefinition }) {
  const herd = await createHerd({ directory: `.herd/${name}`, agents });
  const owner = herd.owner("me");
  const { workers } = await owner.list();
  const open = workers.find(({ agentDefinition }) => agentDefinition === "writer")?.activeRequestId;
  const task = process.argv[2] ?? "Write a greeting for the morning";
  const run = open === undefined ? await owner.assign({ agent: "writer", task }) : await herd.assignment(open);
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  for await (const event of run) {
    if (event.type === "question")
      await event.question.reply(await terminal.question(`${event.question.question}\n> `));
    else if (event.result.status === "completed") console.log(event.result.text);
    else {
      console.error(event.result.error?.message);
      process.exitCode = 1;
    }
  }
  terminal.close();
  await herd.close();
}
