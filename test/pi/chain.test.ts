import { expect, test } from "vitest";
import { piPlace, until, type PiPlace } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

/** Ends everything that runs, as a power cut does. */
async function blackout(place: PiPlace, pi: PiSession): Promise<string> {
  const { sessionFile } = await pi.state();
  await pi.kill();
  await place.cut(place.host());
  await until(() => place.workers().length === 0, "the end of the workers");
  return sessionFile as string;
}

test("root, parent and child: with everything killed between every step each assignment ends with one result", async () => {
  const place = piPlace();
  const childTask = task('call ask_owner {"question":"child: which colour?"}', "say child took: {last}");
  const parentTask = task(
    subagent({ action: "assign", agent: "scout", label: "child", task: childTask }),
    "say waiting for the child",
    'call ask_owner {"question":"parent: which colour for the child?"}',
    subagent({ action: "reply", label: "child", message: "green, says the root" }),
    "say waiting for its result",
    "say parent has: {last}",
  );
  let pi = new PiSession(place);
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "parent", task: parentTask }),
    "say assigned",
    "say the question is here",
  );
  await until(() => pi.texts.includes("the question is here"), "the parent's question", 60_000);
  expect(pi.herd("question").map(textOf)).toEqual([expect.stringContaining("parent: which colour for the child?")]);
  const requestOf = (session: PiSession, kind: string) => session.herd(kind)[0]?.details.requestId;
  const request = requestOf(pi, "question");

  // Both wait with their questions.
  let file = await blackout(place, pi);
  pi = new PiSession(place, ["--session", file]);
  await pi.prompt(
    subagent({ action: "reply", label: "parent", message: "green" }),
    "say replied",
    "say root has: {last}",
  );
  await until(() => pi.texts.includes("replied"), "the reply", 60_000);

  // The parent goes on, and answers its child.
  file = await blackout(place, pi);
  pi = new PiSession(place, ["--session", file]);
  const result = await until(() => pi.herd("result")[0], "the parent's result", 90_000);
  expect(textOf(result)).toContain("status: completed");
  expect(textOf(result)).toMatch(/parent has: .*label: child/s);
  expect(textOf(result)).toContain("green, says the root");
  expect(result.details.requestId).toBe(request);
  await until(() => pi.texts.some((text) => text.startsWith("root has: ")), "the end", 60_000);

  file = await blackout(place, pi);
  pi = new PiSession(place, ["--session", file]);
  await pi.prompt("say all quiet");
  await until(() => pi.texts.includes("all quiet"));
  expect([pi.herd("question").length, pi.herd("result").length]).toEqual([0, 0]);
}, 240_000);
