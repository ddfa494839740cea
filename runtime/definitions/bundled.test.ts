import { spawnSync } from "node:child_process";
import { cp, mkdtemp, readdir, readFile, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { LABEL_PATTERN } from "../../machines/vocabulary.ts";
import { composeBody } from "./body.ts";
import { policyOf } from "./definition.ts";
import { bundledFolder, Definitions } from "./roster.ts";

const names = ["generalist", "implementer", "researcher", "reviewer", "scout"];
const roster = await new Definitions([]).current();

describe("the bundled definitions", () => {
  test("are five, without a finding", () => {
    expect([...roster.definitions.keys()]).toEqual(names);
    expect(roster.findings).toEqual([]);
  });

  test.each(names)("have %s ready to launch, with a label and a prompt", async (name) => {
    const definition = roster.definitions.get(name);
    if (definition === undefined) throw new Error(`${name} is missing`);
    expect(definition).toMatchObject({ enabled: true, extensionSource: "bundled" });
    expect(name).toMatch(LABEL_PATTERN);
    expect((definition.subagents ?? []).filter((child) => !names.includes(child))).toEqual([]);
    const prompt = await composeBody(definition, new Set());
    expect(prompt).toContain("`ask_owner`");
    expect(prompt).toContain("Your final message is all that your owner gets.");
    expect(prompt.split("\n").length).toBeLessThan(30);
  });

  test.each([
    ["scout", ["read", "grep", "find", "ls", "ask_owner"], false],
    ["reviewer", ["read", "grep", "find", "ls", "ask_owner"], false],
    ["researcher", ["read", "grep", "find", "ls", "ask_owner"], false],
    ["implementer", undefined, false],
    ["generalist", undefined, true],
  ])("give %s the tools of its role", (name, tools, delegates) => {
    const definition = roster.definitions.get(name);
    const policy = definition && policyOf(definition, { leaf: false, systemPrompt: "" });
    expect(policy).toMatchObject({ delegates });
    expect(policy?.tools).toEqual(tools);
  });

  test("are in the built package and are found there", async () => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), "built-")));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const root = fileURLToPath(new URL("../..", import.meta.url));
    await cp(join(root, "package.json"), join(folder, "package.json"));
    await symlink(join(root, "node_modules"), join(folder, "node_modules"));
    const run = (...args: string[]) => spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
    expect(run(join(root, "tools", "build.ts"), join(folder, "dist"))).toMatchObject({ status: 0, stderr: "" });

    const built = join(folder, "dist", "runtime", "definitions", "bundled");
    expect(await readdir(built)).toEqual(await readdir(bundledFolder));
    for (const name of names) {
      expect(await readFile(join(built, `${name}.md`), "utf8")).toBe(
        await readFile(join(bundledFolder, `${name}.md`), "utf8"),
      );
    }
    const script = `
      import { bundledFolder, Definitions } from "./dist/runtime/definitions/roster.js";
      const { definitions } = await new Definitions([]).current();
      console.log(JSON.stringify([bundledFolder, [...definitions.keys()]]));`;
    const { stdout, stderr } = run("--input-type=module", "--eval", script);
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual([built, names]);
  });
});
