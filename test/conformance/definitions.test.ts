import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createHerd, writeOverride, type LaunchPolicy, type Owner } from "pi-herd";
import { createTestHerd, memoryStore, type ScriptedAgent, type TestHerd } from "pi-herd/testing";
import { does, rowsOf } from "./support.ts";

/** Definition files on disk, and a herd whose scripted backend runs what they define. */

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "herd-agents-")));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
});

const at = (path: string) => join(root, path);
const agent = (fields: string, body = "Work with care.") => `---\n${fields}\n---\n${body}\n`;

async function write(files: Record<string, string | Buffer>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(at(path)), { recursive: true });
    await writeFile(at(path), content);
  }
}

async function herd(files: Record<string, string | Buffer>, scripted: string[] = ["lead"]) {
  await write(Object.fromEntries(Object.entries(files).map(([path, content]) => [`agents/${path}`, content])));
  const t = await createTestHerd({ agents: { does }, definitions: [at("agents")], cwd: root });
  const scripts = Object.fromEntries(scripted.map((name) => [name, t.scripted(name)]));
  return { t, scripts };
}

const assign = (t: TestHerd, request: object) =>
  t.owner.subagent({ action: "assign", task: "Do it", ...request }) as Promise<any>;

async function policyOf(script: ScriptedAgent | undefined, label?: string): Promise<LaunchPolicy> {
  return (await (script as ScriptedAgent).run(label)).order("start").policy as LaunchPolicy;
}

describe("a definition file", () => {
  test("reaches the backend as a frozen policy with its prompt", async () => {
    const { t, scripts } = await herd({
      "lead.md": agent(
        "description: Leads\nmodel: big/model\nthinking: high\ntools: read, bash",
        "You lead.\n@rules.txt",
      ),
      "rules.txt": "Be brief.",
    });
    expect(await assign(t, { agent: "lead" })).toMatchObject({ ok: true, label: "lead" });
    expect(await policyOf(scripts["lead"])).toMatchObject({
      name: "lead",
      model: "big/model",
      thinking: "high",
      tools: ["read", "bash", "ask_owner"],
      systemPrompt: "You lead.\nBe brief.",
      delegates: false,
    });
  });

  test("is refused in a herd without a backend that runs it, and stays in the roster", async () => {
    await write({ "agents/lead.md": agent("description: A") });
    const store = memoryStore();
    const open = await createHerd({ store, agents: { does }, definitions: [at("agents")], tickMs: 0 });
    onTestFinished(() => open.close());
    const owner = open.owner("me");
    expect(await owner.subagent({ action: "assign", agent: "lead", task: "x" })).toMatchObject({
      ok: false,
      error: { category: "invalid_request", reason: "no_backend" },
    });
    expect((await owner.list()).agentDefinitions.map(({ name }) => name)).toContain("lead");
  });

  test.each([
    ["with ask_owner excluded", "description: A\nexcludeTools: ask_owner, bash"],
    ["with a list of tools", "description: A\ntools: read"],
    ["with no tools", "description: A\nnoTools: true"],
  ])("%s leaves its workers ask_owner", async (_, fields) => {
    const { t, scripts } = await herd({ "lead.md": agent(fields) });
    await assign(t, { agent: "lead" });
    const { tools, excludeTools = [] } = await policyOf(scripts["lead"]);
    expect(excludeTools).not.toContain("ask_owner");
    expect(tools ?? ["ask_owner"]).toContain("ask_owner");
    const run = await (scripts["lead"] as ScriptedAgent).run();
    await run.turn();
    expect(await run.ask("Which?")).toMatchObject({ assignmentRequestId: run.requestId });
  });

  test("that is disabled is refused for fresh and saved sessions alike, and its live worker goes on", async () => {
    const { t, scripts } = await herd({ "lead.md": agent("description: A") });
    const first = await assign(t, { agent: "lead", reusable: true });
    const run = await (scripts["lead"] as ScriptedAgent).run();
    await run.turn();
    await run.settle("one");
    await t.result();
    await writeOverride(at("agents"), "lead", { field: "enabled", value: false });
    const refusal = { ok: false, error: { category: "invalid_request", reason: "disabled_agent" } };
    const answer = await assign(t, { agent: "lead" });
    expect(answer).toMatchObject(refusal);
    expect(answer.error.nextAction).toContain("/subagents overrides");
    // By its live worker the session goes on, as that was launched.
    expect(await assign(t, { session: first.session_id })).toMatchObject({ ok: true, label: "lead" });
    expect(run.orders.at(-1)).toMatchObject({ kind: "task", task: "Do it" });
    await run.turn();
    await run.settle("two");
    await t.result();
    expect((await t.owner.subagent({ action: "list" })).agent_definitions).toContainEqual(
      expect.objectContaining({ name: "lead", enabled: false }),
    );
  });

  test("that may start a disabled, broken or missing one can be seen and not launched, and names them", async () => {
    const { t, scripts } = await herd({
      "lead.md": agent("description: A\nsubagents: [off, gone, bad, does]"),
      "off.md": agent("description: B\nenabled: false"),
      "bad.md": agent("description: C\nthinking: hard"),
    });
    const before = await rowsOf(t);
    expect(await assign(t, { agent: "lead" })).toMatchObject({
      ok: false,
      error: {
        category: "invalid_request",
        reason: "disabled_subagent",
        details: { subagents: ["off", "gone", "bad"] },
      },
    });
    expect(scripts["lead"]?.runs).toEqual([]);
    expect(await rowsOf(t)).toBe(before);
    const { agentDefinitions } = await t.owner.list();
    expect(agentDefinitions.find(({ name }) => name === "lead")).not.toHaveProperty("enabled");
  });

  test("that is broken is named with file, field and rule, and hides no other", async () => {
    const { t } = await herd({
      "lead.md": agent("description: A"),
      "bad.md": "---\nname: [\n---\nx",
      "worse.md": agent("description: B\ntools: 7"),
    });
    const listed = await t.owner.subagent({ action: "list" });
    const names = listed.agent_definitions.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(["does", "lead", "scout", "reviewer"]));
    expect(listed.definition_findings).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ file: at("agents/bad.md"), effect: "disabled" }),
        expect.objectContaining({ file: at("agents/worse.md"), field: "tools", effect: "disabled" }),
      ]),
    );
    const refused = await assign(t, { agent: "worse" });
    expect(refused.error).toMatchObject({ category: "invalid_request", reason: "disabled_agent" });
    expect(refused.error.message).toContain("tools");
    expect(await assign(t, { agent: "lead" })).toMatchObject({ ok: true });
  });

  test("of the name of a function is hidden by it, and the list says so", async () => {
    const { t } = await herd({ "does.md": agent("description: from a file") });
    const { agentDefinitions, findings } = await t.owner.list();
    expect(agentDefinitions.filter(({ name }) => name === "does")).toEqual([
      { name: "does", description: "does its task" },
    ]);
    expect(findings).toContainEqual(expect.objectContaining({ name: "does", effect: "hidden" }));
  });
});

describe("definitions of folders that a function names", () => {
  test("come and go while the herd is open, and a function that throws is reported and breaks nothing", async () => {
    await write({ "agents/lead.md": agent("description: A"), "more/aide.md": agent("description: B") });
    let give = (): string[] => [at("agents")];
    const t = await createTestHerd({ agents: { does }, definitions: () => give() });
    const script = t.scripted("aide");
    const names = async () => (await t.owner.list()).agentDefinitions.map(({ name }) => name);
    expect(await names()).toContain("lead");
    expect((await assign(t, { agent: "aide" })).error).toMatchObject({ reason: "unknown_agent" });
    give = () => [at("agents"), at("more")];
    expect(await assign(t, { agent: "aide" })).toMatchObject({ ok: true });
    expect(await policyOf(script)).toMatchObject({ name: "aide" });
    give = () => {
      throw new Error("the settings are gone");
    };
    expect(await names()).toEqual(expect.arrayContaining(["aide", "lead"]));
    expect((await t.owner.subagent({ action: "list" })).definition_findings).toMatchObject([
      { field: "definitions", effect: "ignored", message: expect.stringContaining("the settings are gone") },
    ]);
    expect(await assign(t, { agent: "aide", label: "second" })).toMatchObject({ ok: true });
    give = () => [];
    expect(await names()).not.toContain("aide");
    expect(await t.owner.list()).not.toHaveProperty("findings");
  });
});

describe("a file that a prompt names", () => {
  test.each<[string, (path: string) => Promise<unknown>]>([
    ["is missing", async () => undefined],
    ["is a folder", (path) => mkdir(path)],
    ["is not UTF-8", (path) => writeFile(path, Buffer.from([0xc3, 0x28]))],
    ["holds NUL", (path) => writeFile(path, "a\0b")],
  ])("and that %s refuses the assignment before anything is created", async (_, make) => {
    const { t, scripts } = await herd({ "lead.md": agent("description: A", "Read this.\n@body.txt") });
    await make(at("agents/body.txt"));
    const before = await rowsOf(t);
    expect(await assign(t, { agent: "lead" })).toMatchObject({
      ok: false,
      error: { category: "invalid_request", reason: "unreadable_prompt_file", rollbackOccurred: false },
    });
    expect(scripts["lead"]?.runs).toEqual([]);
    expect(await rowsOf(t)).toBe(before);
  });

  test("and that the caller gives too, even through a link, stands in the task alone", async () => {
    const { t, scripts } = await herd({
      "lead.md": agent("description: A", "Read this.\n@body.txt"),
      "body.txt": "the body",
    });
    await symlink(at("agents/body.txt"), at("link.txt"));
    await assign(t, { agent: "lead", files: [at("link.txt")] });
    const start = (await (scripts["lead"] as ScriptedAgent).run()).order("start");
    expect(start.files).toEqual([{ path: at("agents/body.txt"), bytes: 8, text: "the body" }]);
    expect(start.policy?.systemPrompt).toBe("Read this.");
  });
});

describe("editing a definition", () => {
  test("changes new runs and saved sessions, and never a live worker", async () => {
    const { t, scripts } = await herd({ "lead.md": agent("description: A\nmodel: old") });
    const kept = await assign(t, { agent: "lead", reusable: true });
    const run = await (scripts["lead"] as ScriptedAgent).run();
    await run.turn();
    await run.settle("one");
    await t.result();
    await writeOverride(at("agents"), "lead", { field: "model", value: "new" });
    await assign(t, { label: kept.label });
    expect(run.orders.filter(({ kind }) => kind === "start")).toHaveLength(1);
    expect(await policyOf(scripts["lead"], "lead")).toMatchObject({ model: "old" });
    await run.turn();
    await run.settle("two");
    await t.result();
    await t.owner.close({ label: "lead" });
    expect(await assign(t, { agent: "lead" })).toMatchObject({ ok: true, label: "lead" });
    expect(await policyOf(scripts["lead"])).toMatchObject({ model: "new" });
  });
});

describe("a parent that a definition file lets delegate", () => {
  test("can start what it names without naming the tool; it sees leaves and their results reach it", async () => {
    const { t, scripts } = await herd(
      {
        "lead.md": agent("description: A\ntools: read\nsubagents: part"),
        "part.md": agent("description: B\nsubagents: lead\ntools: [read, subagent]"),
        "other.md": agent("description: C"),
      },
      ["lead", "part"],
    );
    await assign(t, { agent: "lead" });
    expect(await policyOf(scripts["lead"])).toMatchObject({
      delegates: true,
      tools: ["read", "subagent", "ask_owner"],
    });
    const lead = await (scripts["lead"] as ScriptedAgent).run();
    await lead.turn();
    expect(await lead.subagent({ action: "list" })).toEqual({
      ok: true,
      workers: [],
      agent_definitions: [{ name: "part", extensionSource: "global", description: "B", tools: ["read"] }],
    });
    expect(await lead.subagent({ action: "assign", agent: "other", task: "x" })).toMatchObject({
      ok: false,
      error: { category: "invalid_request", reason: "not_allowed" },
    });
    expect(await lead.subagent({ action: "assign", agent: "part", task: "x" })).toMatchObject({ ok: true });
    const part = await (scripts["part"] as ScriptedAgent).run();
    expect(await policyOf(scripts["part"])).toMatchObject({ delegates: false, tools: ["read", "ask_owner"] });
    expect(await part.subagent({ action: "list" })).toMatchObject({
      ok: false,
      error: { category: "invalid_request", operation: "controller" },
    });
    await part.turn();
    await part.settle("the part");
    expect(lead.order("deliver")).toMatchObject({ what: "result", details: { workerLabel: "part" } });
    await lead.take();
    await lead.settle("whole");
    expect((await t.result()).text).toBe("whole");
  });
});

describe("definitions of a project", () => {
  async function project({ trusted, optsIn }: { trusted: boolean; optsIn: boolean }) {
    await write({
      "project/.pi/agents/lead.md": agent("description: of the project\nmodel: theirs"),
      "project/.pi/settings.json": JSON.stringify({ herd: { projectAgents: optsIn } }),
      "home/settings.json": JSON.stringify({ herd: { projectAgents: true } }),
      "other/x": "",
    });
    await mkdir(at("home/agents"), { recursive: true });
    const t = await createTestHerd({
      agents: { does },
      definitions: [at("home/agents"), { path: at("project/.pi/agents"), layer: "project", trusted }],
      cwd: at("project"),
    });
    return { t, script: t.scripted("lead") };
  }

  test.each([
    ["is not trusted", { trusted: false, optsIn: true }],
    ["does not opt in by its own settings", { trusted: true, optsIn: false }],
  ])("that %s do not count", async (_, given) => {
    const { t } = await project(given);
    expect((await assign(t, { agent: "lead" })).error).toMatchObject({ reason: "unknown_agent" });
  });

  test("serve its folder alone, by whichever path, and are edited through the global folder", async () => {
    const { t, script } = await project({ trusted: true, optsIn: true });
    await symlink(at("project"), at("linked"));
    const file = await readFile(at("project/.pi/agents/lead.md"), "utf8");
    expect((await assign(t, { agent: "lead", cwd: at("other") })).error).toMatchObject({
      category: "invalid_request",
      reason: "other_project",
    });
    expect(script.runs).toEqual([]);
    expect(await assign(t, { agent: "lead", cwd: at("linked") })).toMatchObject({ ok: true });
    await writeOverride(at("home/agents"), "lead", { field: "model", value: "mine" });
    expect(await assign(t, { agent: "lead", label: "second" })).toMatchObject({ ok: true });
    expect(await policyOf(script, "second")).toMatchObject({ model: "mine" });
    expect(await readFile(at("project/.pi/agents/lead.md"), "utf8")).toBe(file);
    expect((await t.owner.list()).agentDefinitions).toContainEqual(
      expect.objectContaining({ name: "lead", extensionSource: "project", overrideSource: "global", model: "mine" }),
    );
  });

  test("that two projects define under one name do not disturb each other, for parents and their children neither", async () => {
    const theirs = (name: string, more: string) => ({
      [`${name}/.pi/agents/lead.md`]: agent(`description: of ${name}\nmodel: ${name}\nsubagents: part`),
      [`${name}/.pi/agents/part.md`]: agent(`description: a part\nmodel: ${name}`),
      [`${name}/.pi/agents/${more}`]: agent("description: x\nthinking: hard"),
      [`${name}/.pi/settings.json`]: JSON.stringify({ herd: { projectAgents: true } }),
    });
    await write({ ...theirs("one", "only.md"), ...theirs("two", "other.md"), "none/x": "" });
    const t = await createTestHerd({
      agents: { does },
      definitions: ["one", "two"].map((name) => ({ path: at(`${name}/.pi/agents`), layer: "project", trusted: true })),
    });
    const scripts = { lead: t.scripted("lead"), part: t.scripted("part") };
    const owners = ["one", "two", "none"].map((name) => t.herd.owner(name, { cwd: at(name), workspace: "shared" }));
    const [one, two, none] = owners as [Owner<string>, Owner<string>, Owner<string>];
    for (const [name, owner, other, broken] of [
      ["one", one, "other", "only.md"],
      ["two", two, "only", "other.md"],
    ] as const) {
      const { agent_definitions, definition_findings } = await owner.subagent({ action: "list" });
      expect(agent_definitions).toContainEqual(expect.objectContaining({ name: "lead", description: `of ${name}` }));
      expect(agent_definitions).not.toContainEqual(expect.objectContaining({ name: other }));
      expect(definition_findings).toMatchObject([{ file: at(`${name}/.pi/agents/${broken}`), field: "thinking" }]);
      await owner.subagent({ action: "assign", agent: "lead", task: "x", label: name });
      expect(await policyOf(scripts.lead, name)).toMatchObject({ model: name });
      const lead = await scripts.lead.run(name);
      await lead.turn();
      expect((await lead.subagent({ action: "list" })).agent_definitions).toMatchObject([
        { name: "part", model: name },
      ]);
      await lead.subagent({ action: "assign", agent: "part", task: "x", label: `${name}-part` });
      expect(await policyOf(scripts.part, `${name}-part`)).toMatchObject({ model: name });
    }
    const listed = await none.list();
    expect(listed.agentDefinitions.map(({ name }) => name)).not.toContain("lead");
    expect(listed).not.toHaveProperty("findings");
    // It is the owner's folder that counts, not that of the work.
    for (const cwd of [at("one"), at("none")]) {
      const refused = await none.subagent({ action: "assign", agent: "lead", task: "x", cwd });
      expect(refused.error).toMatchObject({ reason: "unknown_agent" });
      expect(refused.error.message).not.toContain(at("one"));
    }
    const elsewhere = { action: "assign", agent: "lead", task: "x", cwd: at("two") };
    expect((await one.subagent(elsewhere)).error).toMatchObject({ reason: "other_project" });
  });
});
