import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { piPlace, until, type PiPlace } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

/** What a worker was told counts as heard before its session file holds it; here its process is killed in between. */

/** A place where workers stop for ever at one moment, until a file says that they need not any more. */
function placeThatStops(event: string, condition = "true"): PiPlace {
  const place = piPlace();
  const file = join(place.base, "stops.ts");
  writeFileSync(
    file,
    `import { existsSync, writeFileSync } from "node:fs";
    export default (pi) => pi.on("${event}", async ({ message }) => {
      if (!process.env.PI_HERD_TOKEN || existsSync("goes-on") || !(${condition})) return;
      writeFileSync("stands", "");
      await new Promise(() => undefined);
    });`,
  );
  const settings = join(place.agentDir, "settings.json");
  const all = JSON.parse(readFileSync(settings, "utf8"));
  writeFileSync(settings, JSON.stringify({ ...all, extensions: [...all.extensions, file] }));
  return place;
}

const whenItHears = (kind: string) => placeThatStops("message_end", `message.details?.kind === "${kind}"`);

/** Kills the worker where it stands, once that is known to have come in. */
async function killStanding(place: PiPlace): Promise<void> {
  await until(() => existsSync(join(place.cwd, "stands")), "the worker to stand still");
  writeFileSync(join(place.cwd, "goes-on"), "");
  await place.cut(place.workers()[0]);
}

test("a task whose worker is killed in its first call of the model is told the next process", async () => {
  const place = placeThatStops("turn_start");
  const pi = new PiSession(place);
  await pi.prompt(
    subagent({ action: "assign", agent: "scout", label: "worker", task: task("say found it") }),
    "say assigned",
    "say got it",
  );
  await until(() => pi.texts.includes("assigned"));
  await killStanding(place);
  expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toMatch(/\n\nfound it$/);
});

test("the next task of a worker that is killed before that stands in its session does not end with the last result", async () => {
  const place = placeThatStops("message_end", `String(message.content).includes("second")`);
  const pi = new PiSession(place);
  await pi.prompt(
    subagent({ action: "assign", agent: "scout", label: "worker", reusable: true, task: task("say the first") }),
    "say assigned",
    "say got the first",
  );
  await until(() => pi.texts.includes("got the first"));
  await pi.prompt(
    subagent({ action: "assign", label: "worker", task: task("say the second") }),
    "say assigned again",
    "say got the second",
  );
  await until(() => pi.texts.includes("assigned again"));
  await killStanding(place);
  expect(textOf(await until(() => pi.herd("result")[1], "the second result"))).toMatch(/\n\nthe second$/);
});

test("an answer whose worker is killed before that stands in its session is told the next process", async () => {
  const place = whenItHears("answer");
  const pi = new PiSession(place);
  await pi.prompt(
    subagent({
      action: "assign",
      agent: "scout",
      label: "worker",
      task: task('call ask_owner {"question":"Which colour?"}', "say I took {last}"),
    }),
    "say assigned",
    subagent({ action: "reply", label: "worker", message: "blue" }),
    "say replied",
    "say got it",
  );
  await killStanding(place);
  const result = textOf(await until(() => pi.herd("result")[0], "the result"));
  expect(result).toContain("I took");
  expect(result).toContain("blue");
});

test("a steer whose worker is killed before that stands in its session is told the next process", async () => {
  const place = whenItHears("steer");
  const pi = new PiSession(place);
  const waits = 'call bash {"command":"touch begun; until test -e steered; do sleep 0.05; done"}';
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "worker", task: task(waits, "say {last}", "say {last}") }),
    subagent({ action: "steer", label: "worker", message: "mind the gap" }),
    "say steered",
    "say got it",
  );
  await until(() => pi.texts.includes("steered"));
  writeFileSync(join(place.cwd, "steered"), "");
  await killStanding(place);
  const result = await until(() => pi.herd("result")[0], "the result");
  const session = readFileSync(result.details.result.piSessionFile, "utf8");
  expect(session.match(/"kind":"steer"/g)).toHaveLength(1);
});

test("a worker whose session file is gone fails as lost, and does not begin anew", async () => {
  const place = piPlace();
  const pi = new PiSession(place);
  await pi.prompt(
    subagent({
      action: "assign",
      agent: "scout",
      label: "worker",
      task: task('call ask_owner {"question":"Which colour?"}', "say I took {last}"),
    }),
    "say assigned",
    subagent({ action: "list" }),
    "say asked",
    "say got it",
  );
  await until(() => pi.texts.includes("asked"));
  const [{ pi_session_path: file }] = pi.toolResults("subagent").at(-1)!.details.workers;
  await place.cut(place.workers()[0]);
  rmSync(file);
  await pi.prompt(subagent({ action: "reply", label: "worker", message: "blue" }), "say replied", "say got it");
  const result = textOf(await until(() => pi.herd("result")[0], "the result"));
  expect(result).toContain("worker_lost");
  expect(result).toContain(`${file} is gone`);
});
