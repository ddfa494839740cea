import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { extension, piPlace, runPi, until } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

/** What a worker's session file says, oldest first. */
function entriesOf(pi: PiSession): any[] {
  const file = pi.herd("result")[0]?.details.result.piSessionFile as string;
  return readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

const resultsOf = (entries: any[]) =>
  entries
    .filter(({ message }) => message?.role === "toolResult")
    .map(({ message }) => [message.toolName, message.isError, textOf(message)]);

/** Runs one worker to its result. */
async function work(pi: PiSession, request: object, ...more: string[]) {
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "worker", ...request }),
    "say assigned",
    ...more,
  );
  return until(() => pi.herd("result")[0], "the result");
}

test("ask_owner is the only call of its message, or nothing of that message is carried out", async () => {
  const place = piPlace();
  const pi = new PiSession(place);
  const script = task(
    'calls [["bash",{"command":"touch side-effect"}],["ask_owner",{"question":"mixed?"}]]',
    'calls [["ask_owner",{"question":"one?"}],["ask_owner",{"question":"two?"}]]',
    'call ask_owner {"question":" "}',
    'call ask_owner {"question":"alone?","files":["missing.md"]}',
    'call ask_owner {"question":"alone?"}',
    "say the answer was {end}",
  );
  const result = await work(
    pi,
    { task: script },
    subagent({ action: "reply", label: "worker", message: "fine" }),
    "say told",
  );
  expect(textOf(result)).toContain("the answer was fine");
  expect(pi.herd("question").map(textOf)).toEqual([expect.stringContaining("alone?")]);
  expect(existsSync(join(place.cwd, "side-effect"))).toBe(false);
  const refused = resultsOf(entriesOf(pi)).filter(([, isError]) => isError);
  expect(refused).toHaveLength(6);
  for (const [, , text] of refused.slice(0, 4)) expect(text).toContain("No call of this message was carried out");
  expect(refused[4]?.[2]).toContain("must contain non-whitespace text");
  expect(refused[5]?.[2]).toContain("missing.md");
});

describe("a result", () => {
  test("is the last text of the model, whole and once, whatever came before it", async () => {
    const place = piPlace();
    const pi = new PiSession(place);
    const result = await work(pi, { task: task('call bash {"command":"echo hi"}', "say the whole of it") });
    expect(textOf(result)).toMatch(/\n\nthe whole of it$/);
    await until(() => place.workers().length === 0, "the end of its process");
  });

  test("that reached the limit of a message says so", async () => {
    const result = await work(new PiSession(piPlace()), { task: task("cut Step one of ten is") });
    expect(textOf(result)).toMatch(
      /status: completed.*\n\nStep one of ten is\n\n\[Cut off here: .*in a further task\.\]$/s,
    );
  });

  test.each([
    ["a limit that left no room for a word is an error", "cut", "model_error: The model reached the limit"],
    [
      "a last turn that ended in an error is that error",
      "error the provider is down",
      "model_error: the provider is down",
    ],
    ["silence is none", "silence", "empty_result"],
  ])("of %s", async (_, step, expected) => {
    const place = piPlace();
    const text = textOf(await work(new PiSession(place), { task: task(step) }));
    expect(text).toContain("status: failed");
    expect(text).toContain(expected);
    await until(() => place.workers().length === 0, "the end of its process");
  });
});

test("a definition decides what its process is started with; ask_owner is there whatever it says", async () => {
  const place = piPlace({
    agents: {
      narrow:
        "---\nname: narrow\ndescription: Reads alone\ntools: [read]\nexcludeTools: [ask_owner]\nthinking: high\n---\n\nYou are narrow indeed.\n",
    },
  });
  writeFileSync(join(place.cwd, "AGENTS.md"), "Everybody here whispers.\n");
  const pi = new PiSession(place);
  const script = task('call bash {"command":"touch no"}', 'call ask_owner {"question":"still there?"}', "say {end}");
  const result = await work(
    pi,
    { agent: "narrow", task: script },
    subagent({ action: "reply", label: "worker", message: "yes" }),
    "say told",
  );
  expect(textOf(result)).toMatch(/\n\nyes$/);
  const details = result.details.result;
  expect(details).toMatchObject({
    workerLabel: "worker",
    agentDefinition: "narrow",
    status: "completed",
    cwd: place.cwd,
  });
  expect(details).toMatchObject({ contextUsage: { contextWindow: 200_000 } });
  expect(statSync(details.resultPath).mode & 0o777).toBe(0o600);
  const entries = entriesOf(pi);
  expect(resultsOf(entries)[0]).toEqual(["bash", true, expect.stringContaining("not found")]);
  const system = JSON.stringify(entries.filter(({ message }) => message?.role === "system"));
  expect(system).toContain("You are narrow indeed.");
  expect(system).toContain("call ask_owner with one question");
  expect(system).toContain("Everybody here whispers.");
  expect(entries.find(({ type }) => type === "thinking_level_change")?.thinkingLevel).toBe("high");
  // The files with its prompts were there for the start alone.
  expect(existsSync(join(place.herd, "prompts")) && readdirSync(join(place.herd, "prompts"))).toEqual([]);
});

test("a steer reaches a turn that runs, and a reusable worker takes the next task in the same session", async () => {
  const place = piPlace();
  const pi = new PiSession(place);
  const first = task('call bash {"command":"touch begun; until test -e go; do sleep 0.05; done"}', "say first: {end}");
  await pi.prompt(
    subagent({ action: "assign", agent: "generalist", label: "worker", reusable: true, task: first }),
    'call bash {"command":"until test -e begun; do sleep 0.05; done"}',
    subagent({ action: "steer", label: "worker", message: "mind the gap" }),
    'call bash {"command":"touch go"}',
    "say steered",
    subagent({ action: "assign", label: "worker", task: task("say second") }),
    "say assigned again",
    "say end",
  );
  const second = await until(() => pi.herd("result")[1], "the second result");
  const [one] = pi.herd("result");
  expect(textOf(one!)).toContain("first: mind the gap");
  expect(textOf(second)).toMatch(/\n\nsecond$/);
  expect(second.details.result.piSessionFile).toBe(one!.details.result.piSessionFile);
  expect(second.details.requestId).not.toBe(one!.details.requestId);
  await until(() => pi.texts.includes("end"));
  await pi.prompt(subagent({ action: "close", label: "worker" }), "say closed");
  await until(() => place.workers().length === 0, "the end of its process");
});

test("a saved session goes on, and a fork begins with a copy", async () => {
  const place = piPlace();
  const pi = new PiSession(place);
  await work(pi, { task: task("say the first part") }, "say got it");
  await until(() => pi.texts.includes("got it"));
  const { piSessionId: session, piSessionFile: file } = pi.herd("result")[0]!.details.result;
  const before = readFileSync(file, "utf8");
  await until(() => place.workers().length === 0, "the end of its process");
  await pi.prompt(
    subagent({ action: "assign", session, task: task("say the second part") }),
    "say assigned",
    subagent({ action: "assign", agent: "generalist", fork: file, label: "copy", task: task("say a copy") }),
    "say forked",
    "say end",
  );
  await until(() => pi.herd("result").length === 3, "all results");
  const [, second, copy] = pi.herd("result");
  expect([second, copy].map((each) => textOf(each!).split("\n\n").at(-1))).toEqual(["the second part", "a copy"]);
  expect(second!.details.result).toMatchObject({ piSessionId: session, piSessionFile: file });
  expect(copy!.details.result.piSessionFile).not.toBe(file);
  expect(readFileSync(file, "utf8").startsWith(before)).toBe(true);
  // Anybody can go on with it by hand.
  await until(() => place.workers().length === 0, "the end of its process");
  const byHand = await runPi(place, ["-p", "--session", file, "SCRIPT\nsay by hand"]);
  expect(byHand).toMatchObject({ code: 0, stdout: "by hand\n" });
  expect(readFileSync(copy!.details.result.piSessionFile, "utf8")).toContain("the first part");
});

test("the session of a worker is not what --continue opens, and while it lives says so to whoever opens it by hand", async () => {
  const place = piPlace();
  const pi = new PiSession(place);
  await pi.prompt(
    subagent({ action: "assign", agent: "scout", label: "worker", task: task('call ask_owner {"question":"Which?"}') }),
    "say assigned",
    "say seen",
  );
  await until(() => pi.texts.includes("seen"));
  const { sessionFile } = await pi.state();
  const folder = join(place.herd, "pi-sessions");
  const [own = ""] = readdirSync(folder).map((name) => join(folder, name));
  // The newest of them, which must not be taken for the user's own last one.
  const continued = new PiSession(place, ["--continue"]);
  expect((await continued.state()).sessionFile).toBe(sessionFile);
  await continued.quit();
  const other = new PiSession(place, ["--session", own]);
  const told = () =>
    other.said.filter(
      ({ method, message }) =>
        method === "notify" && String(message).includes('The worker "worker" has this session open'),
    );
  await until(() => told().length === 1, "the warning");
  // It is started on the file that somebody has open.
  await place.cut(place.workers()[0]);
  await pi.prompt(subagent({ action: "reply", label: "worker", message: "this" }), "say replied", "say end");
  await until(() => told().length === 2, "the next warning");
});

test("a worker refuses to leave its session, and what it starts is no worker", async () => {
  const place = piPlace();
  const leaver = join(place.base, "leaver.ts");
  writeFileSync(
    leaver,
    `import { writeFileSync } from "node:fs";
export default (pi) => {
  pi.registerCommand("leave", { handler: async (_, ctx) => {
    const { sessionManager } = ctx;
    const left = [
      await ctx.newSession(),
      await ctx.switchSession(sessionManager.getSessionFile()),
      await ctx.fork(sessionManager.getLeafId(), { position: "at" }),
    ];
    writeFileSync("left.json", JSON.stringify(left));
  } });
  pi.registerTool({ name: "leave", label: "Leave", description: "Leaves.", parameters: { type: "object", properties: {} },
    async execute() {
      pi.sendUserMessage("/leave", { expandPromptTemplates: true, deliverAs: "followUp" });
      return { content: [{ type: "text", text: "leaving" }], details: {} };
    } });
};`,
  );
  writeFileSync(
    join(place.agentDir, "settings.json"),
    readFileSync(join(place.agentDir, "settings.json"), "utf8").replace(
      JSON.stringify(extension),
      JSON.stringify(extension) + "," + JSON.stringify(leaver),
    ),
  );
  const pi = new PiSession(place);
  const nested = `env | grep -c ^PI_HERD_ && ${JSON.stringify(process.execPath)} ${JSON.stringify(join(process.cwd(), "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"))} -p --no-session "$(printf 'SCRIPT\\ncall ask_owner {\\"question\\":\\"nested?\\"}\\nsay nested is over')"`;
  const script = task("call leave {}", `call bash ${JSON.stringify({ command: nested })}`, "say end: {last}");
  const result = await work(pi, { task: script });
  expect(textOf(result)).toContain("nested is over");
  expect(pi.herd("question")).toEqual([]);
  expect(JSON.parse(readFileSync(join(place.cwd, "left.json"), "utf8"))).toEqual(
    [1, 2, 3].map(() => ({ cancelled: true })),
  );
});
