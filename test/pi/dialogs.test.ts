import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { extension, model, piCli, piPlace, runHerd, until, type PiPlace } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";
import type { Result } from "../../runtime/index.ts";
import type { Dialog } from "../../adapters/host/shapes.ts";
import { client, Root, runNode, serve, statusOf } from "../support/pi/client.ts";
import { hasTmux, PiTerminal } from "../support/pi/tui.ts";

/** An extension that asks a person before it does what its tool is for. */
const APPROVAL = `import { existsSync } from "node:fs";
export default (pi) => {
  const tool = (name, ask) => pi.registerTool({ name, label: name, description: name, parameters: { type: "object", properties: {} },
    async execute(_id, _params, _signal, _update, ctx) {
      return { content: [{ type: "text", text: name + ": " + JSON.stringify(await ask(ctx.ui) ?? null) }], details: {} };
    } });
  tool("approve", (ui) => ui.confirm("Delete the folder?", "build/ has 12 files"));
  tool("choose", (ui) => ui.select("Which branch?", ["main", "next"]));
  tool("aside", (ui) => { void ui.confirm("May I keep this?", "for later"); });
  tool("name", (ui) => ui.input("Which name?", "a word"));
  tool("recite", (ui) => ui.confirm("Is this right?", "x".repeat(2 * 1024 * 1024)));
  tool("impatient", async (ui) => {
    const given = new AbortController();
    const first = ui.confirm("Is it urgent?", "", { signal: given.signal });
    while (!existsSync("late")) await new Promise((done) => setTimeout(done, 20));
    given.abort();
    await first;
    return ui.confirm("Is it urgent?", "then this way");
  });
  // Whoever hears of it before we do.
  pi.on("ui_prompt_end", async () => {});
};`;

function placeWithApproval(herd: object = {}): PiPlace {
  const place = piPlace();
  const approval = join(place.base, "approval.ts");
  writeFileSync(approval, APPROVAL);
  const settings = {
    retry: { enabled: false },
    quietStartup: true,
    defaultProvider: "scripted",
    defaultModel: "script",
    extensions: [model, extension, approval],
    herd,
  };
  writeFileSync(join(place.agentDir, "settings.json"), JSON.stringify(settings));
  return place;
}

const assign = (...steps: string[]) =>
  subagent({ action: "assign", agent: "generalist", label: "worker", task: task(...steps) });
const isRequired = process.env["HERD_E2E"] === "required";

describe.skipIf(!hasTmux && !isRequired)("a dialog that an extension opens in a worker (needs tmux)", () => {
  test("is shown in the root's terminal with the worker's label, and answered there once by the person", async () => {
    const place = placeWithApproval();
    const steps = ["call approve {}", "say first {end}", "say never"];
    const terminal = new PiTerminal(place, [["SCRIPT", assign(...steps), "say assigned", "say The end."].join("\n")]);
    const asked = await terminal.shows("worker: Delete the folder?");
    expect(asked).toContain("build/ has 12 files");
    terminal.type("", "Enter");
    expect(await terminal.shows("Result of worker")).toContain("first approve: true");
  });

  test("leaves the screen when the background process ends, and with it whoever waits for an answer", async () => {
    const place = placeWithApproval();
    const steps = ["call approve {}", 'call bash {"command":"until test -e go; do sleep 0.05; done"}', "say {end}"];
    const terminal = new PiTerminal(place, [["SCRIPT", assign(...steps), "say assigned", "say The end."].join("\n")]);
    await terminal.shows("worker: Delete the folder?");
    await place.cut(place.host());
    const isGone = () => !terminal.screen().includes("Delete the folder?");
    await until(isGone, () => `a screen without the dialog:\n${terminal.screen()}`);
    writeFileSync(join(place.cwd, "go"), "");
    expect(await terminal.shows("Result of worker")).not.toContain("Delete the folder?");
  });
});

test("a dialog makes the worker blocked with what it wants, and its model's owner cannot answer it", async () => {
  const place = placeWithApproval();
  const pi = new PiSession(place);
  await pi.prompt(assign("call choose {}", "say {end}"), "say assigned");
  await until(() => pi.texts.includes("assigned"));
  const listed = () => runHerd(place, ["list", "--directory", place.herd]);
  await until(async () => (await listed()).stdout.includes("blocked"), "the worker to be blocked");
  await pi.prompt(
    subagent({ action: "list" }),
    subagent({ action: "reply", label: "worker", message: "main" }),
    subagent({ action: "close", label: "worker" }),
    "say tried",
  );
  await until(() => pi.texts.includes("tried"));
  const [, list, reply, close] = pi.toolResults("subagent");
  expect(textOf(list!)).toMatch(/worker: blocked[^]*It waits for a person to answer \(select\): Which branch\?/);
  expect(reply).toMatchObject({ isError: true, details: { error: { category: "worker_busy" } } });
  expect(close).toMatchObject({ isError: false });
  expect((await runHerd(place, ["status"])).stdout).not.toContain("Which branch?");
});

test("pi -p says that a worker waits for a person, with the command that answers it", async () => {
  const place = placeWithApproval();
  const prompt = ["SCRIPT", assign("call approve {}", "say {end}"), "say assigned", "say heard: {last}"].join("\n");
  const pi = runNode(place, [piCli, "-p", prompt]);
  let said = "";
  pi.child.stderr?.on("data", (part: string) => (said += part));
  const [, command = ""] = await until(
    () => /^ {2}Next: (.*)$/m.exec(said),
    () => `the command that answers in: ${said}`,
  );
  expect(said).toContain('herd: "worker" waits for a person: Delete the folder?: build/ has 12 files (');
  const env = { PATH: place.env["PATH"] };
  expect(spawnSync("sh", ["-c", command], { env, encoding: "utf8" })).toMatchObject({ status: 0 });
  const { stdout, stderr } = await pi.ended;
  expect(stdout).toContain("approve: true");
  expect(stderr.match(/waits for a person/g)).toHaveLength(1);
});

test("a dialog that its extension gives up is taken away, and does not get the answer to the next one", async () => {
  const place = placeWithApproval();
  serve(place, ["--leave-after", "60"]);
  const root = await Root.of(place);
  const shown: Dialog[] = [];
  const taken: string[] = [];
  const { promise: result, resolve: brought } = Promise.withResolvers<Result>();
  root.connection.serve<{ result: Result }>("receiver/result", async ({ result: one }) => brought(one));
  const owner = { owner: { id: root.session }, cwd: place.cwd };
  await root.connection.call("owner/attach", {
    ...owner,
    receiver: 1,
    hearsQuestions: true,
    hearsResults: true,
    replace: false,
  });
  root.connection.listen<Dialog>("dialog/opened", (dialog) => void shown.push(dialog));
  root.connection.listen<{ id: string }>("dialog/closed", ({ id }) => void taken.push(id));
  await root.assign("worker", task("call impatient {}", "say {end}"));
  const first = await until(() => shown[0], "the first dialog");
  writeFileSync(join(place.cwd, "late"), "");
  const second = await until(() => shown[1], "the second dialog");
  await until(() => taken.length > 0, "the end of the first one");
  expect(taken).toEqual([first.id]);
  expect((await statusOf(place)).dialogs).toEqual([second]);
  expect(await runHerd(place, ["answer", "worker", "yes", "--directory", place.herd])).toMatchObject({ code: 0 });
  expect(await result).toMatchObject({ status: "completed", text: "impatient: true" });
});

test("a dialog that is too large to be shown is cancelled, so that nothing waits for it", async () => {
  const pi = new PiSession(placeWithApproval());
  await pi.prompt(assign("call recite {}", "say {end}"), "say assigned", "say end");
  expect(textOf(await until(() => pi.herd("result")[0], "the result"))).toMatch(/\n\nrecite: false$/);
});

test("a dialog is shown in every Pi that has its session open, and in one that comes later", async () => {
  const place = placeWithApproval();
  serve(place, ["--leave-after", "60"]);
  const roots = await Promise.all([0, 1].map(() => Root.of(place)));
  const shown = new Set<Root>();
  const taken = new Set<Root>();
  const watch = (root: Root) => {
    root.connection.listen("dialog/opened", () => void shown.add(root));
    root.connection.listen("dialog/closed", () => void taken.add(root));
  };
  roots.forEach(watch);
  await roots[0]?.assign("worker", task("call approve {}", "say {end}"));
  await until(() => shown.size === 2, "both to be told");
  const later = new Root(place, roots[0]!.session, await client(place, { role: "root", session: roots[0]!.session }));
  watch(later);
  await later.here();
  await until(() => shown.size === 3, "the third to be told");
  await roots[1]?.connection.close(1_000);
  const answered = await later.connection.request("dialog/answer", { dialog: "worker", answer: "yes" });
  expect(answered).toMatchObject({ label: "worker" });
  await until(() => taken.has(roots[0]!) && taken.has(later), "the dialog to be taken away");
});

test("with dialogs denied, it goes on at once as if the person had said no", async () => {
  const place = placeWithApproval({ dialogs: "deny" });
  const pi = new PiSession(place);
  await pi.prompt(assign("call approve {}", "call choose {}", "call name {}", "say {end}"), "say assigned", "say end");
  const result = textOf(await until(() => pi.herd("result")[0], "the result"));
  expect(result).toMatch(/\n\nname: null$/);
});

test("a worker that ends its work while a dialog of it is open brings its result", async () => {
  const pi = new PiSession(placeWithApproval());
  await pi.prompt(assign("call aside {}", "say done without it"), "say assigned", "say end");
  const result = await until(() => pi.herd("result")[0], "the result");
  expect(textOf(result)).toContain("done without it");
});

test("dialogs stay denied when the session that denied them is closed", async () => {
  const place = placeWithApproval();
  serve(place, ["--leave-after", "60"]);
  const root = await Root.of(place);
  await root.here({ dialogs: "deny" });
  const steps = ['call bash {"command":"until test -e go; do sleep 0.05; done"}', "call approve {}", "say {end}"];
  await root.assign("worker", task(...steps));
  await root.connection.close(1_000);
  writeFileSync(join(place.cwd, "go"), "");
  const settled = async () => (await runHerd(place, ["list", "--directory", place.herd])).stdout.includes("settling");
  await until(settled, "its result");
  expect((await statusOf(place)).dialogs).toEqual([]);
});
