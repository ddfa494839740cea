import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { piPlace, until } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

/** A definition as the last list has it. */
const definitionOf = (pi: PiSession, name: string) =>
  pi
    .toolResults("subagent")
    .findLast(({ details }) => details.agent_definitions !== undefined)
    ?.details.agent_definitions.find((each: any) => each.name === name);

test("a parent that has delegated ends its turn, is woken by the result, and nothing is left when all are through", async () => {
  const place = piPlace();
  writeFileSync(join(place.cwd, "kept.txt"), "as it was\n");
  const pi = new PiSession(place);
  const parentTask = task(
    subagent({ action: "assign", agent: "scout", label: "child", task: task("say half of it") }),
    "say waiting",
    "say whole: mine and {end}",
  );
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "parent", task: parentTask }),
    "say assigned",
    "say got {end}",
  );
  await until(
    () => pi.texts.includes("got whole: mine and half of it"),
    () => JSON.stringify(pi.texts),
  );
  // One result for the root, and one call for the parent: neither looked how far the other was.
  const [result] = pi.herd("result");
  expect(pi.herd("result")).toHaveLength(1);
  expect(pi.toolResults("subagent")).toHaveLength(1);
  const entries = readFileSync(result!.details.result.piSessionFile, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(entries.filter(({ message }) => message?.role === "toolResult")).toHaveLength(1);
  expect(entries.filter(({ customType }) => customType === "herd").map(({ details }) => details.kind)).toEqual([
    "task",
    "result",
  ]);

  const left = () =>
    ["prompts", "processes"].flatMap((name) => {
      const folder = join(place.herd, name);
      return existsSync(folder) ? readdirSync(folder) : [];
    });
  await until(
    () => left().length === 0 && place.workers().length === 0,
    () => left().join(", "),
  );
  await pi.prompt(subagent({ action: "list" }), "say listed");
  await until(() => pi.texts.includes("listed"));
  expect(textOf(pi.toolResults("subagent").at(-1)!)).toContain("No workers");
  expect(readdirSync(place.cwd)).toEqual(["kept.txt"]);
  expect(readFileSync(join(place.cwd, "kept.txt"), "utf8")).toBe("as it was\n");
});

test("a parent whose model answers at once answers the question that it has just read", async () => {
  const place = piPlace();
  const pi = new PiSession(place);
  const childTask = task('call ask_owner {"question":"Which?"}', "say child got {end}");
  const parentTask = task(
    subagent({ action: "assign", agent: "scout", label: "child", task: childTask }),
    "say waiting",
    subagent({ action: "reply", label: "child", message: "this one" }),
    "say answered: {last}",
    "say whole: {end}",
  );
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "parent", task: parentTask }),
    "say assigned",
    "say got {end}",
  );
  await until(
    () => pi.texts.some((text) => text.startsWith("got")),
    () => JSON.stringify(pi.texts),
  );
  expect(pi.texts).toContain("got whole: child got this one");
});

test("an overlay's body file reaches the worker; without the overlay the list says nothing of it", async () => {
  const overlay = "---\nname: scout\nbodyMode: append\n---\n\n@../rules.md\n";
  const place = piPlace({ agents: { scout: overlay } });
  writeFileSync(join(place.agentDir, "rules.md"), "Here everything is counted twice.\n");
  const pi = new PiSession(place);
  await pi.prompt(
    subagent({ action: "list" }),
    subagent({ action: "assign", agent: "scout", task: task("say done") }),
    "say assigned",
    "say end",
  );
  const result = await until(() => pi.herd("result")[0], "the result");
  const session = readFileSync(result.details.result.piSessionFile, "utf8");
  expect(session).toContain("Here everything is counted twice.");
  await until(() => pi.texts.includes("end"));
  expect(definitionOf(pi, "scout")).toMatchObject({ extensionSource: "bundled", overrideSource: "global" });
  rmSync(join(place.agentDir, "agents", "scout.md"));
  await pi.prompt(subagent({ action: "list" }), "say listed");
  await until(() => pi.texts.includes("listed"));
  expect(definitionOf(pi, "scout")).not.toHaveProperty("overrideSource");
  expect(readdirSync(place.cwd)).toEqual([]);
});
