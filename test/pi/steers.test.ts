import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { extension, model, piPlace, until } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

/** Compacts the session of a worker between two calls of its model, once. */
const COMPACTER = `import { existsSync, rmSync } from "node:fs";
export default (pi) => pi.on("turn_end", (event, ctx) => {
  if (process.env.PI_HERD_TOKEN === undefined || !existsSync("compact")) return;
  rmSync("compact");
  const task = ctx.sessionManager.getBranch().find(({ customType }) => customType === "herd");
  return { entries: [...event.entries, { type: "compaction", summary: "It began.", firstKeptEntryId: task.id }] };
});`;

/** Holds a compaction until it may go on. */
const HOLDER = `import { existsSync, writeFileSync } from "node:fs";
export default (pi) => pi.on("session_before_compact", async ({ preparation }) => {
  writeFileSync("compacting", "");
  while (!existsSync("compacted")) await new Promise((done) => setTimeout(done, 20));
  const { firstKeptEntryId, tokensBefore } = preparation;
  return { compaction: { summary: "It began.", firstKeptEntryId, tokensBefore } };
});`;

const waits = 'call bash {"command":"touch begun; until test -e go; do sleep 0.05; done"}';

/** What a session file says, oldest first. */
const entriesOf = (file: string): any[] =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
const steersIn = (entries: any[]) => entries.filter(({ details }) => details?.kind === "steer");

test("a steer that waits for the model survives a compaction of the worker's session", async () => {
  const place = piPlace();
  const compacter = join(place.base, "compacter.ts");
  writeFileSync(compacter, COMPACTER);
  const settings = join(place.agentDir, "settings.json");
  writeFileSync(
    settings,
    JSON.stringify({
      ...(JSON.parse(readFileSync(settings, "utf8")) as object),
      extensions: [model, extension, compacter],
    }),
  );
  const pi = new PiSession(place);
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "worker", task: task(waits, "say told: {end}") }),
    'call bash {"command":"until test -e begun; do sleep 0.05; done"}',
    subagent({ action: "steer", label: "worker", message: "mind the gap" }),
    'call bash {"command":"touch compact go"}',
    "say steered",
    "say end",
  );
  const result = await until(() => pi.herd("result")[0], "the result");
  expect(textOf(result)).toMatch(/told: mind the gap$/);
  const entries = entriesOf(result.details.result.piSessionFile);
  const kinds = entries.map(({ type, details }) => details?.kind ?? type);
  expect(steersIn(entries)).toHaveLength(1);
  expect(kinds.indexOf("compaction")).toBeGreaterThan(0);
  expect(kinds.indexOf("steer")).toBeGreaterThan(kinds.indexOf("compaction"));
});

test("a steer that its worker's process did not live to hear is told the next one, once", async () => {
  const place = piPlace();
  const pi = new PiSession(place);
  const work = task(waits.replace("-e go", "-e never"), "say one: {end}", "say two: {end}", "say three: {end}");
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "worker", task: work }),
    'call bash {"command":"until test -e begun; do sleep 0.05; done"}',
    subagent({ action: "steer", label: "worker", message: "mind the gap" }),
    "say steered",
    "say end",
  );
  await until(() => pi.texts.includes("steered"));
  await place.cut(place.workers()[0]);
  const result = await until(() => pi.herd("result")[0], "the result");
  expect(textOf(result)).toContain("status: completed");
  const entries = entriesOf(result.details.result.piSessionFile);
  expect(steersIn(entries)).toHaveLength(1);
  const heard = entries.findIndex(({ details }) => details?.kind === "steer");
  expect(entries.slice(heard).some(({ message }) => message?.role === "assistant")).toBe(true);
});

test("a result that comes while the root compacts its session stands after that, once", async () => {
  const place = piPlace({ settings: { compaction: { enabled: false, keepRecentTokens: 1 } } });
  const holder = join(place.base, "holder.ts");
  writeFileSync(holder, HOLDER);
  const pi = new PiSession(place, ["--extension", holder]);
  await pi.prompt("say one");
  await until(() => pi.texts.includes("one"));
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "worker", task: task(waits, "say through") }),
    "say assigned",
  );
  await until(() => pi.texts.includes("assigned") && existsSync(join(place.cwd, "begun")));
  const compacted = pi.ask({ type: "compact" });
  await until(() => existsSync(join(place.cwd, "compacting")), "the compaction");
  writeFileSync(join(place.cwd, "go"), "");
  await until(() => place.workers().length === 0, "the end of the worker");
  expect(pi.herd("result")).toEqual([]);
  writeFileSync(join(place.cwd, "compacted"), "");
  await compacted;
  expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toMatch(/\n\nthrough$/);
  const { sessionFile } = await pi.state();
  const kinds = entriesOf(sessionFile).map(({ type, details }) => details?.kind ?? type);
  expect(kinds.filter((kind) => kind === "result")).toHaveLength(1);
  expect(kinds.indexOf("result")).toBeGreaterThan(kinds.indexOf("compaction"));
});
