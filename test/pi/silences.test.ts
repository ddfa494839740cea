import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { logFolder } from "../../adapters/host/place.ts";
import { runNode, serve, statusOf } from "../support/pi/client.ts";
import { piCli, piPlace, until, type PiPlace } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

const MINUTES = 60_000;
/** What the host notes. */
const TOLD = "its owner was told of its silence";
const clock = fileURLToPath(new URL("../support/pi/shifted-clock.ts", import.meta.url));

/** A host whose clock the test moves. */
async function hostAhead(place: PiPlace) {
  const file = join(place.base, "ahead");
  let ahead = 0;
  const move = (ms: number) => writeFileSync(file, String((ahead += ms)));
  move(0);
  serve(place, [], { NODE_OPTIONS: `--import ${clock}`, SHIFTED_CLOCK: file });
  await until(() => statusOf(place).then(() => true), "the host");
  return move;
}

/** Says nothing until a file is there. */
const silently = (place: PiPlace, name: string) => ({
  begins: task(
    `call bash {"command":"touch ${name}-began; until test -e ${name}-go; do sleep 0.05; done"}`,
    `say ${name} is through`,
  ),
  began: () => until(() => existsSync(join(place.cwd, `${name}-began`)), `the turn of ${name}`),
  go: () => writeFileSync(join(place.cwd, `${name}-go`), ""),
});

test("a session is told once that a worker of its own is silent, also when it comes back later, and no other session", async () => {
  const place = piPlace();
  const move = await hostAhead(place);
  const one = silently(place, "one");
  const pi = new PiSession(place);
  const other = new PiSession(place);
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "one", task: one.begins }),
    "say assigned",
    "say warned",
    "say got {end}",
  );
  await other.prompt(subagent({ action: "list" }), "say listed");
  await one.began();
  await until(() => pi.texts.includes("assigned") && other.texts.includes("listed"));
  await untilNoted(place, move, TOLD, "one");
  const said = await until(() => pi.herd("silence")[0], "the advice");
  expect(textOf(said)).toMatch(/^"one" is at work and has given no sign of life for \d+ minutes\. .*"action":"steer"/s);
  expect(said.details).toMatchObject({ label: "one", agent: "generalist" });
  await until(() => pi.texts.includes("warned"), "what its model says to it");

  // The same silence is no news, to a session that is opened again either.
  const { sessionFile } = await pi.state();
  await pi.quit();
  const again = new PiSession(place, ["--session", sessionFile]);
  await again.state();
  move(MINUTES);
  one.go();
  await until(
    () => again.texts.includes("got one is through"),
    () => JSON.stringify(again.texts),
  );
  expect([...pi.herd("silence"), ...again.herd("silence")]).toHaveLength(1);
  expect(other.herd("silence")).toEqual([]);

  // Nobody is there to be told: whoever opens the session is.
  const two = silently(place, "two");
  await again.prompt(
    subagent({ action: "assign", agent: "generalist", label: "two", task: two.begins }),
    "say assigned",
    "say warned of {last}",
    "say got {end}",
  );
  await two.began();
  await until(() => again.texts.includes("assigned"));
  await again.quit();
  await untilNoted(place, move, "worker is silent", "two");
  const later = new PiSession(place, ["--session", sessionFile]);
  await later.state();
  await untilNoted(place, move, TOLD, "two");
  expect(await until(() => later.herd("silence")[0], "the advice")).toMatchObject({ details: { label: "two" } });
  await later.prompt(subagent({ action: "close", label: "two" }), "say closed");
  await until(() => later.texts.includes("closed"));
});

test("a parent is told of its own worker and goes on waiting for its result; its owner is not", async () => {
  const place = piPlace();
  const move = await hostAhead(place);
  const child = silently(place, "child");
  const pi = new PiSession(place);
  const parentTask = task(
    subagent({ action: "assign", agent: "implementer", label: "child", task: child.begins }),
    "say waiting",
    "say patient",
    "say whole: {end}",
  );
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "parent", task: parentTask }),
    "say assigned",
    "say got {end}",
  );
  await child.began();
  await until(() => pi.texts.includes("assigned"));
  await untilNoted(place, move, TOLD, "child");
  child.go();
  await until(
    () => pi.texts.includes("got whole: child is through"),
    () => JSON.stringify(pi.texts),
  );
  expect(pi.herd("silence")).toEqual([]);
  expect(pi.herd("result")).toHaveLength(1);
  const session = readFileSync(pi.herd("result")[0]!.details.result.piSessionFile, "utf8");
  expect(session.match(/"kind":"silence"/g)).toHaveLength(1);
  expect(session).toContain("patient");
});

test("a session without a screen waits on for the result, and says on stderr what takes so long", async () => {
  const place = piPlace();
  const move = await hostAhead(place);
  const slow = silently(place, "slow");
  const steps = [
    subagent({ action: "assign", agent: "generalist", label: "slow", task: slow.begins }),
    "say assigned",
    "say got {end}",
  ];
  const { ended } = runNode(place, [piCli, "-p", task(...steps)]);
  await slow.began();
  await untilNoted(place, move, TOLD, "slow");
  slow.go();
  const { stdout, stderr } = await ended;
  expect(stdout.trim()).toBe("got slow is through");
  expect(stderr).toMatch(/^herd: "slow" is at work and has given no sign of life for \d+ minutes\. .*\n$/);
});

/**
 * Lets ten minutes pass until the host has noted it of a worker. What it did last may still be on its way to the host when
 * they pass: then it has been silent from there on.
 */
async function untilNoted(place: PiPlace, move: (ms: number) => void, what: string, label: string): Promise<void> {
  for (let tries = 0; !noted(place, what, label); tries++) {
    if (tries === 5) throw new Error(`the host did not note of ${label}: ${what}`);
    move(11 * MINUTES);
    const late = Date.now() + 3_000;
    await until(() => noted(place, what, label) || Date.now() > late);
  }
}

/** Whether the host has noted it of a worker. */
function noted(place: PiPlace, what: string, label: string): boolean {
  const lines = readFileSync(join(logFolder(place.herd), "host.log"), "utf8")
    .split("\n")
    .filter(Boolean);
  return lines.some((line) => {
    const said = JSON.parse(line);
    return said.msg === what && said.label === label;
  });
}
