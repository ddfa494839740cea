import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Definitions, type DefinitionSource, type Finding } from "./roster.ts";

let root: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "definitions-")));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
});

/** Writes files below the root; a path ends with `.md` or is one of another kind. */
async function write(files: Record<string, string | Buffer>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
  }
}

const at = (path: string) => join(root, path);
const agent = (fields: string, body = "") => `---\n${fields}\n---\n${body}`;
const project = (more: Partial<DefinitionSource> = {}): DefinitionSource => ({
  path: at("p/.pi/agents"),
  layer: "project",
  trusted: true,
  ...more,
});
const OPT_IN = { "p/.pi/settings.json": '{ "theme": "dark", "herd": { "projectAgents": true } }' };
/** As whoever works in the project `p` sees it. */
const current = (...sources: (string | DefinitionSource)[]) => new Definitions(sources).current(at("p"));
/** A global folder `g`, with these files in it. */
async function global(files: Record<string, string | Buffer>) {
  await write(Object.fromEntries(Object.entries(files).map(([path, content]) => [`g/${path}`, content])));
  return current(at("g"));
}
const about = (findings: readonly Finding[], effect: Finding["effect"]) =>
  findings.filter((finding) => finding.effect === effect);

describe("layers", () => {
  test("lie over each other: bundled, project, global, and later global folders on top", async () => {
    await write({
      ...OPT_IN,
      "p/.pi/agents/scout.md": agent("name: scout\nmodel: project\nthinking: low\ntools: [read]"),
      "g/scout.md": agent("name: scout\nmodel: first\nskills: [a]"),
      "h/scout.md": agent("name: scout\nmodel: second"),
    });
    const { definitions, findings } = await current(at("g"), at("h"), project());
    expect(definitions.get("scout")).toMatchObject({
      description: expect.stringContaining("Finds out"),
      enabled: true,
      model: "second",
      thinking: "low",
      tools: ["read"],
      skills: ["a"],
      extensionSource: "bundled",
      overrideSource: "global",
      projectCwd: at("p"),
    });
    expect(about(findings, "disabled")).toEqual([]);
  });

  test("say what hides what, by file, layer and field", async () => {
    await write({
      ...OPT_IN,
      "p/.pi/agents/a.md": agent("description: A\nmodel: m\nthinking: low", "You do A."),
      "g/a.md": agent("model: n\nskills: [x]", "You do B."),
      "h/a.md": agent("bodyMode: append\nmodel: o\nskills: [y]", "And C."),
    });
    const { findings } = await current(project(), at("g"), at("h"));
    const hidden = (file: string, layer: string, below: string, belowLayer: string, fields: string) => ({
      file: at(below),
      name: "a",
      rule: "a higher layer overlays a lower one",
      effect: "hidden",
      message: `${at(file)} (${layer}) overlays ${at(below)} (${belowLayer}) of "a": ${fields}`,
    });
    expect(findings).toEqual([
      hidden("g/a.md", "global", "p/.pi/agents/a.md", "project", "model, body"),
      hidden("h/a.md", "global", "g/a.md", "global", "model, skills"),
    ]);
  });

  test("that add without replacing hide nothing", async () => {
    await write({ "g/a.md": agent("description: A"), "h/a.md": agent("model: m", "You do A.") });
    expect((await current(at("g"), at("h"))).findings).toEqual([]);
  });

  test.each<[string, string, string[]]>([
    ["a blank one inherits", agent("model: m", "\n \n"), ["base"]],
    ["one replaces", agent("model: m", "over"), ["over"]],
    ["one replaces when it says so", agent("bodyMode: replace", "over"), ["over"]],
    ["one is appended when it says so", agent("bodyMode: append", "over"), ["base", "over"]],
  ])("overlay role prompts: %s", async (_, over, expected) => {
    await write({ "g/a.md": agent("description: A", "base"), "h/a.md": over });
    const { body } = (await current(at("g"), at("h"))).definitions.get("a") ?? { body: [] };
    expect(body.map(({ text }) => text)).toEqual(expected);
    expect(body.map(({ file }) => file)).toEqual(expected.map((text) => at(text === "base" ? "g/a.md" : "h/a.md")));
  });

  test("replace lists whole, and an empty list is one", async () => {
    await write({
      "g/a.md": agent("description: A\ntools: [read]\nskills: [x]"),
      "h/a.md": agent("tools: []\nskills: [y]"),
    });
    const { definitions } = await current(at("g"), at("h"));
    expect(definitions.get("a")).toMatchObject({ tools: [], skills: ["y"] });
  });

  test("can disable a definition below and enable it again above", async () => {
    await write({ "g/scout.md": agent("enabled: false"), "h/scout.md": agent("enabled: true") });
    expect((await current(at("g"))).definitions.get("scout")).toMatchObject({ enabled: false });
    expect((await current(at("g"), at("h"))).definitions.get("scout")).toMatchObject({ enabled: true });
  });

  test("take bodyMode for a bad value where nothing is overlaid", async () => {
    const { definitions, findings } = await global({ "a.md": agent("description: A\nbodyMode: append", "x") });
    expect(definitions.get("a")).toMatchObject({ enabled: false });
    expect(findings).toMatchObject([{ file: at("g/a.md"), name: "a", field: "bodyMode", effect: "disabled" }]);
  });

  test("count a folder once, by its canonical path", async () => {
    await write({ "g/a.md": agent("description: A") });
    await symlink(at("g"), at("link"));
    const { definitions, findings } = await current(at("g"), at("link"), at("g"));
    expect(definitions.get("a")).toMatchObject({ enabled: true });
    expect(findings).toEqual([]);
  });
});

describe("a project's definitions", () => {
  const files = { "p/.pi/agents/a.md": agent("description: A") };

  test("count in a trusted project that asks for them, and serve its canonical folder alone", async () => {
    await write({ ...files, ...OPT_IN });
    await symlink(at("p"), at("link"));
    for (const source of [project(), project({ cwd: at("link") }), project({ path: at("link/.pi/agents") })]) {
      const { definitions, findings } = await current(source);
      expect(definitions.get("a")).toMatchObject({ extensionSource: "project", projectCwd: at("p") });
      expect(definitions.get("scout")).not.toHaveProperty("projectCwd");
      expect(findings).toEqual([]);
    }
  });

  test.each<[string, Record<string, string>, Partial<DefinitionSource>]>([
    ["without trust", OPT_IN, { trusted: false }],
    ["without a settings file", {}, {}],
    ["without the setting", { "p/.pi/settings.json": "{}" }, {}],
    ["with a setting that is false", { "p/.pi/settings.json": '{ "herd": { "projectAgents": false } }' }, {}],
    ["with a setting that is not ours", { "p/.pi/settings.json": '{ "projectAgents": true }' }, {}],
    ["with settings that are no object", { "p/.pi/settings.json": "null" }, {}],
    ["with settings that are not JSON", { "p/.pi/settings.json": "{ projectAgents: true }" }, {}],
    ["with a setting beside the global definitions", { "settings.json": OPT_IN["p/.pi/settings.json"] }, {}],
  ])("are left out and reported %s", async (_, settings, source) => {
    await write({ ...files, ...settings });
    const { definitions, findings } = await current(project(source));
    expect(definitions.has("a")).toBe(false);
    expect(findings).toMatchObject([{ file: at("p/.pi/agents"), effect: "ignored" }]);
  });

  test.each([
    ['{ "herd": { "projectAgents": "yes" } }', "herd.projectAgents", "true or false", '"yes"'],
    ['{ "herd": { "projectAgents": null } }', "herd.projectAgents", "true or false", "null"],
    ['{ "herd": [true] }', "herd", "an object", "[true]"],
  ])("are left out with the settings %s, by field and rule", async (settings, field, rule, value) => {
    await write({ ...files, "p/.pi/settings.json": settings });
    const { definitions, findings } = await current(project());
    expect(definitions.has("a")).toBe(false);
    expect(findings).toEqual([
      {
        file: at("p/.pi/agents"),
        field,
        rule,
        effect: "ignored",
        message: `${at("p/.pi/agents")} is left out: ${field} in ${at("p/.pi/settings.json")} must be ${rule}, and is ${value}`,
      },
    ]);
  });

  test("of a folder that is not there are left out and reported to whoever names it", async () => {
    await write(files);
    const definitions = new Definitions([project({ cwd: at("gone") })]);
    expect((await definitions.current(at("gone"))).findings).toMatchObject([{ file: at("p/.pi/agents") }]);
    expect((await definitions.current(at("p"))).findings).toEqual([]);
  });

  test("that do not exist are no finding", async () => {
    expect((await current(project({ trusted: false }))).findings).toEqual([]);
  });

  test("of two folders of one project cannot share a name, because neither stands above the other", async () => {
    await write({ ...files, ...OPT_IN, "p/more/a.md": agent("description: B") });
    const { definitions, findings } = await current(project(), project({ path: at("p/more"), cwd: at("p") }));
    expect(definitions.get("a")).toMatchObject({ enabled: false });
    expect(about(findings, "disabled")).toHaveLength(2);
  });

  test("of two projects do not disturb each other: each is there in its own folder, with what is wrong with it", async () => {
    await write({
      ...files,
      ...OPT_IN,
      "q/.pi/agents/a.md": agent("description: B\nthinking: hard"),
      "q/.pi/settings.json": OPT_IN["p/.pi/settings.json"],
      "r/.pi/agents/a.md": agent("description: C"),
      "g/b.md": agent("description: D\ntools: 7"),
    });
    await symlink(at("q"), at("link"));
    const projects = ["p", "q", "r"].map((name) => project({ path: at(`${name}/.pi/agents`), trusted: name !== "r" }));
    const definitions = new Definitions([...projects, at("g")]);
    const seenIn = async (folder?: string) => {
      const { definitions: found, findings } = await definitions.current(folder && at(folder));
      return [found.get("a")?.projectCwd, found.get("a")?.enabled, findings.map(({ file }) => file)];
    };
    expect(await seenIn("p")).toEqual([at("p"), true, [at("g/b.md")]]);
    expect(await seenIn("q")).toEqual([at("q"), false, [at("q/.pi/agents/a.md"), at("g/b.md")]]);
    expect(await seenIn("link")).toEqual(await seenIn("q"));
    expect(await seenIn("r")).toEqual([undefined, undefined, [at("r/.pi/agents"), at("g/b.md")]]);
    for (const elsewhere of ["p/.pi", "other", undefined]) {
      expect(await seenIn(elsewhere)).toEqual([undefined, undefined, [at("g/b.md")]]);
    }
  });
});

describe("a function that gives the sources", () => {
  test("is asked each time, so that they come and go; what stays is not parsed again", async () => {
    await write({ "g/a.md": agent("description: A\ntools: [x]"), "h/b.md": agent("description: B\ntools: [y]") });
    let given: string[] = [];
    const definitions = new Definitions(() => given);
    const names = async () => [...(await definitions.current()).definitions.keys()].filter((name) => name.length === 1);
    const tools = async () => (await definitions.current()).definitions.get("a")?.tools;
    expect(await names()).toEqual([]);
    given = [at("g")];
    expect(await names()).toEqual(["a"]);
    const first = await definitions.current();
    expect(await definitions.current()).toBe(first);
    const before = await tools();
    given = [at("g"), at("h")];
    expect(await names()).toEqual(["a", "b"]);
    expect(await tools()).toBe(before);
    given = [at("h")];
    expect(await names()).toEqual(["b"]);
    given = [at("g")];
    // Nothing is kept of what went away.
    expect(await tools()).toEqual(before);
    expect(await tools()).not.toBe(before);
  });

  test.each<[string, () => unknown, string, string, string]>([
    [
      "throws",
      () => {
        throw new Error("no settings");
      },
      "definitions",
      "must not throw",
      "no settings",
    ],
    ["gives nothing", () => undefined, "definitions", "must be a list of folders", "a list"],
    ["gives a promise", () => Promise.reject(new Error("late")), "definitions", "must be a list of folders", "a list"],
    [
      "gives a source of no layer",
      () => ["a", { path: "b" }],
      "definitions.1",
      "must be the path of a folder",
      "layer",
    ],
  ])("and %s is a finding, and what it gave last counts on", async (_, bad, field, rule, message) => {
    await write({ "g/a.md": agent("description: A") });
    let give = bad as () => string[];
    const definitions = new Definitions(() => give());
    const finding = {
      file: "definitions",
      field,
      rule: expect.stringContaining(rule),
      effect: "ignored",
      message: expect.stringContaining(message),
    };
    expect((await definitions.current()).findings).toEqual([finding]);
    give = () => [at("g")];
    expect((await definitions.current()).findings).toEqual([]);
    give = bad as () => string[];
    const roster = await definitions.current();
    expect(roster.findings).toEqual([finding]);
    expect(roster.definitions.get("a")).toMatchObject({ enabled: true });
    expect(await definitions.current()).toBe(roster);
  });
});

describe("a folder", () => {
  test("is read with the folders in it, without examples, hidden files and packages", async () => {
    const { definitions } = await global({
      "a.md": agent("description: A"),
      "team/b.MD": agent("description: B"),
      "team/deep/c.md": agent("description: C"),
      "d.example.md": agent("description: D"),
      ".e.md": agent("description: E"),
      ".git/f.md": agent("description: F"),
      "node_modules/x/g.md": agent("description: G"),
      "h.txt": agent("description: H"),
    });
    const bundled = ["generalist", "implementer", "researcher", "reviewer", "scout"];
    expect([...definitions.keys()]).toEqual(["a", "b", "c", ...bundled]);
  });

  test("may be a symbolic link, but links in it are not followed and are reported", async () => {
    await write({ "g/a.md": agent("description: A"), "else/b.md": agent("description: B") });
    await symlink(at("else/b.md"), at("g/b.md"));
    await symlink(at("else"), at("g/more"));
    await symlink(at("g"), at("link"));
    const { definitions, findings } = await current(at("link"));
    expect(definitions.has("a")).toBe(true);
    expect(definitions.has("b")).toBe(false);
    expect(findings).toMatchObject([
      { file: at("g/b.md"), effect: "ignored" },
      { file: at("g/more"), effect: "ignored" },
    ]);
  });

  test("that does not exist is empty, and one that is a file is reported", async () => {
    await write({ file: "x" });
    const { findings } = await current(at("none"), at("file"));
    expect(findings).toMatchObject([{ file: at("file"), effect: "ignored" }]);
  });

  test("can be given from the home folder", async () => {
    for (const name of ["HOME", "USERPROFILE"]) vi.stubEnv(name, root);
    onTestFinished(() => void vi.unstubAllEnvs());
    await write({ "agents/a.md": agent("description: A") });
    expect((await current("~/agents")).definitions.has("a")).toBe(true);
  });
});

describe("one bad file", () => {
  test.each<[string, string, string | Buffer]>([
    ["of broken YAML", "bad", "---\nname: other\ntools: [\n---\nx"],
    ["with a bad value", "other", agent("name: other\ndescription: O\nthinking: hard")],
    ["that is not text", "bad", Buffer.from([0xff, 0xfe])],
    ["beyond the limit", "bad", agent("description: Long", "x".repeat(1_048_577))],
  ])("%s is disabled and named, and stays to be found, while all others load", async (_, name, content) => {
    const { definitions, findings } = await global({ "bad.md": content, "good.md": agent("description: G") });
    expect(definitions.get("good")).toMatchObject({ enabled: true });
    expect(definitions.get("scout")).toMatchObject({ enabled: true });
    expect(definitions.get(name)).toMatchObject({ name, enabled: false, extensionSource: "global" });
    expect(findings).toMatchObject([{ file: at("g/bad.md"), name, effect: "disabled" }]);
  });

  test("that overlays a definition disables that one, whatever lies above it", async () => {
    await write({ "g/scout.md": "---\nmodel: [\n---\n", "h/scout.md": agent("enabled: true") });
    const { definitions } = await current(at("g"), at("h"));
    expect(definitions.get("scout")).toMatchObject({ enabled: false, description: expect.stringContaining("Finds") });
    expect(definitions.get("reviewer")).toMatchObject({ enabled: true });
  });

  test("that shares its name with another in its layer disables it, both files named", async () => {
    const { definitions, findings } = await global({
      "a.md": agent("name: x\ndescription: A"),
      "b.md": agent("name: x\ndescription: B"),
    });
    expect(definitions.get("x")).toMatchObject({ enabled: false, description: "A" });
    expect(findings.map(({ file, effect }) => [file, effect])).toEqual([
      [at("g/a.md"), "disabled"],
      [at("g/b.md"), "disabled"],
    ]);
    for (const { message } of findings) expect(message).toContain(`${at("g/a.md")} and in ${at("g/b.md")}`);
  });

  test("without frontmatter is left out", async () => {
    const { definitions, findings } = await global({ "README.md": "# Agents\n" });
    expect(definitions.has("README")).toBe(false);
    expect(findings).toMatchObject([{ file: at("g/README.md"), effect: "ignored" }]);
  });
});

describe("a missing description", () => {
  test.each([
    ["# Planner\n\nYou plan.", "Planner"],
    ["\n@shared.md\nYou plan.", "You plan."],
    [`${"x".repeat(300)}\n`, `${"x".repeat(199)}…`],
  ])("is the first line of the role prompt", async (body, description) => {
    const { definitions, findings } = await global({ "planner.md": agent("model: m", body) });
    expect(definitions.get("planner")).toMatchObject({ enabled: true, description });
    expect(findings).toEqual([]);
  });

  test("without a role prompt means an overlay of nothing, which is left out and reported", async () => {
    const { definitions, findings } = await global({ "scot.md": agent("model: m") });
    expect(definitions.has("scot")).toBe(false);
    expect(findings).toMatchObject([{ file: at("g/scot.md"), name: "scot", effect: "ignored" }]);
  });
});

describe("the current roster", () => {
  test("is the same object until a file changes, and then only that file is parsed", async () => {
    await write({ "g/a.md": agent("description: A\ntools: [x]"), "g/b.md": agent("description: B\ntools: [y]") });
    const definitions = new Definitions([at("g")]);
    const first = await definitions.current();
    expect(await definitions.current()).toBe(first);
    // As many bytes as before: times of files are too coarse to notice this.
    await write({ "g/b.md": agent("description: C\ntools: [z]") });
    const second = await definitions.current();
    expect(second.definitions.get("b")).toMatchObject({ description: "C", tools: ["z"] });
    expect(second.definitions.get("a")?.tools).toBe(first.definitions.get("a")?.tools);
    expect(first.definitions.get("b")).toMatchObject({ description: "B" });
  });

  test("is one object for each project, and one for all folders that are none", async () => {
    await write({
      ...OPT_IN,
      "p/.pi/agents/a.md": agent("description: A\ntools: [x]"),
      "q/.pi/agents/a.md": agent("description: B"),
      "q/.pi/settings.json": OPT_IN["p/.pi/settings.json"],
      "g/b.md": agent("description: C"),
    });
    const definitions = new Definitions([project(), project({ path: at("q/.pi/agents") }), at("g")]);
    const folders = ["p", "q", "other", "another"].map(at);
    const first = await Promise.all(folders.map((folder) => definitions.current(folder)));
    for (const [index, folder] of folders.entries()) expect(await definitions.current(folder)).toBe(first[index]);
    expect(first[2]).toBe(first[3]);
    await write({ "g/b.md": agent("description: D") });
    await definitions.current(at("q"));
    const after = await definitions.current(at("p"));
    expect(after.definitions.get("b")).toMatchObject({ description: "D" });
    // Nothing of the project was parsed again.
    expect(after.definitions.get("a")?.tools).toBe(first[0]?.definitions.get("a")?.tools);
  });

  test("follows files that come, go and move, and settings that change", async () => {
    await write({ ...OPT_IN, "p/.pi/agents/a.md": agent("description: A") });
    const definitions = new Definitions([project(), at("g")]);
    const names = async () =>
      [...(await definitions.current(at("p"))).definitions.keys()].filter((name) => name.length === 1);
    expect(await names()).toEqual(["a"]);
    await write({ "g/b.md": agent("description: B") });
    expect(await names()).toEqual(["a", "b"]);
    await rename(at("g/b.md"), at("g/c.md"));
    expect(await names()).toEqual(["a", "c"]);
    await write({ "p/.pi/settings.json": "{}" });
    expect(await names()).toEqual(["c"]);
    await rm(at("g/c.md"));
    expect(await names()).toEqual([]);
  });
});
