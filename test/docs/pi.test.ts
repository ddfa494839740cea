import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { launchFlags } from "../../adapters/pi/headless/flags.ts";
import { contextFiles } from "../../adapters/pi/headless/context.ts";
import { DEFAULTS, readSettings } from "../../adapters/pi/root/settings.ts";
import { policyOf } from "../../runtime/definitions/definition.ts";
import { readDefinitions } from "pi-herd";
import type { Launch } from "../../runtime/backend.ts";
import { resolveOptions } from "../../runtime/options.ts";
import { isTest, readSources } from "../../tools/imports.ts";
import { page, sectionOf } from "./page.ts";

const names = ["pi.md", "pi-recovery.md", "pi-sessions.md", "pi-troubleshooting.md", "pi-workers.md"];
const pages = new Map(await Promise.all(names.map(async (name) => [name, await page(name)] as const)));
const textOf = (name: string) => pages.get(name) as string;

/** The cells of every row of the tables in a text, without the blanks around them. */
const rowsOf = (text: string) =>
  [...text.matchAll(/^\| (`.*) \|$/gm)].map(([, cells = ""]) => cells.split(" | ").map((cell) => cell.trim()));
const code = (cell = "") => /`([^`]+)`/.exec(cell)?.[1] ?? "";

describe("the page on root sessions in Pi", () => {
  const rows = rowsOf(sectionOf(textOf("pi-sessions.md"), "Settings"));

  test("has every setting with its default, and no other", () => {
    const { inlineBytes, payloadBytes } = resolveOptions({});
    const { limits: _, ...defaults } = DEFAULTS;
    const all = {
      ...defaults,
      "limits.inlineBytes": inlineBytes,
      "limits.payloadBytes": payloadBytes,
      projectAgents: false,
    };
    const shown = rows.map(([name, , value = ""]) => [code(name), JSON.parse(value.replaceAll(/[`,]/g, ""))]);
    expect(Object.fromEntries(shown)).toEqual(all);
  });

  test.each(rows.map(([name, values = ""]) => [code(name), values]))("says which values %s takes", (path, values) => {
    const findingsOf = (value: unknown) => {
      const [first = "", second] = path.split(".");
      return readSettings({ herd: { [first]: second === undefined ? value : { [second]: value } } }).findings;
    };
    const numbers = values.includes(" to ")
      ? values.split(" to ").map((number) => Number(number.replaceAll(",", "")))
      : [];
    const words = [...values.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word);
    const good =
      numbers.length > 0 ? numbers : path === "toolName" ? ["a_1"] : words.map((word) => JSON.parse(word) as unknown);
    expect(good.flatMap(findingsOf)).toEqual([]);
    const [least = 0, most = 0] = numbers;
    const bad = numbers.length > 0 ? [least - 1, most + 1] : ["1 a"];
    expect(bad.flatMap(findingsOf)).toHaveLength(bad.length);
  });
});

describe("the page on definitions", async () => {
  const rows = rowsOf(sectionOf(await page("definitions.md"), "In Pi"));

  test.each(rows.map(([field, flag]) => [code(field), code(flag)]))(
    "says that `%s` becomes %s",
    async (field, flag) => {
      const folder = mkdtempSync(join(tmpdir(), "herd-docs-"));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      writeFileSync(join(folder, "a.md"), `---\nname: a\ndescription: one\n${field}\n---\n\nYou are one.\n`);
      const { definitions } = await readDefinitions([folder]);
      const policy = policyOf(definitions.get("a") as never, { leaf: true, systemPrompt: "You are one." });
      const args = launchFlags({
        launch: { policy, sessionId: "s" } as Launch,
        extension: "ours",
        rolePrompt: "FILE",
        workerPrompt: "worker",
        label: "a",
        contextFiles: contextFiles(policy, { cwd: folder, agentDirectory: folder }),
        sessionFolder: "/sessions",
        trusted: false,
      });
      expect(` ${args.join(" ")} `).toContain(` ${flag} `);
    },
  );
});

describe("the page on troubleshooting in Pi", () => {
  const text = textOf("pi-troubleshooting.md");
  const sources = readSources().filter(({ path }) => /^adapters\/(pi|host)\//.test(path) && !isTest(path));
  // Messages that the code puts together over several lines.
  const said = sources
    .map((source) => source.text)
    .join("\n")
    .replaceAll(/["`] \+\s+["`]/g, "");

  test("names nothing that the code does not say", () => {
    const headings = [...sectionOf(text, "Notices in a session").matchAll(/^### (.*)$/gm)].map(
      ([, heading = ""]) => heading,
    );
    const cells = rowsOf(text)
      .map(([, message]) => code(message))
      .filter((message) => message.includes(" "));
    expect(headings.length + cells.length).toBeGreaterThan(14);
    const parts = [...headings, ...cells]
      .flatMap((message) => message.split(/\(…\)|"…"|…|, or /))
      .map((part) => part.trim());
    expect(parts.filter((part) => part !== "" && !said.includes(part))).toEqual([]);
  });

  test("has every reason for which a session or its background process refuses", () => {
    const raised = new Set([...said.matchAll(/reason: "(\w+)"/g)].map(([, reason = ""]) => reason));
    // Of a call that somebody makes, which says itself what is wrong with it.
    for (const other of [
      "already_waiting",
      "detached",
      "invalid_field",
      "not_granted",
      "target_not_found",
      "target_ambiguous",
    ])
      raised.delete(other);
    expect([...raised].filter((reason) => !text.includes(`\`${reason}\``))).toEqual([]);
  });
});

test("every picture is on a page", () => {
  const pictures = readdirSync(new URL("../../docs/pictures", import.meta.url));
  const shown = [...pages.values()].flatMap((text) =>
    [...text.matchAll(/\]\(pictures\/(\S+)\)/g)].map(([, name]) => name),
  );
  expect(shown.toSorted()).toEqual(pictures.toSorted());
  for (const name of pictures) {
    expect(readFileSync(new URL(`../../docs/pictures/${name}`, import.meta.url), "utf8")).toMatch(/<title>\w/);
  }
});
