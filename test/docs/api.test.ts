import { readdirSync, readFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { anchorsOf, headingsOf } from "../../tools/api/headings.ts";
import { entryPoints } from "../../tools/api/typedoc.ts";
import { root } from "../../tools/run.ts";

const folder = join(root, "docs", "api");
const pages = new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "utf8")]));
const index = pages.get("README.md") ?? "";
const pageOf = (entry: string) => pages.get(`${entry}.md`) ?? "";

/** What an entry point exports, all of it by name. */
function exportsOf(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  const lists = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].map(([, list = ""]) => list);
  expect(lists.length).toBe(text.match(/^export /gm)?.length);
  return lists.flatMap((list) => list.match(/\w+/g) ?? []);
}

/** What a page says under a heading, with what stands below it. */
function sectionOf(text: string, level: number, title: string): string {
  const headings = headingsOf(text);
  const start = headings.find((heading) => heading.level === level && heading.title === title);
  if (start === undefined) throw new Error(`there is no "${title}"`);
  return text.slice(start.at, headings.find((heading) => heading.at > start.at && heading.level <= level)?.at);
}

describe("the API reference", () => {
  test.each(entryPoints)("has every export of $name and no other", ({ file, page }) => {
    const described = headingsOf(pageOf(page)).filter(({ level }) => level === 3);
    const names = described.map(({ title }) => title.replace("()", ""));
    expect(names.toSorted()).toEqual(exportsOf(file).toSorted());
    expect(names.filter((name) => !index.includes(`| [\`${name}\`](${page}.md#`))).toEqual([]);
  });

  test.each([
    ["Owner", "assign"],
    ["Owner", "reply"],
    ["Worker", "askOwner"],
    ["Worker", "assign"],
    ["Worker", "reply"],
    ["Worker", "step"],
    ["Question", "reply"],
  ])("says what can happen twice for %s.%s", (type, method) => {
    const section = sectionOf(sectionOf(pageOf("pi-herd"), 3, type), 5, `${method}()`);
    expect(section).toMatch(/^What can happen twice: \S/m);
  });

  test.each([...pages.keys()])("has links in %s that lead somewhere", (name) => {
    const text = pages.get(name) as string;
    const places = (page: string) => {
      const target = pages.get(page) ?? "";
      return [...anchorsOf(target), ...[...target.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id)];
    };
    const links = [...text.matchAll(/\]\(([^)#]*)(?:#([^)]+))?\)/g)];
    expect(links.length).toBeGreaterThan(1);
    const broken = links.filter(([, page = "", anchor]) => {
      const target = page === "" ? name : page;
      return !pages.has(target) || (anchor !== undefined && !places(target).includes(anchor));
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });

  test("is the same wherever it is written", () => {
    const all = [...pages.values()].join("\n");
    for (const place of [root, homedir(), tmpdir(), "node_modules/", "://"]) expect(all).not.toContain(place);
  });
});
