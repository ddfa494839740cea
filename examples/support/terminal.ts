import { createInterface } from "node:readline/promises";
import { createHerd, type AgentDefinition } from "pi-herd";

/**
 * Gives the task of the command line to the agent `writer`, and its questions to the person at the terminal. The task
 * is the assignment's id as well: killed and started again with the same words, the same assignment goes on.
 */
export async function runInTerminal(name: string, agents: Record<string, AgentDefinition>): Promise<void> {
  const task = process.argv[2] ?? "Write a greeting for the morning";
  const herd = await createHerd({ directory: `.herd/${name}`, agents });
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  for await (const event of await herd.owner("me").assign({ id: task, agent: "writer", task })) {
    if (event.type === "question")
      await event.question.reply(await terminal.question(`${event.question.question}\n> `));
    else console.log(event.result.error?.message ?? event.result.text);
  }
  terminal.close();
  await herd.close();
}
