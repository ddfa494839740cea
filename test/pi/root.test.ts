import { cpSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { extension, model, piPlace, runHerd, runPi, until } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";

/** Another extension that has a tool of our name, as one does that registers it when it is loaded. */
const RIVAL = `export default (pi) => pi.registerTool({
  name: "subagent", label: "Other", description: "Another subagent.", parameters: { type: "object", properties: {} },
  async execute() { return { content: [{ type: "text", text: "the other one" }], details: {} }; },
});`;

const notices = (pi: PiSession) =>
  pi.said
    .filter(({ type, method }) => type === "extension_ui_request" && method === "notify")
    .map(({ message }) => message as string);
const report = "say report";

describe("beside another extension with a tool named subagent", () => {
  test.each(["before", "after"])(
    "that is loaded %s ours, Pi starts, both work, and one notice says how ours is called",
    async (when) => {
      const place = piPlace();
      const rival = join(place.base, "rival.ts");
      writeFileSync(rival, RIVAL);
      const order = when === "before" ? [rival, extension] : [extension, rival];
      const args = ["--no-extensions", ...[model, ...order].flatMap((path) => ["--extension", path])];
      const pi = new PiSession(place, args);
      await pi.prompt("call subagent {}", subagent({ action: "list" }, "herd_subagent"), report);
      await until(() => pi.texts.includes("report"));
      expect(pi.toolResults("subagent").map(textOf)).toEqual(["the other one"]);
      expect(textOf(pi.toolResults("herd_subagent")[0]!)).toContain("Agent definitions");
      expect(notices(pi).filter((message) => message.includes("herd_subagent"))).toEqual([
        expect.stringContaining('"herd": { "toolName": "…" }'),
      ]);
    },
  );
});

test("a second copy of the extension stays silent beside the first", async () => {
  const place = piPlace();
  const copy = join(place.base, "copy");
  const root = fileURLToPath(new URL("../..", import.meta.url));
  for (const folder of ["adapters", "runtime", "machines"])
    cpSync(join(root, folder), join(copy, folder), { recursive: true });
  cpSync(join(root, "package.json"), join(copy, "package.json"));
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  const pi = new PiSession(place, ["--extension", join(copy, "adapters/pi/extension.js")]);
  await pi.prompt(
    subagent({ action: "assign", agent: "scout", task: task("say found it") }),
    "say assigned",
    "say got {last}",
  );
  await until(
    () => pi.texts.at(-1)?.startsWith("got"),
    () => JSON.stringify(pi.texts) + pi.stderr,
  );
  expect(pi.herd("result")).toHaveLength(1);
});

describe("a session that is no root", () => {
  test.each([
    ["of a worker's own tools", { PI_HERD_DIRECTORY: "/nowhere", PI_HERD_TOKEN: "t", PI_HERD_SESSION: "another" }],
    ["of another session's shell", { PI_SESSION_ID: "another" }],
  ])("because it was started out %s has no tools of ours and no command", async (_, env) => {
    const place = piPlace();
    const pi = new PiSession(place, [], env);
    await pi.prompt(subagent({ action: "list" }), report);
    await until(() => pi.texts.includes("report"));
    expect(textOf(pi.toolResults("subagent")[0]!)).toContain("not found");
    const { commands } = await pi.ask({ type: "get_commands" });
    expect(commands.map(({ name }: { name: string }) => name)).not.toContain("subagents");
    expect((await runHerd(place, ["status"])).stdout).toContain("No background process runs");
  });
});

test("settings: what is wrong is ignored and told, what is right counts", async () => {
  const herd = {
    toolName: "delegate",
    printWaitMs: "soon",
    dialogs: "maybe",
    limits: { inlineBytes: -1 },
    colour: "red",
  };
  const place = piPlace({ settings: { herd } });
  const pi = new PiSession(place);
  await pi.prompt(subagent({ action: "list" }, "delegate"), report);
  await until(() => pi.texts.includes("report"));
  expect(textOf(pi.toolResults("delegate")[0]!)).toContain("Agent definitions");
  expect(notices(pi).join("\n")).toMatch(
    /herd\.printWaitMs is ignored: it must be a whole number.*herd\.dialogs is ignored: it must be "ask" or "deny".*herd\.limits\.inlineBytes is ignored.*herd\.colour is ignored: there is none of that name/s,
  );
});

test("what its model calls: schemas and results of the seeds, refusals with their details, the parked tools", async () => {
  const place = piPlace();
  const pi = new PiSession(place);
  await pi.prompt(
    subagent({ action: "assign", agent: "nobody", task: "x" }),
    subagent({ action: "reply", label: "scout", message: "blue" }),
    "call list_parked {}",
    'call resume_parked {"interaction_id":"none"}',
    'call cancel_parked {"ids":[]}',
    report,
  );
  await until(() => pi.texts.includes("report"));
  const [unknown, reply] = pi.toolResults("subagent");
  expect(unknown).toMatchObject({
    isError: true,
    details: { ok: false, error: { category: "invalid_request", reason: "unknown_agent" } },
  });
  expect(textOf(unknown!)).toContain("Next: assign one of the defined agents, or write a definition file for it");
  expect(reply).toMatchObject({ isError: true, details: { error: { category: "target_not_found" } } });
  expect(pi.toolResults("list_parked")[0]).toMatchObject({ isError: false, details: [] });
  expect(pi.toolResults("resume_parked")[0]).toMatchObject({ isError: true });
  expect(pi.toolResults("cancel_parked")[0]).toMatchObject({ details: { ok: true } });
});

test("a late answer cannot reach the next question, and the branch decides what a reply means", async () => {
  const place = piPlace();
  const pi = new PiSession(place);
  const two = task('call ask_owner {"question":"first?"}', 'call ask_owner {"question":"second?"}', "say end: {last}");
  await pi.prompt(subagent({ action: "assign", agent: "scout", task: two }), "say assigned", "say first seen");
  await until(() => pi.texts.includes("first seen"));
  // Its model is busy, so that it does not see the second question before it answers the first.
  await pi.prompt(
    'call bash {"command":"until test -e go; do sleep 0.05; done"}',
    subagent({ action: "reply", label: "scout", message: "too late" }),
    "say replied",
    "say second seen",
  );
  await until(() => pi.said.some(({ type, toolName }) => type === "tool_execution_start" && toolName === "bash"));
  // A person answers in a shell meanwhile, and the worker asks again.
  await runHerd(place, ["reply", "scout", "from the shell", "--directory", place.herd]);
  await until(async () => (await runHerd(place, ["list", "--directory", place.herd])).stdout.includes("second?"));
  writeFileSync(join(place.cwd, "go"), "");
  await until(() => pi.texts.includes("second seen"));
  const late = pi.toolResults("subagent").at(-1)!;
  expect([late.isError, textOf(late)]).toEqual([true, expect.stringContaining("already answered")]);
});

test.each([
  ["new one", { type: "new_session" }],
  ["copy of it", { type: "clone" }],
])("a session that is left for a %s hears nothing more, and that one nothing of its workers", async (_, leave) => {
  const place = piPlace();
  const pi = new PiSession(place);
  const waits = task('call bash {"command":"until test -e go; do sleep 0.05; done"}', "say through");
  await pi.prompt(subagent({ action: "assign", agent: "generalist", label: "digger", task: waits }), "say assigned");
  await until(() => pi.texts.includes("assigned"));
  const { sessionFile } = await pi.state();
  await pi.ask(leave);
  expect((await pi.state()).sessionFile).not.toBe(sessionFile);
  writeFileSync(join(place.cwd, "go"), "");
  // Its result is stored, and waits for the session that was left.
  const listed = () => runHerd(place, ["list", "--directory", place.herd]);
  await until(async () => (await listed()).stdout.includes("settling"), "the result to wait");
  await pi.prompt(subagent({ action: "list" }), report);
  await until(() => pi.texts.includes("report"));
  expect(textOf(pi.toolResults("subagent").at(-1)!)).toContain("No workers");
  expect(pi.herd("result")).toHaveLength(0);
  await pi.ask({ type: "switch_session", sessionPath: sessionFile });
  expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toContain("through");
});

test("a session that two Pis have open hears in the first, and in the other once that is closed", async () => {
  const place = piPlace();
  const first = new PiSession(place);
  const waits = task('call bash {"command":"until test -e go; do sleep 0.05; done"}', "say through");
  await first.prompt(subagent({ action: "assign", agent: "generalist", label: "digger", task: waits }), "say assigned");
  await until(() => first.texts.includes("assigned"));
  const { sessionFile } = await first.state();
  const second = new PiSession(place, ["--session", sessionFile]);
  const told = () => notices(second).some((message) => message.includes("This session is open in another Pi as well"));
  await until(told, "the warning");
  await first.quit();
  writeFileSync(join(place.cwd, "go"), "");
  expect(textOf(await until(() => second.herd("result")[0], "the result"))).toContain("through");
  expect(first.herd("result")).toEqual([]);
});

test("pi -p with --mode json says nothing of ours on stdout but its events", async () => {
  const place = piPlace();
  const prompt = [
    "SCRIPT",
    subagent({ action: "assign", agent: "scout", task: task("say found") }),
    "say assigned",
    "say got it",
  ].join("\n");
  const { code, stdout } = await runPi(place, ["--mode", "json", prompt]);
  expect(code).toBe(0);
  const said = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const texts = said
    .filter(({ type, message }) => type === "message_end" && message.role === "assistant")
    .flatMap(({ message }) => textOf(message));
  expect(texts.at(-1)).toBe("got it");
});

test("a reload takes everything anew: what comes afterwards arrives once, in the same session", async () => {
  const place = piPlace();
  const reloader = join(place.base, "reloader.ts");
  writeFileSync(reloader, `export default (pi) => pi.registerCommand("again", { handler: (_, ctx) => ctx.reload() });`);
  const pi = new PiSession(place, ["--extension", reloader]);
  const waits = task('call ask_owner {"question":"before?"}', 'call ask_owner {"question":"after?"}', "say {end}");
  await pi.prompt(subagent({ action: "assign", agent: "scout", task: waits }), "say assigned", "say seen");
  await until(() => pi.texts.includes("seen"));
  await pi.ask({ type: "prompt", message: "/again" });
  await pi.prompt(
    subagent({ action: "reply", label: "scout", message: "one" }),
    "say told",
    subagent({ action: "reply", label: "scout", message: "two" }),
    "say told again",
    "say the end",
  );
  await until(() => pi.texts.includes("the end"));
  expect(pi.herd("question").map(textOf)).toEqual([
    expect.stringContaining("before?"),
    expect.stringContaining("after?"),
  ]);
  expect(pi.herd("result").map(textOf)).toEqual([expect.stringMatching(/\n\ntwo$/)]);
});

test("the model hears of a worker that a shell has closed, and not of those that it closes itself", async () => {
  const place = piPlace();
  const pi = new PiSession(place);
  const asks = task('call ask_owner {"question":"Which?"}', "say over");
  await pi.prompt(
    subagent({ action: "assign", agent: "scout", label: "one", task: asks }),
    "say assigned",
    "say asked",
    "say heard: {last}",
  );
  await until(() => pi.texts.includes("asked"));
  expect(await runHerd(place, ["close", "one"])).toMatchObject({ code: 0, stderr: "" });
  const heard = () => pi.texts.find((text) => text.startsWith("heard: "));
  expect(await until(heard, "the model to hear of it")).toContain('"one" was closed from outside of this session');
  await pi.prompt(
    subagent({ action: "assign", agent: "scout", label: "two", task: asks }),
    "say assigned",
    subagent({ action: "close", label: "two" }),
    "say closed it",
    "say heard more: {last}",
  );
  await until(() => pi.texts.includes("closed it"));
  await pi.prompt(subagent({ action: "list" }), "say all quiet");
  await until(() => pi.texts.includes("all quiet"));
  expect(pi.herd("closed").map(({ details }) => details.label)).toEqual(["one"]);
});
