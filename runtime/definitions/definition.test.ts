import { describe, expect, test } from "vitest";
import { delegates, metadataOf, policyOf, type Definition } from "./definition.ts";

const define = (fields: Partial<Definition> = {}): Definition => ({
  name: "lead",
  description: "Leads",
  enabled: true,
  systemPromptMode: "append",
  body: [{ text: "You lead.", file: "/lead.md" }],
  extensionSource: "bundled",
  ...fields,
});
const policy = (fields: Partial<Definition>, leaf = false) =>
  policyOf(define(fields), { leaf, systemPrompt: "You lead." });
const row = (fields: Partial<Definition>, leaf = false) => metadataOf(define(fields), { leaf });
const subagents = ["scout"];

describe("delegation", () => {
  const cases: [string, Partial<Definition>, boolean][] = [
    ["comes with subagents and the default tools", { subagents }, true],
    ["comes with subagents and a list of tools that does not name it", { subagents, tools: ["read"] }, true],
    ["comes with subagents although the built-in tools are off", { subagents, noBuiltinTools: true }, true],
    ["needs somebody to start", { tools: ["read", "subagent"] }, false],
    ["needs somebody to start, also with the default tools", { subagents: [] }, false],
    ["is not there with an empty list of tools", { subagents, tools: [] }, false],
    ["is not there without tools", { subagents, noTools: true }, false],
    ["is not there without tools, whatever else is listed", { subagents, noTools: true, tools: ["read"] }, false],
    ["is there without other tools when it is named", { subagents, noTools: true, tools: ["subagent"] }, true],
    ["is excluded with the default tools", { subagents, excludeTools: ["subagent"] }, false],
    ["is excluded although it is named", { subagents, tools: ["subagent"], excludeTools: ["subagent"] }, false],
  ];
  test.each(cases)("%s", (_, fields, expected) => {
    expect(delegates(define(fields))).toBe(expected);
    expect(policy(fields)).toMatchObject({ delegates: expected });
    expect(policy(fields).subagents).toEqual(expected ? subagents : undefined);
    expect(policy(fields, true)).toMatchObject({ delegates: false });
  });
});

describe("the tools of a policy", () => {
  const cases: [string, Partial<Definition>, string[] | undefined, string[] | undefined][] = [
    ["are the default without a list", {}, undefined, undefined],
    ["are the default without a list, for a parent too", { subagents }, undefined, undefined],
    ["have ask_owner", { tools: ["read"] }, ["read", "ask_owner"], ["read", "ask_owner"]],
    ["have ask_owner alone for an empty list", { tools: [] }, ["ask_owner"], ["ask_owner"]],
    ["have ask_owner alone without tools", { noTools: true }, ["ask_owner"], ["ask_owner"]],
    ["are none of a list that noTools takes back", { tools: ["read"], noTools: true }, ["ask_owner"], ["ask_owner"]],
    ["have ask_owner once", { tools: ["ask_owner", "read"] }, ["ask_owner", "read"], ["ask_owner", "read"]],
    [
      "have ask_owner although it is excluded",
      { tools: ["read", "bash"], excludeTools: ["ask_owner", "bash"] },
      ["read", "ask_owner"],
      ["read", "ask_owner"],
    ],
    [
      "have subagent for a parent",
      { subagents, tools: ["read"] },
      ["read", "subagent", "ask_owner"],
      ["read", "ask_owner"],
    ],
    [
      "have subagent where it is named",
      { subagents, tools: ["subagent", "read"] },
      ["subagent", "read", "ask_owner"],
      ["read", "ask_owner"],
    ],
    [
      "have no subagent without anybody to start",
      { tools: ["read", "subagent"] },
      ["read", "ask_owner"],
      ["read", "ask_owner"],
    ],
    [
      "are ask_owner when a leaf loses the only one",
      { subagents, tools: ["subagent"] },
      ["subagent", "ask_owner"],
      ["ask_owner"],
    ],
  ];
  test.each(cases)("%s", (_, fields, root, leaf) => {
    expect(policy(fields).tools).toEqual(root);
    expect(policy(fields, true).tools).toEqual(leaf);
  });

  test("exclude what is excluded, but never ask_owner", () => {
    expect(policy({ excludeTools: ["bash", "ask_owner"] }).excludeTools).toEqual(["bash"]);
    expect(policy({ excludeTools: ["ask_owner"] })).not.toHaveProperty("excludeTools");
  });
});

describe("a policy", () => {
  test("carries everything that is declared and nothing that is not", () => {
    const declared: Partial<Definition> = {
      model: "anthropic/claude",
      thinking: "high",
      systemPromptMode: "replace",
      noBuiltinTools: false,
      noSkills: true,
      inheritSkills: false,
      skills: ["git"],
      noExtensions: true,
      extensions: ["./a.ts"],
      inheritProjectContext: true,
      inheritGlobalContext: false,
    };
    expect(policy(declared)).toEqual({ name: "lead", systemPrompt: "You lead.", delegates: false, ...declared });
    expect(policy({})).toEqual({
      name: "lead",
      systemPrompt: "You lead.",
      systemPromptMode: "append",
      delegates: false,
    });
  });

  test("is JSON and no longer changes with its definition", () => {
    const skills = ["git"];
    const frozen = policy({ skills });
    skills.push("more");
    expect(frozen.skills).toEqual(["git"]);
    expect(JSON.parse(JSON.stringify(frozen))).toEqual(frozen);
  });
});

describe("a row", () => {
  test("has the declared policy without extensions, context and prompt", () => {
    const shown: Partial<Definition> = {
      overrideSource: "global",
      model: "anthropic/claude",
      thinking: "off",
      noTools: false,
      noBuiltinTools: true,
      excludeTools: ["bash"],
      noSkills: true,
      inheritSkills: true,
      skills: [],
    };
    const unseen: Partial<Definition> = {
      noExtensions: true,
      extensions: ["a"],
      inheritProjectContext: true,
      inheritGlobalContext: true,
      extras: ["x"],
      projectCwd: "/p",
      systemPromptMode: "replace",
    };
    expect(row({ ...shown, ...unseen })).toEqual({
      name: "lead",
      description: "Leads",
      extensionSource: "bundled",
      ...shown,
    });
  });

  test("says enabled only when it is not", () => {
    expect(row({})).not.toHaveProperty("enabled");
    expect(row({ enabled: false })).toMatchObject({ enabled: false });
  });

  test("shows the delegation that follows from subagents, and a leaf none", () => {
    const parent = { subagents, tools: ["read"] };
    expect(row(parent)).toMatchObject({ subagents, tools: ["read", "subagent"] });
    expect(row(parent, true).tools).toEqual(["read"]);
    expect(row(parent, true)).not.toHaveProperty("subagents");
    expect(row({ subagents, tools: ["subagent"] }, true)).toMatchObject({ noTools: true });
    expect(row({ subagents, tools: ["subagent"] }, true)).not.toHaveProperty("tools");
    expect(row({ subagents, tools: [] }, true)).toMatchObject({ tools: [] });
  });

  test("never shows ask_owner, which is no policy", () => {
    const shown = row({ tools: ["ask_owner", "read"], excludeTools: ["ask_owner"] });
    expect(shown.tools).toEqual(["read"]);
    expect(shown).not.toHaveProperty("excludeTools");
  });
});
