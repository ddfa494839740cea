import { expect, test } from "vitest";
import type { LaunchPolicy } from "../../../runtime/index.ts";
import { launchFlags, type LaunchFlags } from "./flags.ts";

const policy: LaunchPolicy = { name: "scout", systemPrompt: "", systemPromptMode: "append", delegates: false };
const launch = { agent: "scout", cwd: "/project", sessionId: "session-1", owner: "ada" };

function flags(of: Partial<LaunchPolicy> = {}, more: Partial<LaunchFlags> = {}): string {
  return launchFlags({
    launch: { ...launch, policy: { ...policy, ...of } },
    extension: "/herd.js",
    workerPrompt: "/worker.md",
    label: "scout-2",
    sessionFolder: "/sessions",
    trusted: false,
    ...more,
  }).join(" ");
}

test("a worker of a definition that says nothing gets what Pi has, and everything that could hold a start up is said", () => {
  expect(flags()).toBe(
    "--mode rpc --no-approve --extension /herd.js --append-system-prompt /worker.md --name scout-2 --session-dir /sessions --session-id session-1",
  );
});

test.each<[Partial<LaunchPolicy>, string]>([
  [{ model: "anthropic/claude" }, "--model anthropic/claude"],
  [{ thinking: "high" }, "--thinking high"],
  [{ tools: ["read", "web", "ask_owner"] }, "--tools read,web,ask_owner"],
  [{ noTools: true, tools: ["ask_owner"] }, "--tools ask_owner"],
  [{ noBuiltinTools: true }, "--no-builtin-tools"],
  [{ excludeTools: ["bash", "edit"] }, "--exclude-tools bash,edit"],
  [{ skills: ["/a", "./b"] }, "--skill /a --skill ./b"],
  [{ noSkills: true }, "--no-skills"],
  [{ inheritSkills: false, skills: ["/a"] }, "--no-skills --skill /a"],
  [{ extensions: ["/x.ts", "npm:y"] }, "--extension /herd.js --extension /x.ts --extension npm:y"],
  [{ noExtensions: true, extensions: ["/x.ts"] }, "--extension /herd.js --no-extensions --extension /x.ts"],
])("the fields %j become %s", (fields, expected) => {
  expect(` ${flags(fields)} `).toContain(` ${expected} `);
});

test.each<[Partial<LaunchPolicy>]>([
  [{ excludeTools: [] }],
  [{ noSkills: false }],
  [{ inheritSkills: true }],
  [{ noExtensions: false }],
  [{ skills: [], extensions: [] }],
  [{ inheritProjectContext: true, inheritGlobalContext: true }],
])("the fields %j change nothing", (fields) => {
  expect(flags(fields)).toBe(flags());
});

test("what the root session uses counts where the definition says nothing", () => {
  const root = { model: "scripted/script", thinking: "low" };
  expect(flags({}, root)).toContain("--model scripted/script --thinking low");
  expect(flags({ model: "a/b", thinking: "off" }, root)).toContain("--model a/b --thinking off");
});

test("the role prompt is appended, or takes the place of Pi's; what every worker is told comes after it", () => {
  const role = { rolePrompt: "/role.md" };
  expect(flags({}, role)).toContain("--append-system-prompt /role.md --append-system-prompt /worker.md");
  expect(flags({ systemPromptMode: "replace" }, role)).toContain(
    "--system-prompt /role.md --append-system-prompt /worker.md",
  );
});

test("context files that are named are all there are", () => {
  expect(flags({}, { contextFiles: [] })).toContain("--no-context-files");
  expect(flags({}, { contextFiles: ["/AGENTS.md"] })).toContain(
    "--no-context-files --append-system-prompt /AGENTS.md --append-system-prompt /worker.md",
  );
});

test("trust is that of the root session's project, and never asked for", () => {
  expect(flags({}, { trusted: true })).toContain("--mode rpc --approve");
});

test.each<[Partial<LaunchFlags["launch"]>, Partial<LaunchFlags>, string]>([
  [{}, {}, "--session-id session-1"],
  [{ session: { continues: "/old.jsonl" } }, {}, "--session /old.jsonl"],
  [{ session: { forks: "/old.jsonl" } }, {}, "--fork /old.jsonl --session-id session-1"],
  // Started again: what it continued or forked stands in its own file.
  [{ session: { forks: "/old.jsonl" } }, { sessionFile: "/mine.jsonl" }, "--session /mine.jsonl"],
])("a launch with %j %j has the session %s", (of, more, expected) => {
  expect(flags({}, { launch: { ...launch, ...of }, ...more })).toMatch(
    new RegExp(`--name scout-2 --session-dir /sessions ${expected}$`),
  );
});
