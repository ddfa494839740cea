import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { extension, model, piPlace, runHerd, until, type PiPlace } from "../support/pi/place.ts";
import { PiSession, subagent, task, textOf } from "../support/pi/session.ts";
import { Root, serve, statusOf } from "../support/pi/client.ts";
import { hasTmux, PiTerminal } from "../support/pi/tui.ts";

/** An extension that asks a person before it does what its tool is for. */
const APPROVAL = `export default (pi) => {
  const tool = (name, ask) => pi.registerTool({ name, label: name, description: name, parameters: { type: "object", properties: {} },
    async execute(_id, _params, _signal, _update, ctx) {
      return { content: [{ type: "text", text: name + ": " + JSON.stringify(await ask(ctx.ui) ?? null) }], details: {} };
    } });
  tool("approve", (ui) => ui.confirm("Delete the folder?", "build/ has 12 files"));
  tool("choose", (ui) => ui.select("Which branch?", ["main", "next"]));
  tool("aside", (ui) => { void ui.confirm("May I keep this?", "for later"); });
  tool("name", (ui) => ui.input("Which name?", "a word"));
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
