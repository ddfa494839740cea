import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { piPlace, runHerd, until, type PiPlace } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

const asking = task('call ask_owner {"question":"Which colour?"}', "say I took {last}");
const atWork = (file: string) =>
  task(
    `call bash {"command":"touch begun; until test -e ${file}; do sleep 0.05; done"}`,
    "say worked: {last}",
    "say worked again: {last}",
  );

/** A place with an extension of the test beside ours. */
function placeWith(source: string): PiPlace {
  const place = piPlace();
  const file = join(place.base, "other.ts");
  writeFileSync(file, source);
  const settings = join(place.agentDir, "settings.json");
  const all = JSON.parse(readFileSync(settings, "utf8"));
  writeFileSync(settings, JSON.stringify({ ...all, extensions: [...all.extensions, file] }));
  return place;
}

describe("after a kill", () => {
  test("of the host while a question is open, the reply reaches the same assignment", async () => {
    const place = piPlace();
    const pi = new PiSession(place);
    await pi.prompt(subagent({ action: "assign", agent: "scout", task: asking }), "say assigned", "say seen");
    await until(() => pi.herd("question").length === 1, "the question");
    await until(() => pi.texts.includes("seen"));
    await place.cut(place.host());
    await pi.prompt(subagent({ action: "reply", label: "scout", message: "blue" }), "say answered", "say got {last}");
    const result = await until(() => pi.herd("result")[0], "the result");
    expect(textOf(result)).toContain("blue");
    await until(() => pi.texts.at(-1)?.startsWith("got"));
    expect([pi.herd("question").length, pi.herd("result").length]).toEqual([1, 1]);
  });

  test("of the worker after its last word, that word is its result", async () => {
    // As when the session is compacted after its last message.
    const place = placeWith(`import { existsSync } from "node:fs";
      export default (pi) => pi.on("agent_end", async () => {
        while (process.env.PI_HERD_TOKEN && !existsSync("again")) await new Promise((done) => setTimeout(done, 20));
      });`);
    const pi = new PiSession(place);
    const words = task("say the whole result", "say nothing is left to do");
    await pi.prompt(subagent({ action: "assign", agent: "generalist", task: words }), "say assigned", "say end");
    const folder = join(place.herd, "pi-sessions");
    const files = () =>
      (existsSync(folder) ? readdirSync(folder) : []).map((name) => readFileSync(join(folder, name), "utf8"));
    await until(() => files().some((text) => /"role":"assistant".*the whole result/.test(text)), "its last word");
    writeFileSync(join(place.cwd, "again"), "");
    await place.cut(place.workers()[0]);
    expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toContain("the whole result");
  });

  test("of the root before a result stands in its session, it is given again", async () => {
    const place = piPlace();
    const pi = new PiSession(place);
    await pi.prompt(subagent({ action: "assign", agent: "generalist", task: atWork("go") }), "say assigned", "say end");
    await until(() => pi.texts.includes("assigned"));
    const { sessionFile } = await pi.state();
    await pi.quit();
    // Another extension takes its time for every message.
    const slow = join(place.base, "slow.ts");
    writeFileSync(
      slow,
      `import { writeFileSync } from "node:fs";
      export default (pi) => pi.on("message_end", async ({ message }) => {
        if (message.customType !== "herd") return;
        writeFileSync("seen", "");
        await new Promise(() => undefined);
      });`,
    );
    const again = new PiSession(place, ["--session", sessionFile, "--extension", slow]);
    await again.state();
    writeFileSync(join(place.cwd, "go"), "");
    await until(() => existsSync(join(place.cwd, "seen")), "the result on its way");
    await again.kill();
    expect(readFileSync(sessionFile, "utf8")).not.toContain('"kind":"result"');
    const last = new PiSession(place, ["--session", sessionFile]);
    expect(textOf(await until(() => last.herd("result")[0], "the result"))).toContain("worked");
  });

  test("of the host while a turn runs, the worker goes on from its session and there is one result", async () => {
    const place = piPlace();
    const pi = new PiSession(place);
    await pi.prompt(
      subagent({ action: "assign", agent: "generalist", label: "scout", task: atWork("go") }),
      "say assigned",
      "say got {last}",
    );
    await until(() => readdirSync(place.cwd).includes("begun"), "the turn");
    await until(() => pi.texts.includes("assigned"));
    await place.cut(place.host());
    await until(() => place.host(), "the next host");
    const result = await until(() => pi.herd("result")[0], "the result");
    expect(textOf(result)).toContain("status: completed");
    await until(() => pi.texts.at(-1)?.startsWith("got"));
    expect(pi.herd("result")).toHaveLength(1);
  });

  test("of the worker while a question is open, the reply starts it again", async () => {
    const place = piPlace();
    const pi = new PiSession(place);
    await pi.prompt(subagent({ action: "assign", agent: "scout", task: asking }), "say assigned", "say seen");
    await until(() => pi.texts.includes("seen"));
    await place.cut(place.workers()[0]);
    await pi.prompt(subagent({ action: "reply", label: "scout", message: "blue" }), "say answered", "say got {last}");
    expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toContain("blue");
    await until(() => pi.texts.at(-1)?.startsWith("got"));
    expect([pi.herd("question").length, pi.herd("result").length]).toEqual([1, 1]);
  });

  test("of the worker while a turn runs, it is started again, goes on, and there is one result", async () => {
    const place = piPlace();
    const pi = new PiSession(place);
    await pi.prompt(
      subagent({ action: "assign", agent: "generalist", label: "scout", task: atWork("never") }),
      "say assigned",
      "say got {last}",
    );
    await until(() => readdirSync(place.cwd).includes("begun"), "the turn");
    await place.cut(place.workers()[0]);
    // What the first process had begun, the second one finds unanswered, and goes on with the next step.
    const result = await until(() => pi.herd("result")[0], "the result");
    expect(textOf(result)).toContain("status: completed");
    await until(() => pi.texts.at(-1)?.startsWith("got"));
    expect(pi.herd("result")).toHaveLength(1);
  });

  test("of the root, its session hears what it missed once, and nothing that it heard", async () => {
    const place = piPlace();
    const pi = new PiSession(place);
    await pi.prompt(
      subagent({ action: "assign", agent: "scout", task: asking }),
      subagent({ action: "assign", agent: "generalist", label: "digger", task: atWork("go") }),
      "say assigned",
      "say seen",
    );
    await until(() => pi.texts.includes("seen"));
    const { sessionFile } = await pi.state();
    await pi.kill();
    // While nobody is there.
    writeFileSync(join(place.cwd, "go"), "");
    const again = new PiSession(place, ["--session", sessionFile as string]);
    await again.prompt(
      subagent({ action: "reply", label: "scout", message: "blue" }),
      "say answered",
      "say one {last}",
      "say two {last}",
    );
    await until(() => again.herd("result").length === 2, "both results");
    expect(again.herd("question")).toHaveLength(0);
    await until(() => again.texts.filter((text) => /^(one|two) /.test(text)).length > 0);
    const entries = readFileSync(sessionFile as string, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const said = entries.filter(({ customType }) => customType === "herd").map(({ details }) => details.kind);
    expect(said.toSorted()).toEqual(["question", "result", "result"]);
  });

  test("of the host and the root between a result and its delivery, it is delivered once", async () => {
    const place = piPlace();
    const pi = new PiSession(place);
    // Its model is busy, so that the result is on its way and does not arrive.
    await pi.prompt(
      subagent({ action: "assign", agent: "scout", task: task("say found it") }),
      'call bash {"command":"touch busy; until test -e go; do sleep 0.05; done"}',
      "say never said",
    );
    await until(() => readdirSync(place.cwd).includes("busy"), "the model to be busy");
    const listed = () => runHerd(place, ["list", "--directory", place.herd]);
    await until(async () => (await listed()).stdout.includes("settling"), "the result to be stored");
    const { sessionFile } = await pi.state();
    await pi.kill();
    await place.cut(place.host());
    const again = new PiSession(place, ["--session", sessionFile as string]);
    const result = await until(() => again.herd("result")[0], "the result");
    expect(textOf(result)).toMatch(/\n\nfound it$/);
    await until(() => again.settled > 0);
    const entries = readFileSync(sessionFile as string, "utf8");
    expect(entries.match(/"kind":"result"/g)).toHaveLength(1);
    expect((await listed()).stdout).toContain("Nothing is open");
  });
});

test.each(["SIGTERM", "SIGHUP", "herd stop"])(
  "a worker whose process is ended by %s while a turn runs goes on with it in the next one",
  async (how) => {
    const place = piPlace();
    const pi = new PiSession(place);
    await pi.prompt(
      subagent({ action: "assign", agent: "generalist", label: "scout", task: atWork("never") }),
      "say assigned",
      "say got {last}",
    );
    await until(() => existsSync(join(place.cwd, "begun")) && pi.texts.includes("assigned"), "the turn");
    const [worker] = place.workers();
    if (how === "herd stop") await runHerd(place, ["stop"]);
    else process.kill(worker as number, how as NodeJS.Signals);
    await until(() => !place.workers().includes(worker as number), "the end of the process");
    const result = await until(() => pi.herd("result")[0], "the result");
    expect(textOf(result)).toContain("status: completed");
    await until(() => pi.texts.at(-1)?.startsWith("got"));
    expect(pi.herd("result")).toHaveLength(1);
  },
);

test("a turn that something in the worker breaks off fails its assignment", async () => {
  const place = placeWith(`import { existsSync } from "node:fs";
    export default (pi) => pi.on("tool_execution_start", (_event, ctx) => {
      if (process.env.PI_HERD_TOKEN) ctx.abort();
    });`);
  const pi = new PiSession(place);
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "scout", task: atWork("never") }),
    "say assigned",
    "say got {last}",
  );
  expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toMatch(/status: failed.*aborted/s);
});
