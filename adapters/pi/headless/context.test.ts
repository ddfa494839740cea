import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { LaunchPolicy } from "../../../runtime/index.ts";
import { contextFiles } from "./context.ts";

const policy: LaunchPolicy = { name: "scout", systemPrompt: "", systemPromptMode: "append", delegates: false };

function folders() {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "herd-context-")));
  onTestFinished(() => rmSync(base, { recursive: true, force: true }));
  const [agentDirectory, cwd] = [join(base, "agent"), join(base, "project", "part")];
  for (const folder of [agentDirectory, cwd]) mkdirSync(folder, { recursive: true });
  const files = {
    global: join(agentDirectory, "AGENTS.md"),
    project: join(base, "project", "CLAUDE.md"),
    part: join(cwd, "AGENTS.md"),
  };
  for (const file of Object.values(files)) writeFileSync(file, "");
  // Only the first name counts in a folder.
  writeFileSync(join(cwd, "CLAUDE.md"), "");
  const of = (fields: Partial<LaunchPolicy>) => contextFiles({ ...policy, ...fields }, { cwd, agentDirectory });
  return { files, of, base };
}

test("where both kinds are inherited Pi reads them itself", () => {
  const { of } = folders();
  expect(of({})).toBeUndefined();
  expect(of({ inheritProjectContext: true, inheritGlobalContext: true })).toBeUndefined();
});

test("the project's alone are those of its folders, the nearest last", () => {
  const { of, files, base } = folders();
  const found = of({ inheritGlobalContext: false });
  expect(found?.filter((file) => file.startsWith(base))).toEqual([files.project, files.part]);
});

test("the user's own alone are those of the agent directory", () => {
  const { of, files } = folders();
  expect(of({ inheritProjectContext: false })).toEqual([files.global]);
});

test("of neither kind there is none", () => {
  expect(folders().of({ inheritProjectContext: false, inheritGlobalContext: false })).toEqual([]);
});
