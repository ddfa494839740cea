import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createHerd, tools, type HerdOptions } from "pi-herd";
import { rules } from "../../machines/eligibility.ts";
import { openStage, runPage, until, type Directions, type Stage } from "./book.ts";
import { firstCells, page, sectionOf } from "./page.ts";

const text = await page("ask_owner.md");

/** The worker asks, and its owner hears it. */
async function asks({ t, at }: Stage, task: string, question: string): Promise<void> {
  const had = t.owner.questions.length;
  const { worker } = await at(task);
  void worker.askOwner({ question }).catch(() => undefined);
  await until(() => t.owner.questions.length > had);
}

const before: Directions = {
  "The question": async ({ t, at }) => {
    await t.owner.assign({ agent: "implementer", task: "Make the checkout tests pass" });
    await t.owner.assign({ agent: "implementer", task: "Make the cart tests pass" });
    await Promise.all([at("Make the checkout tests pass"), at("Make the cart tests pass")]);
  },
  "One reply wins": (stage) => asks(stage, "Make the checkout tests pass", "What about the snapshots?"),
  Close: (stage) => asks(stage, "Make the cart tests pass", "May I?"),
};

/** `createHerd` as the page calls it, with the folder elsewhere. */
async function createHerdHere(options: HerdOptions<object>) {
  const directory = await mkdtemp(join(tmpdir(), "herd-docs-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return createHerd({ ...options, directory } as HerdOptions<Record<string, never>>);
}

describe("the page on ask_owner", () => {
  test("shows examples that do what it says", async () => {
    const stage = await openStage((play) => ({
      implementer: { description: "Makes one change and tests it", run: play },
    }));
    const compared = await runPage(text, stage, {
      before,
      asking: ({ at }) => at("Make the checkout tests pass"),
      given: async ({ t, at }) => ({
        worker: (await at("Make the cart tests pass")).worker,
        question: t.owner.questions.at(-1),
        createHerd: createHerdHere,
      }),
    });
    expect(compared).toBeGreaterThan(6);
  });

  test("lists the reasons why not in their order", () => {
    expect(firstCells(sectionOf(text, "When a worker may ask"))).toEqual(rules.askOwner.map(({ reason }) => reason));
  });

  test("lists the fields that the tool takes", () => {
    expect(firstCells(sectionOf(text, "The question"))).toEqual(Object.keys(tools.askOwner.inputSchema.properties));
  });
});
