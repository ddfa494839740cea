import { describe, expect, test } from "vitest";
import { LABEL_PATTERN } from "../../machines/vocabulary.ts";
import { composeBody } from "./body.ts";
import { policyOf } from "./definition.ts";
import { Definitions } from "./roster.ts";

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
});
