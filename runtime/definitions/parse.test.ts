import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { overlay, type LayeredFile } from "./overlay.ts";
import { parseDefinition, type DefinitionFile } from "./parse.ts";

const file = "/agents/scout.md";
const parse = (content: string | Uint8Array) => parseDefinition(file, Buffer.from(content));
const read = (content: string | Uint8Array): DefinitionFile => {
  const parsed = parse(content);
  if ("effect" in parsed) throw new Error(parsed.message);
  return parsed;
};
const withField = (line: string) => read(`---\nname: scout\n${line}\n---\nYou scout.\n`);

describe("a field", () => {
  test.each([
    ["description: Looks", { description: "Looks" }],
    ["description: |\n  Looks\n  around", { description: "Looks\naround" }],
    ["enabled: false", { enabled: false }],
    ["model: anthropic/claude", { model: "anthropic/claude" }],
    ["model: inherit", {}],
    ["model:", {}],
    ["thinking: off", { thinking: "off" }],
    ["thinking: false", { thinking: "off" }],
    ["thinking: max", { thinking: "max" }],
    ["thinking: inherit", {}],
    ["systemPromptMode: replace", { systemPromptMode: "replace" }],
    ["bodyMode: append", { bodyMode: "append" }],
    ["tools: [read, grep]", { tools: ["read", "grep"] }],
    ["tools:\n  - read\n  - mcp:web/search", { tools: ["read", "mcp:web/search"] }],
    ["tools: read, grep,find,", { tools: ["read", "grep", "find"] }],
    ["tools: read", { tools: ["read"] }],
    ["tools: read, read", { tools: ["read"] }],
    ["tools: []", { tools: [] }],
    ['tools: ""', { tools: [] }],
    ["tools: none", { tools: [] }],
    ["tools: all", {}],
    ['tools: "*"', {}],
    ["tools:", {}],
    ["noTools: true", { noTools: true }],
    ["noBuiltinTools: true", { noBuiltinTools: true }],
    ["excludeTools: bash", { excludeTools: ["bash"] }],
    ["skills: git, review", { skills: ["git", "review"] }],
    ["skills: false", { noSkills: true }],
    ["skills: true", { noSkills: false }],
    ["skills: true\nnoSkills: true", { noSkills: true }],
    ["noSkills: true", { noSkills: true }],
    ["inheritSkills: false", { inheritSkills: false }],
    ["extensions: ./a.ts, ./b.ts", { extensions: ["./a.ts", "./b.ts"] }],
    ["extensions: false", { noExtensions: true }],
    ["noExtensions: true", { noExtensions: true }],
    ["subagents: [scout, reviewer]", { subagents: ["scout", "reviewer"] }],
    ["inheritProjectContext: true", { inheritProjectContext: true }],
    ["inheritGlobalContext: false", { inheritGlobalContext: false }],
    ["extras: [ticket]", { extras: ["ticket"] }],
  ])("is read: %s", (line, fields) => {
    expect(withField(line)).toEqual({ file, name: "scout", fields, body: "You scout.\n", broken: false, findings: [] });
  });

  test.each([
    ["description", "description: [a]"],
    ["description", 'description: " "'],
    ["enabled", 'enabled: "false"'],
    ["model", "model: 4"],
    ["model", 'model: "a\\nb"'],
    ["model", 'model: "a\\0b"'],
    ["thinking", "thinking: hard"],
    ["thinking", "thinking: true"],
    ["systemPromptMode", "systemPromptMode: prepend"],
    ["bodyMode", "bodyMode: merge"],
    ["tools", "tools: 3"],
    ["tools", "tools: [read, 3]"],
    ["tools", "tools: [read, null]"],
    ["tools", "tools: {read: true}"],
    ["noTools", "noTools: 1"],
    ["noBuiltinTools", "noBuiltinTools: []"],
    ["excludeTools", "excludeTools: true"],
    ["skills", "skills: 1"],
    ["noSkills", "noSkills: never"],
    ["inheritSkills", "inheritSkills: some"],
    ["extensions", "extensions: [[a]]"],
    ["noExtensions", "noExtensions: {}"],
    ["subagents", "subagents: false"],
    ["inheritProjectContext", "inheritProjectContext: 0"],
    ["inheritGlobalContext", "inheritGlobalContext: x"],
    ["extras", "extras: {a: b}"],
  ])("with a bad value disables its definition, file, field and rule named: %s, %s", (field, line) => {
    const parsed = withField(line);
    expect(parsed.broken).toBe(true);
    expect(parsed.fields).not.toHaveProperty(field);
    const [finding, ...more] = parsed.findings;
    expect(more).toEqual([]);
    expect(finding).toMatchObject({ file, name: "scout", field, effect: "disabled" });
    const [, value = ""] = /^.* must be .*, and is (.+)$/s.exec(finding?.message ?? "") ?? [];
    expect(finding?.message).toBe(`"scout" is disabled: ${file}: ${field} must be ${finding?.rule}, and is ${value}`);
    expect(() => JSON.parse(value)).not.toThrow();
  });

  test("that is not known is ignored and reported", () => {
    const parsed = withField("output: plan.md\n__proto__: {enabled: false}\n[1, 2]: x");
    expect(parsed).toMatchObject({ broken: false, fields: {} });
    expect(parsed.findings.map(({ field, effect }) => [field, effect])).toEqual([
      ["output", "ignored"],
      ["__proto__", "ignored"],
      ["[1,2]", "ignored"],
    ]);
  });

  test("that excludes ask_owner has no effect and is reported", () => {
    const { broken, findings } = withField("excludeTools: [bash, ask_owner]");
    expect(broken).toBe(false);
    expect(findings).toMatchObject([{ file, field: "excludeTools", effect: "ignored" }]);
  });
});

describe("a name", () => {
  test("that is missing is the file's name", () => {
    expect(read("---\ndescription: Looks\n---\n").name).toBe("scout");
    expect(read("---\n---\nYou scout.").name).toBe("scout");
  });

  test.each(["Code Reviewer", "team:scout", "pkg.scout", "späher", "__proto__"])("can be %s", (name) => {
    expect(read(`---\nname: "${name}"\n---\n`)).toMatchObject({ name, broken: false });
  });

  test.each(["../scout", "a\\\\b", "..", "", "a\\nb", "x".repeat(129)])("cannot be %j", (name) => {
    const parsed = read(`---\nname: "${name}"\n---\n`);
    expect(parsed).toMatchObject({ name: "scout", broken: true, findings: [{ field: "name", effect: "disabled" }] });
  });
});

describe("a file", () => {
  test.each([
    ["with Windows line ends", "---\r\nname: x\r\ntools:\r\n  - read\r\n---\r\nA\r\nB\r\n", "A\r\nB\r\n"],
    ["with a byte order mark", "\uFEFF---\nname: x\ntools: read\n---\nA", "A"],
    ["with blanks after the dashes", "---  \nname: x\ntools: read\n---\t\nA", "A"],
    ["that ends with the frontmatter", "---\nname: x\ntools: read\n---", ""],
    ["with dashes in the prompt", "---\nname: x\ntools: read\n---\nA\n---\nB", "A\n---\nB"],
  ])("%s is read", (_, content, body) => {
    expect(read(content)).toMatchObject({ name: "x", fields: { tools: ["read"] }, body, broken: false, findings: [] });
  });

  test.each([
    ["of YAML that is none", "---\nname: x\ntools: [read\n---\nA", "the frontmatter is valid YAML"],
    ["with a field twice", "---\nmodel: a\nmodel: b\n---\nA", "the frontmatter is valid YAML"],
    ["with a list for a frontmatter", "---\n- name\n---\nA", "the frontmatter is valid YAML"],
    ["with aliases beyond measure", `---\na: &a [x]\n${bomb()}---\nA`, "the frontmatter is valid YAML"],
    ["with an alias to nothing", "---\nmodel: *a\n---\nA", "the frontmatter is valid YAML"],
    ["without an end of the frontmatter", "---\nname: x\nA", "the frontmatter ends with a line of ---"],
    ["that is not UTF-8", Buffer.from([0x2d, 0x2d, 0x2d, 0x0a, 0xff]), "a definition file is UTF-8 text without NUL"],
    ["with NUL", "---\nname: x\n---\nA\0", "a definition file is UTF-8 text without NUL"],
  ])("%s is broken under its own name, the rule named", (_, content, rule) => {
    const parsed = read(content);
    expect(parsed).toMatchObject({ name: "scout", broken: true, fields: {}, body: "" });
    expect(parsed.findings).toMatchObject([{ file, name: "scout", rule, effect: "disabled" }]);
    expect(parsed.findings[0]?.message).toContain(file);
  });

  test.each(["", "# Readme\n", "\n---\nname: x\n---\n", "----\nname: x\n---\n"])(
    "without frontmatter is no definition and is reported: %j",
    (content) => {
      expect(parse(content)).toMatchObject({ file, effect: "ignored" });
    },
  );

  test("of any content at all is read without a throw", () => {
    const yaml = fc.oneof(fc.string(), fc.stringMatching(/^[-a-z:&*!|>[\]{}#'",\n ]*$/));
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), yaml.map(framed), anyFields().map(framed)), (content) => {
        const parsed = parse(content);
        if ("effect" in parsed) return;
        expect(parsed.name).not.toBe("");
        expect(parsed.broken).toBe(parsed.findings.some(({ effect }) => effect === "disabled"));
      }),
      { numRuns: 1_000 },
    );
  });

  test("nested beyond measure is broken", () => {
    expect(read(framed(`a: ${"[".repeat(50_000)}${"]".repeat(50_000)}`)).broken).toBe(true);
  });
});

test("files laid over each other give the same definition in whatever order they come", () => {
  const layers = fc.array(
    fc.record({ content: anyFields(), rank: fc.nat({ max: 3 }), path: fc.nat({ max: 3 }), body: fc.string() }),
  );
  fc.assert(
    fc.property(layers, fc.infiniteStream(fc.nat()), (given, order) => {
      const files = given.flatMap(({ content, rank, path, body }, index): LayeredFile[] => {
        const parsed = parseDefinition(`/${path}/${index}.md`, Buffer.from(framed(content, body)));
        const layer = rank === 0 ? "bundled" : "global";
        return "effect" in parsed ? [] : [{ layer, rank, content: { ...parsed, name: "x" } }];
      });
      const keyed = files.map((layered) => ({ layered, key: order.next().value as number }));
      const shuffled = keyed.toSorted((a, b) => a.key - b.key).map(({ layered }) => layered);
      expect(overlay(shuffled)).toEqual(overlay(files));
    }),
  );
});

function framed(yaml: string, body = "A"): string {
  return `---\n${yaml}\n---\n${body}`;
}

/** Frontmatter of known fields with values that fit some of them. */
function anyFields(): fc.Arbitrary<string> {
  const field = fc.constantFrom(
    "name",
    "model",
    "thinking",
    "enabled",
    "tools",
    "bodyMode",
    "skills",
    "x",
    "excludeTools",
  );
  const value = fc.constantFrom(
    "",
    "a",
    "high",
    "false",
    "append",
    "[a, b]",
    "a, b",
    "ask_owner",
    "3",
    "{a: b}",
    "none",
    "''",
  );
  return fc
    .uniqueArray(fc.tuple(field, value), { selector: ([name]) => name })
    .map((lines) => lines.map(([name, text]) => `${name}: ${text}`).join("\n"));
}

/** Twenty lists of which each holds the one before it ten times. */
function bomb(): string {
  const letters = "abcdefghijklmnopqrst";
  const line = (letter: string, index: number) =>
    `${letter}: &${letter} [${Array.from({ length: 10 }, () => `*${letters[index]}`).join(", ")}]\n`;
  return [...letters.slice(1)].map(line).join("");
}
