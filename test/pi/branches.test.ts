import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { piPlace, until } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

/** What a person does with /tree. */
const GOTO = `export default (pi) => pi.registerCommand("goto", {
  handler: async (id, ctx) => void (await ctx.navigateTree(id, { summarize: false })),
});`;

test("a question that a branch of the session lacks is shown there once, and not again where it stands", async () => {
  const place = piPlace();
  const goto = join(place.base, "goto.ts");
  writeFileSync(goto, GOTO);
  const pi = new PiSession(place, ["--extension", goto]);
  const asks = task('call ask_owner {"question":"Which colour?"}', "say I took {end}");
  await pi.prompt(
    subagent({ action: "assign", agent: "scout", task: asks }),
    "say assigned",
    "say seen",
    subagent({ action: "reply", label: "scout", message: "blue" }),
    "say replied",
    "say got {end}",
  );
  await until(() => pi.texts.includes("seen"));
  const { entries } = await pi.ask({ type: "get_entries" });
  const [, , before] = entries.filter(({ message }: any) => message?.role === "assistant" || message?.role === "user");
  const old = entries.at(-1).id as string;
  const seen = () => pi.texts.filter((text) => text === "seen").length;

  await pi.ask({ type: "prompt", message: `/goto ${before.id}` });
  await until(() => seen() === 2, "the model to see the question on the new branch");
  const asked = pi.herd("question");
  expect(asked.map(textOf)).toEqual([expect.stringContaining("Which colour?"), textOf(asked[0]!)]);
  expect(asked[1]!.details.askId).toBe(asked[0]!.details.askId);

  // Back where it stands already, and forth again.
  const { entries: more } = await pi.ask({ type: "get_entries" });
  for (const id of [old, more.at(-1).id as string]) await pi.ask({ type: "prompt", message: `/goto ${id}` });
  await pi.ask({ type: "prompt", message: "go on" });
  await until(
    () => pi.texts.some((text) => text.startsWith("got ")),
    () => JSON.stringify(pi.texts),
  );
  expect(pi.herd("question")).toHaveLength(2);
  expect(pi.herd("result").map(textOf)).toEqual([expect.stringMatching(/I took blue$/)]);
});
