import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { logFolder } from "../../adapters/host/place.ts";
import { version } from "../../adapters/pi/version.ts";
import { Root, serve } from "../support/pi/client.ts";
import { piPlace, until, type PiPlace } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

/** Something stands in the host's log. */
const noted = (place: PiPlace, what: string) =>
  until(() => {
    const folder = logFolder(place.herd);
    return readdirSync(folder).some((name) => readFileSync(join(folder, name), "utf8").includes(what));
  }, `the log to say: ${what}`);

test("a worker that is started again has the environment of its session, whoever started the host", async () => {
  const place = piPlace();
  const pi = new PiSession(place, [], { FLAVOUR: "sweet" });
  const says = 'call bash {"command":"echo then [$FLAVOUR]"}';
  const waits = 'call bash {"command":"touch begun; until test -e never; do sleep 0.05; done"}';
  await pi.prompt(
    subagent({
      action: "assign",
      agent: "generalist",
      label: "worker",
      task: task(waits, says, says, "say got {last}"),
    }),
    "say assigned",
    "say end",
  );
  await until(() => existsSync(join(place.cwd, "begun")) && pi.texts.includes("assigned"), "the turn");
  // Another session of the same user, without that variable, is the first to look for a host.
  process.kill(pi.child.pid as number, "SIGSTOP");
  await place.cut(place.host());
  serve(place);
  await Root.of(place, "another");
  await noted(place, "the worker waits for its session to come");
  process.kill(pi.child.pid as number, "SIGCONT");
  expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toContain("[sweet]");
});

test("a worker whose key is in the environment of its session waits for that session", async () => {
  const place = piPlace();
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await new Promise((done) => silent.once("listening", done));
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as AddressInfo;
  const models = [{ id: "one", contextWindow: 200_000, maxTokens: 8_192 }];
  const slow = { baseUrl: `http://127.0.0.1:${port}/v1`, api: "openai-completions", apiKey: "$SLOW_KEY", models };
  writeFileSync(join(place.agentDir, "models.json"), JSON.stringify({ providers: { slow } }));
  const says = { model: "slow/one", env: { ...place.env, SLOW_KEY: "secret" } };
  const host = serve(place);
  const root = await Root.of(place, "one", version, says);
  await root.assign("worker", "work");
  await until(async () => (await root.worker("worker"))?.state === "working", "work");
  await place.cut(host.child.pid);
  serve(place);
  await Root.of(place, "another");
  await noted(place, "the worker waits for the key that its session may have");
  await until(() => place.workers().length === 0, "the end of its process");
  const again = await Root.of(place, "one", version, says);
  await until(() => place.workers().length === 1, "its next process");
  expect(await again.worker("worker")).toMatchObject({ state: "working" });
  expect(await again.subagent({ action: "close", label: "worker" })).toMatchObject({ ok: true });
});
