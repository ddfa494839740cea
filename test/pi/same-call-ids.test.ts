import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { model, piPlace, until } from "../support/pi/place.ts";
import { PiSession, subagent, task } from "../support/pi/session.ts";

/** A session whose model's server numbers the calls of each message anew, as servers of local models do. */
function sessionOf(): PiSession {
  const place = piPlace();
  const file = join(place.base, "model.ts");
  const source = readFileSync(model, "utf8").replace("./story.ts", join(model, "../story.ts"));
  const anew = source.replace('JSON.parse(input || "{}"))], {', 'JSON.parse(input || "{}"), { id: "call_0" })], {');
  expect(anew).not.toBe(source);
  writeFileSync(file, anew);
  const settings = join(place.agentDir, "settings.json");
  const all = JSON.parse(readFileSync(settings, "utf8"));
  const extensions = all.extensions.map((each: string) => (each === model ? file : each));
  writeFileSync(settings, JSON.stringify({ ...all, extensions }));
  return new PiSession(place);
}

test("a model whose calls have the same ids delegates the same task once more, and another one", async () => {
  const pi = sessionOf();
  const assign = (label: string, step: string) =>
    subagent({ action: "assign", agent: "scout", label, task: task(step) });
  for (const call of [assign("one", "say first"), assign("one", "say first"), assign("two", "say second")]) {
    const before = pi.herd("result").length;
    await pi.prompt(call, "say assigned", "say got {end}");
    await until(
      () => pi.herd("result").length > before,
      () => JSON.stringify(pi.toolResults("subagent").at(-1)),
    );
  }
  await until(() => pi.texts.includes("got second"));
  expect(pi.texts.filter((text) => text.startsWith("got"))).toEqual(["got first", "got first", "got second"]);
});
