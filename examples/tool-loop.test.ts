import { describe, expect, test } from "vitest";
import type { AgentDefinition, Worker } from "pi-herd";
import { createTestHerd, type TestHerd } from "pi-herd/testing";
import { promises } from "./support/suite.ts";
import { toolLoop, type Message, type Model, type Turn } from "./tool-loop.ts";

describe("the example tool-loop", () => {
  promises("tool-loop");

  const call = (name: string, input: Turn["toolCalls"][number]["input"] = {}, id = name) => ({ id, name, input });
  const said = (messages: Message[]) => messages.map((message) => `${message.role}: ${contentOf(message)}`);
  const contentOf = (message: Message) =>
    message.role === "assistant"
      ? message.text || message.toolCalls.map(({ name }) => name).join(" ")
      : message.content;

  /** A model that says these turns one after the other, and what it was told before each. */
  function scripted(...turns: Partial<Turn>[]) {
    const told: string[][] = [];
    const model: Model = async ({ messages }) => {
      const turn = turns[told.length];
      told.push(said(messages));
      return { text: "", toolCalls: [], ...turn };
    };
    return { told, agent: toolLoop(model, { description: "under test", instructions: "Work." }) };
  }

  /** The same agent, with something that happens after each step is journalled and before it returns. */
  function afterSteps(agent: AgentDefinition, happens: (name: string) => Promise<void>): AgentDefinition {
    const run = (task: string, worker: Worker) => {
      const step: Worker["step"] = async (name, ...given) => {
        const value = await worker.step(name, ...given);
        await happens(name);
        return value;
      };
      return agent.run(task, Object.assign(Object.create(worker) as Worker, { step }));
    };
    return { ...agent, run };
  }

  /** What the agent `it` ends with, whose program is killed while its question waits. */
  async function answeredAfterACrash(t: TestHerd): Promise<string> {
    await t.owner.assign({ agent: "it", task: "Go" });
    const { askId } = await t.question();
    await t.crash();
    await t.owner.reply({ askId, message: "yes" });
    return (await t.result()).text;
  }

  test("a steer becomes a user message, and keeps its place when the function starts again", async () => {
    const { told, agent } = scripted(
      { toolCalls: [call("look")] },
      { toolCalls: [call("ask_owner", { question: "Sure?" })] },
      { text: "done" },
    );
    const steered = afterSteps(agent, async (name) => {
      // Said after the first turn, before the second.
      if (name === "tool look" && told.length === 1) await t.owner.steer({ label: "it", message: "Be quick." });
    });
    const t = await createTestHerd({ agents: { it: steered }, parkAfter: 0 });
    expect(await answeredAfterACrash(t)).toBe("done");
    expect(told).toHaveLength(3);
    expect(told[2]).toEqual([
      "system: Work.",
      "user: Go",
      "assistant: look",
      'tool: There is no tool "look".',
      "user: Be quick.",
      "assistant: ask_owner",
      "tool: yes",
    ]);
    expect(told[1]).toEqual(told[2]?.slice(0, 5));
  });

  test("a steer that comes with the last turn gets a turn of its own, also when the function starts again", async () => {
    const { told, agent } = scripted(
      { text: "done" },
      { toolCalls: [call("ask_owner", { question: "Sure?" })] },
      { text: "done again" },
    );
    const steered = afterSteps(agent, async () => {
      if (told.length === 1) await t.owner.steer({ label: "it", message: "Wait." });
    });
    const t = await createTestHerd({ agents: { it: steered } });
    expect(await answeredAfterACrash(t)).toBe("done again");
    expect(told[2]).toEqual([
      "system: Work.",
      "user: Go",
      "assistant: done",
      "user: Wait.",
      "assistant: ask_owner",
      "tool: yes",
    ]);
  });

  test("a question beside another tool call is refused, and the model may ask it again alone", async () => {
    const asks = call("ask_owner", { question: "Sure?" });
    const { told, agent } = scripted(
      { toolCalls: [call("look"), asks] },
      { toolCalls: [{ ...asks, id: "again" }] },
      { text: "done" },
    );
    const t = await createTestHerd({ agents: { it: agent } });
    expect(await answeredAfterACrash(t)).toBe("done");
    expect(told).toHaveLength(3);
    expect(told[1]?.at(-1)).toMatch(/^tool: The worker cannot ask its owner: /);
    expect(told[2]?.at(-1)).toBe("tool: yes");
  });
});
