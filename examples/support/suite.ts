import { expect, test } from "vitest";
import { createTestHerd, memoryStore } from "pi-herd/testing";
import { Lives, POINTS } from "./killed.ts";
import { ANSWER, CALLS, examples, RESULT, type ExampleName } from "./scripted.ts";

/** What every example promises. */
export function promises(example: ExampleName): void {
  test.each([
    ["in memory", undefined],
    ["outside memory", 0],
  ])("tells its model the answer and the child's result, waiting %s", async (_where, parkAfter) => {
    const calls: { name: string; read: string }[] = [];
    const agents = await examples[example]((name, read) => calls.push({ name, read }));
    const t = await createTestHerd({ agents, ...(parkAfter !== undefined && { parkAfter }) });
    await t.owner.assign({ agent: "writer", task: "Write a greeting" });
    const { askId, question } = await t.question();
    expect(question).toBe("In which language?");
    await t.owner.reply({ askId, message: ANSWER });
    expect((await t.result()).text).toBe(RESULT);
    expect(calls.map(({ name }) => name)).toEqual(CALLS);
    const [ask, delegate, translate, conclude] = calls.map(({ read }) => read);
    expect(ask).not.toContain(ANSWER);
    expect(delegate).toContain(ANSWER);
    expect(translate).toContain(`into ${ANSWER}`);
    expect(conclude).toContain("huomenta");
    expect(t.owner.questions).toHaveLength(1);
    expect(t.owner.results).toHaveLength(1);
    await t.close();
  });

  test("goes on with the same question after the program was closed while it waited", async () => {
    const calls: string[] = [];
    const agents = await examples[example]((name) => calls.push(name));
    const store = memoryStore();
    const before = await createTestHerd({ agents, store });
    await before.owner.assign({ agent: "writer", task: "Write a greeting" });
    const { askId } = await before.question();
    await before.herd.close({ graceMs: 5_000 });
    const after = await createTestHerd({ agents, store });
    await after.owner.reply({ askId, message: ANSWER });
    expect((await after.result()).text).toBe(RESULT);
    expect([...before.owner.results, ...after.owner.results]).toHaveLength(1);
    expect(calls).toEqual(CALLS);
    await after.close();
  });

  test("killed at every point of one assignment it pays no journalled turn twice", { timeout: 120_000 }, async () => {
    const lives = await Lives.of(example);
    for (const point of POINTS) await lives.live(point);
    await lives.live();
    // The work is done: one more life finds the result and does nothing.
    await lives.live();

    expect(await lives.calls()).toEqual(CALLS);
    const [result] = lives.told("result");
    expect(result).toMatch(new RegExp(`^\\S+ ${RESULT}$`));
    expect(lives.told("result")).toEqual([result]);
    expect(lives.told("completed")).toEqual([result, result]);
    const asked = new Set(lives.told("asked"));
    expect([...asked]).toEqual([expect.stringMatching(/^\S+ In which language\?$/)]);
    expect(lives.told("new")).toEqual([expect.stringMatching(/^writer /), expect.stringMatching(/^translator /)]);
  });
}
